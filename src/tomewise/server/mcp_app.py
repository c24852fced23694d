"""MCP over streamable HTTP, as an ASGI app that another app mounts, and over standard input and output."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

from starlette.types import Message, Receive, Scope, Send

from tomewise.errors import MissingDependency
from tomewise.server.limits import MCP_BYTES
from tomewise.server.named_tomes import LEFT, Admit

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from tomewise.server.mcp_server import TomeServer
    from tomewise.tome.tome import Tome


_MOST_SESSIONS = 100


def load_server(tomes: Mapping[str, Tome], *, write: bool = False, admit: Admit = nullcontext) -> TomeServer:
    """The server of these tomes; the package `mcp` is imported here. Raises MissingDependency."""
    try:
        from tomewise.server.mcp_server import TomeServer
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise MissingDependency("MCP needs the package mcp: pip install 'tomewise[server]'") from error
    return TomeServer(tomes, write=write, admit=admit)


class McpApp:
    """An ASGI app for every path that it is mounted on. The first request starts it; `close` ends it.

    The tomes, by name, may change while it runs; its tools change them only with `write`. Each question and search runs
    inside a context that `admit` makes: a queue, a time limit, a budget. What that raises, a TomewiseError or
    TimeoutError, is the reply. `prepare` is awaited before each request. It checks neither token nor Host: whoever
    mounts it does.
    """

    def __init__(
        self,
        tomes: Mapping[str, Tome],
        *,
        write: bool = False,
        admit: Admit = nullcontext,
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._prepare = prepare
        self._load = partial(load_server, tomes, write=write, admit=admit)
        self._starting = asyncio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None
        self._serving: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request. Raises MissingDependency."""
        if self._prepare is not None:
            await self._prepare()
        async with self._starting:
            manager = self._manager or await self._start()
        left = asyncio.Event()

        async def watch() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                left.set()
            return message

        await manager.handle_request({**scope, LEFT: left}, watch, send)

    async def close(self) -> None:
        """End all sessions and cancel the calls under way."""
        self._ended.set()
        if self._serving is not None:
            await self._serving

    async def _start(self) -> StreamableHTTPSessionManager:
        # In a thread: the import of the package takes half a second, and others are served meanwhile.
        server = await asyncio.to_thread(self._load)
        from mcp.server.transport_security import TransportSecuritySettings

        server.streamable_http_app(
            max_request_body_size=MCP_BYTES,
            max_sessions=_MOST_SESSIONS,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        started = asyncio.Event()
        self._serving = asyncio.create_task(self._serve(server.session_manager, started))
        await started.wait()
        self._manager = server.session_manager
        return self._manager

    async def _serve(self, manager: StreamableHTTPSessionManager, started: asyncio.Event) -> None:
        """The sessions belong to a task group, which must end in the task that began it."""
        async with manager.run():
            started.set()
            await self._ended.wait()


async def serve_stdio(name: str, tome: Tome, *, write: bool = False) -> None:
    """Serve one tome until standard input ends, then close it; standard output carries the protocol alone.

    Meanwhile the package `mcp` points file 1 to standard error, so that whatever else prints goes there.
    Raises MissingDependency.
    """
    async with tome:  # the connections of its model belong to this event loop
        await load_server({name: tome}, write=write).run_stdio_async()
