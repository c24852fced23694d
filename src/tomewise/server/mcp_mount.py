"""The place of MCP at `/mcp`: its code is imported with the first request, since the library takes half a second."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.util import find_spec

from starlette.types import ASGIApp, Receive, Scope, Send

from tomewise.server.error_replies import HttpError, send_error
from tomewise.server.library import Library
from tomewise.server.mcp_library import Admit

_MODULE = "tomewise.server.mcp_app"


class McpMount:
    """Passes requests on to the MCP app of the library, which it makes when it is first wanted.

    Each question and search runs inside a context of `admit`.
    """

    def __init__(self, library: Library, admit: Admit) -> None:
        self._admit = admit
        self._library = library
        self._app: ASGIApp | None = None
        self._making = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = await self._find_app()
        if app is None:
            refusal = HttpError("unknown_name", "this version of the server does not speak MCP")
            await send_error(send, refusal, scope["path"])
            return
        await self._library.open_all()
        await app(scope, receive, send)

    async def close(self) -> None:
        """End all sessions."""
        close: Callable[[], Awaitable[None]] | None = getattr(self._app, "close", None)
        if close is not None:
            await close()

    async def _find_app(self) -> ASGIApp | None:
        async with self._making:
            if self._app is None and find_spec(_MODULE) is not None:
                module = await asyncio.to_thread(import_module, _MODULE)
                make: Callable[..., ASGIApp] = module.make_mcp_app
                self._app = make(self._library, admit=self._admit)
            return self._app
