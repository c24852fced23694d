"""Streams of events: a ping in silence, and the last words of a server that stops."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest
from tests.patience import SOON

from tomewise.server import streaming
from tomewise.server.streaming import PING, Emit, EventStream


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
