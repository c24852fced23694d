"""Streams of events: a ping in silence, and the last words of a server that stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import pytest
from tests.patience import SOON

from tomewise.server import streaming
from tomewise.server.error_replies import HttpError
from tomewise.server.streaming import PING, ClientLeft, Emit, EventStream, Produce


async def read(stream: EventStream, sent: asyncio.Queue[bytes]) -> list[bytes]:
    """The pieces of the stream, each also put into a queue as it is sent."""
    pieces: list[bytes] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            pieces.append(message["body"])
            sent.put_nowait(message["body"])

    async def receive() -> Any:
        await asyncio.Event().wait()  # the client stays

    await asyncio.wait_for(stream({"type": "http"}, receive, send), SOON)
    return pieces


async def wait_for_piece(sent: asyncio.Queue[bytes], wanted: bytes) -> None:
    while await asyncio.wait_for(sent.get(), SOON) != wanted:
        pass


async def test_a_ping_fills_silence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streaming, "PING_SECONDS", 0.01)
    sent: asyncio.Queue[bytes] = asyncio.Queue()

    async def produce(emit: Emit) -> None:
        emit(b"first")
        await wait_for_piece(sent, PING)
        emit(b"second")

    pieces = await read(EventStream(nullcontext(produce), asyncio.Event(), b"stopped"), sent)
    assert [piece for piece in pieces if piece != PING] == [b"first", b"second", b""]
    assert pieces.index(PING) == 1


async def test_a_server_that_stops_ends_the_stream_with_its_last_words():
    sent: asyncio.Queue[bytes] = asyncio.Queue()
    stopping, cancelled = asyncio.Event(), asyncio.Event()

    async def produce(emit: Emit) -> None:
        emit(b"first")
        await wait_for_piece(sent, b"first")
        stopping.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    assert await read(EventStream(nullcontext(produce), stopping, b"stopped"), sent) == [b"first", b"stopped"]
    assert cancelled.is_set()


@pytest.mark.parametrize(("cause", "error"), [("leaving", ClientLeft), ("stopping", HttpError)])
async def test_work_that_waits_before_the_head_ends_when_nobody_waits_for_it(cause: str, error: type[Exception]):
    entered, left, causes = asyncio.Event(), asyncio.Event(), {"leaving": asyncio.Event(), "stopping": asyncio.Event()}

    @asynccontextmanager
    async def wait_for_turn() -> AsyncIterator[Produce]:
        entered.set()
        try:
            await asyncio.Event().wait()
            yield NotImplemented
        finally:
            left.set()

    async def receive() -> Any:
        await causes["leaving"].wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        raise AssertionError(message)

    stream = EventStream(wait_for_turn(), causes["stopping"], b"stopped")
    call = asyncio.create_task(stream({"type": "http"}, receive, send))  # type: ignore[arg-type]
    await asyncio.wait_for(entered.wait(), SOON)
    causes[cause].set()
    with pytest.raises(error):
        await asyncio.wait_for(call, SOON)
    assert left.is_set()
