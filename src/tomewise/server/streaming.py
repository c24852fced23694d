"""Server-sent events, and work that ends when the client leaves or the server stops."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias, TypeVar

from fastapi.sse import format_sse_event
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tomewise.server.error_replies import HttpError

T = TypeVar("T")
Emit: TypeAlias = Callable[[bytes], None]
Produce: TypeAlias = Callable[[Emit], Coroutine[Any, Any, None]]
PING = b": ping\n\n"
PING_SECONDS = 15.0


class ClientLeft(Exception):
    """The client closed the connection: nobody waits for a reply."""


def write_event(name: str, data: Any) -> bytes:
    """One event, its data as JSON."""
    return format_sse_event(data_str=json.dumps(data, ensure_ascii=False, default=str), event=name)


def refuse_stopping() -> HttpError:
    """What a client learns when the server ends before its work does."""
    return HttpError("stopping", "the server is stopping: ask again when it is back, and no call is repeated")


async def run_while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work. It is cancelled when the client leaves or the server stops."""
    stopping: asyncio.Event = request.app.state.stopping
    async with _race(work, request.receive, stopping) as (working, _):
        if working.done():
            return working.result()
        raise refuse_stopping() if stopping.is_set() else ClientLeft


class EventStream(Response):
    """Sends what is produced at once, and a ping in silence. Cancels it as soon as the client leaves.

    `work` is entered before the head is sent, so what it raises is a reply with a status; it gives the function that
    produces the stream, which must not raise, and is left when the stream ends. When the server stops, the producer is
    cancelled too, and `last_words` end the stream. Before the head that is a refusal, and a client that leaves is
    nobody to reply to: ClientLeft.
    """

    media_type = "text/event-stream"

    def __init__(self, work: AbstractAsyncContextManager[Produce], stopping: asyncio.Event, last_words: bytes) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._work = work
        self._stopping = stopping
        self._last_words = last_words

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = asyncio.Event()
        async with _race(self._work_and_stream(begun, send), receive, self._stopping) as (working, leaving):
            if begun.is_set() and not working.done():
                await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
            elif not begun.is_set():
                raise ClientLeft if leaving.done() else refuse_stopping()

    async def _work_and_stream(self, begun: asyncio.Event, send: Send) -> None:
        async with self._work as produce:
            begun.set()
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            emitted: asyncio.Queue[bytes | None] = asyncio.Queue()  # None wakes the loop below
            producing = asyncio.create_task(produce(emitted.put_nowait))
            ending = asyncio.create_task(self._stopping.wait())
            for task in (producing, ending):
                task.add_done_callback(lambda _: emitted.put_nowait(None))
            try:
                while (chunk := await _read_or_ping(emitted)) is not None:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                last_words = b"" if producing.done() else self._last_words
                await send({"type": "http.response.body", "body": last_words, "more_body": False})
            finally:
                await _cancel(producing, ending)


@asynccontextmanager
async def _race(
    work: Coroutine[Any, Any, T], receive: Receive, stopping: asyncio.Event
) -> AsyncIterator[tuple[asyncio.Task[T], asyncio.Task[None]]]:
    """The work and the waiting for the client to leave, as soon as one has ended or the server stops.

    Both are cancelled at the end.
    """
    working, leaving = asyncio.create_task(work), asyncio.create_task(_wait_for_leaving(receive))
    ending = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait((working, leaving, ending), return_when=asyncio.FIRST_COMPLETED)
        yield working, leaving
    finally:
        await _cancel(working, leaving, ending)


async def _read_or_ping(emitted: asyncio.Queue[bytes | None]) -> bytes | None:
    """The next chunk, or a ping after a while of silence."""
    try:
        async with asyncio.timeout(PING_SECONDS):
            return await emitted.get()
    except TimeoutError:
        return PING


async def _wait_for_leaving(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
