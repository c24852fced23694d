"""Send what happens during a call to the client as its progress, and end the call when the client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tomewise.concurrency import run_side_by_side
from tomewise.language.fences import oneline

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context

Notify = Callable[[str], None]
_LONGEST = 300  # characters of a message


LEFT = "tomewise.left"  # in the ASGI scope of a request: the event that its client has left


class ClientLeft(Exception):
    """The client of a call closed its connection, so nobody waits for the result."""


@asynccontextmanager
async def send_progress(context: Context[Any, Any]) -> AsyncIterator[Notify]:
    """A function that sends one line to the client; any thread may call it. All lines are sent before this ends.

    Cancels what runs inside and raises ClientLeft when the client leaves. Before protocol 2026-07-28 the package `mcp`
    would go on with the call, though its result can reach nobody.
    """
    lines: asyncio.Queue[str | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def notify(line: str) -> None:
        loop.call_soon_threadsafe(lines.put_nowait, line)

    async def send() -> None:
        count = 0
        while (line := await lines.get()) is not None:
            count += 1
            await context.report_progress(count, message=oneline(line)[:_LONGEST])

    async with run_side_by_side() as group:
        group.create_task(send())
        watching = group.create_task(_watch(context))
        yield notify
        watching.cancel()
        loop.call_soon_threadsafe(lines.put_nowait, None)


async def _watch(context: Context[Any, Any]) -> None:
    """Raise ClientLeft when the client leaves. Returns at once if the client has no HTTP connection."""
    scope = getattr(context.request_context.request, "scope", {})
    if LEFT in scope:
        await scope[LEFT].wait()
        raise ClientLeft
