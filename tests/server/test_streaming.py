"""Streams of events and connections: silence, clients that leave, heads that never end, and a server that stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from tests.patience import SOON

from tomewise.server import listening, streaming
from tomewise.server.error_replies import HttpError
from tomewise.server.streaming import PING, ClientLeft, Emit, EventStream, Produce


async def test_a_ping_fills_silence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streaming, "PING_SECONDS", 0.01)
    pieces: list[bytes] = []
    pinged = asyncio.Event()

    async def produce(emit: Emit) -> None:
        emit(b"first")
        await pinged.wait()
        emit(b"second")

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            pieces.append(message["body"])
            if message["body"] == PING:
                pinged.set()

    async def receive() -> Any:
        await asyncio.Event().wait()  # the client stays

    stream = EventStream(nullcontext(produce), asyncio.Event(), b"stopped")
    await asyncio.wait_for(stream({"type": "http"}, receive, send), SOON)
    assert [piece for piece in pieces if piece != PING] == [b"first", b"second", b""]
    assert pieces.index(PING) == 1


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


async def reply(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.sleep(1.0 if scope["path"] == "/slow" else 0.0)
    await PlainTextResponse("done")(scope, receive, send)


async def listen() -> tuple[asyncio.Server, uvicorn.server.ServerState]:
    config = uvicorn.Config(reply, log_config=None, lifespan="off", timeout_keep_alive=60)
    config.load()
    state = uvicorn.server.ServerState()
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: listening.Connection(config, state, {}), "127.0.0.1", 0), state


async def test_half_open_connections_of_one_peer_give_way_to_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "MOST_WAITING", 5)
    monkeypatch.setattr(listening, "FRESH_SECONDS", 0.2)
    server, state = await listen()
    async with server:
        port = server.sockets[0].getsockname()[1]
        others = [await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0)) for _ in range(5)]
        asking = await asyncio.open_connection("127.0.0.1", port)
        asking[1].write(b"GET /slow HTTP/1.1\r\nHost: here\r\n\r\n")
        half_open = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
        for _, writer in half_open:
            writer.write(b"GET / HT")
        await asyncio.sleep(0.3)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        assert b"200 OK" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SOON)
        for old_reader, _ in half_open[:-4]:
            assert await asyncio.wait_for(old_reader.read(), SOON) == b""  # the oldest were closed
        assert len(state.connections) == len(others) + 1 + 4 + 1
        assert b"200 OK" in await asyncio.wait_for(asking[0].readuntil(b"\r\n\r\n"), SOON)  # it was not waiting
        for _, open_writer in (*others, asking, *half_open, (reader, writer)):
            open_writer.close()


async def test_many_connections_at_once_are_all_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "MOST_WAITING", 5)
    server, _ = await listen()
    async with server:
        port = server.sockets[0].getsockname()[1]
        opened = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", port) for _ in range(60)))
        for _, writer in opened:
            writer.write(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        for reader, writer in opened:
            assert b"200 OK" in await asyncio.wait_for(reader.read(), SOON)
            writer.close()


async def test_a_head_that_comes_byte_by_byte_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "HEAD_SECONDS", 0.5)
    server, _ = await listen()
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        began = time.monotonic()
        ending = asyncio.ensure_future(reader.read())
        while not ending.done() and time.monotonic() - began < SOON:
            writer.write(b"G")
            await asyncio.wait([ending], timeout=0.05)
        assert ending.done()
        assert time.monotonic() - began > 0.4
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for path in ("/slow", "/"):  # a reply may take longer than a head, and the connection serves the next request
            writer.write(f"GET {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
            assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(4) == b"done"
        assert await asyncio.wait_for(reader.read(), SOON) == b""  # it has sent no further head
        writer.close()
