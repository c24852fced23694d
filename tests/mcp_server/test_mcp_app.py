"""The MCP server over streamable HTTP, mounted in another app, on a real socket."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
import uvicorn
from mcp import Client
from starlette.applications import Starlette
from starlette.routing import Route
from tests.conftest import Ran
from tests.language.openai_server import cancel_when_asked
from tests.mcp_server.mcp_tomes import QUESTION, call, serve_garbage
from tests.patience import SOON

from tomewise.server.limits import MCP_BYTES, MOST_ADDED
from tomewise.server.mcp_app import McpApp, make_mcp_app
from tomewise.server.named_documents import FixedLibrary
from tomewise.tome.tome import Tome

MODES = ("legacy", "2026-07-28")
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@asynccontextmanager
async def serve(app: McpApp) -> AsyncIterator[str]:
    """The address at which an app with this one at `/mcp` listens."""

    @asynccontextmanager
    async def close_at_end(_: Starlette) -> AsyncIterator[None]:
        yield
        await app.close()

    outer = Starlette(routes=[Route("/mcp", endpoint=app)], lifespan=close_at_end)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # Setting up logging closes the handlers of other libraries, and one of these closes pytest's own stream.
        config = uvicorn.Config(outer, log_config=None, timeout_graceful_shutdown=2)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            await serving


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_asks_over_http(story: Path, mode: str, command: Callable[..., Ran]) -> None:
    printed = json.loads(command("ask", QUESTION, "-m", story, "--json").out)
    steps: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message)

    async with (
        Tome.open(story) as book,
        serve(make_mcp_app(FixedLibrary({"novel": book}))) as address,
        Client(address, mode=mode) as client,
    ):
        assert len((await client.list_tools()).tools) == 6
        result = await client.call_tool("ask", {"question": QUESTION}, progress_callback=note)
    answer = result.structured_content or {}
    assert (answer["text"], answer["citations"]) == (printed["text"], printed["citations"])
    assert [str(step).split(":")[0] for step in steps] == ["retrieved"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_cancelled_question_asks_the_model_no_more(
    story: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    with serve_garbage() as model:
        async with (
            Tome.open(story, model="openai:test", base_url=model.url) as book,
            serve(make_mcp_app(FixedLibrary({"novel": book}))) as address,
            Client(address, mode=mode) as client,
        ):
            asking = asyncio.create_task(client.call_tool("ask", {"question": QUESTION}))
            await cancel_when_asked(asking, model)
            assert (await client.call_tool("ask", {"question": QUESTION})).is_error
            assert len(model.requests) > 2


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_drops_its_connection_asks_the_model_no_more(
    story: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    with serve_garbage() as model:
        async with (
            Tome.open(story, model="openai:test", base_url=model.url) as book,
            serve(make_mcp_app(FixedLibrary({"novel": book}))) as address,
        ):
            async with httpx2.AsyncClient(headers=HEADERS) as web:
                asking = asyncio.create_task(_ask(web, address, mode))
                assert await asyncio.to_thread(model.arrived.wait, SOON)
                asking.cancel()  # sends no message of the protocol
                await asyncio.gather(asking, return_exceptions=True)
            assert await asyncio.to_thread(model.left.wait, SOON)
            await asyncio.sleep(0.5)
            assert len(model.requests) == 1


async def _ask(web: httpx2.AsyncClient, address: str, mode: str) -> None:
    """Ask a question with bare requests, as a client of either protocol does."""
    ask = {"name": "ask", "arguments": {"question": QUESTION}}
    if mode == "legacy":
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        opened = await web.post(address, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client})
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        await web.post(address, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session)
        await web.post(
            address, json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": ask}, headers=session
        )
        return
    about = {"protocolVersion": mode, "clientCapabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in about.items()}
    headers = {"mcp-protocol-version": mode, "mcp-method": "tools/call", "mcp-name": "ask"}
    body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {**ask, "_meta": meta}}
    reply = await web.post(address, json=body, headers=headers)
    pytest.fail(f"the question was not asked: {reply.text}")


async def test_a_tome_that_joins_the_library_later_is_found(story: Path) -> None:
    tomes: dict[str, Tome] = {}
    async with (
        Tome.open(story) as book,
        serve(make_mcp_app(FixedLibrary(tomes), write=True)) as address,
        Client(address) as client,
    ):
        assert (await client.list_resources()).resources == []
        tomes["novel"] = book
        assert (await call(client, "overview", tome="novel"))["documents"] == 1
        assert len((await client.list_tools()).tools) == 9


async def test_a_request_that_is_too_large_is_refused(story: Path) -> None:
    async with (
        Tome.open(story) as book,
        serve(make_mcp_app(FixedLibrary({"novel": book}))) as address,
        httpx2.AsyncClient() as web,
    ):
        reply = await web.post(address, content=b" " * (MCP_BYTES + 1), headers=HEADERS)
    assert reply.status_code == 413


async def test_the_longest_text_may_be_added_however_its_json_is_escaped(story: Path) -> None:
    text = ("\U0001f4d6" * 1000 + "\n\n") * (MOST_ADDED // 1002)
    arguments = {
        "document": "long",
        "text": text + "\U0001f4d6" * (MOST_ADDED - len(text)),
        "title": "\U0001f4d6" * 5000,
    }
    about = {"protocolVersion": MODES[1], "clientCapabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in about.items()}
    params = {"name": "add_text", "arguments": arguments, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = {**HEADERS, "mcp-protocol-version": MODES[1], "mcp-method": "tools/call", "mcp-name": "add_text"}
    async with (
        Tome.open(story) as book,
        serve(make_mcp_app(FixedLibrary({"novel": book}), write=True)) as address,
        httpx2.AsyncClient(timeout=60) as web,
    ):
        reply = await web.post(address, content=body, headers=headers)
    assert len(body) > 11 * MOST_ADDED
    assert (reply.status_code, "added: long" in reply.text) == (200, True), reply.text[:500]
