"""Send what happens during a call to the client as its progress."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tomewise.concurrency import side_by_side
from tomewise.language.fences import oneline

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context

Notify = Callable[[str], None]
_LONGEST = 300  # characters of a message


@asynccontextmanager
async def send_progress(context: Context[Any, Any]) -> AsyncIterator[Notify]:
    """A function that sends one line to the client; any thread may call it. All lines are sent before this ends."""
    lines: asyncio.Queue[str | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def notify(line: str) -> None:
        loop.call_soon_threadsafe(lines.put_nowait, line)

    async def send() -> None:
        count = 0
        while (line := await lines.get()) is not None:
            count += 1
            await context.report_progress(count, message=oneline(line)[:_LONGEST])

    async with side_by_side() as group:
        group.create_task(send())
        yield notify
        loop.call_soon_threadsafe(lines.put_nowait, None)
