"""A connection may not hold a place with the head of a request that never ends."""

from __future__ import annotations

import asyncio
import time

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from tests.patience import SOON

from tomewise.server import listening as connection


async def reply(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.sleep(1.0 if scope["path"] == "/slow" else 0.0)
    await PlainTextResponse("done")(scope, receive, send)


async def listen() -> tuple[asyncio.Server, uvicorn.server.ServerState]:
    config = uvicorn.Config(reply, log_config=None, lifespan="off", timeout_keep_alive=60)
    config.load()
    state = uvicorn.server.ServerState()
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: connection.Connection(config, state, {}), "127.0.0.1", 0), state


async def test_half_open_connections_of_one_peer_give_way_to_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_MOST_WAITING", 5)
    monkeypatch.setattr(connection, "_FRESH_SECONDS", 0.2)
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
    monkeypatch.setattr(connection, "_MOST_WAITING", 5)
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
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.5)
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
