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


async def test_a_head_that_comes_byte_by_byte_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.5)
    loop = asyncio.get_running_loop()
    config = uvicorn.Config(reply, log_config=None, lifespan="off", timeout_keep_alive=60)
    config.load()
    state = uvicorn.server.ServerState()
    server = await loop.create_server(lambda: connection.Connection(config, state, {}), "127.0.0.1", 0)
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
