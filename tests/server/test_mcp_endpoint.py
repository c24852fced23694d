"""Agents at `/mcp` of `tome serve`: what they get, and the token, the queue and the budget that hold there too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.conftest import Ran
from tests.language.openai_server import OpenAIServer, cancel_when_asked, reply_with
from tests.patience import NEVER, SOON
from tests.server.served import ASK, QUESTION, TOKEN, UPLOAD, Served, make_tome, serve_novel

from tomewise.errors import TomewiseError
from tomewise.server.jobs import JobList
from tomewise.server.library import Library
from tomewise.server.serve_options import ServerOptions
from tomewise.server.service import Service
from tomewise.settings import Settings

MODES = ("legacy", "2026-07-28")
MODE = MODES[1]
ABOUT = {"protocolVersion": MODE, "clientCapabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
META = {f"io.modelcontextprotocol/{name}": value for name, value in ABOUT.items()}
HEADERS = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": MODE,
    "mcp-method": "tools/call",
    "mcp-name": "ask",
}


def ask(served: Served, path: str = "/mcp", **headers: str) -> httpx.Response:
    given = {"name": "ask", "arguments": {"question": QUESTION, "system": "naive"}, "_meta": META}
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": given}
    return served.http.post(path, json=body, headers={**HEADERS, **headers})


@asynccontextmanager
async def connect(served: Served, mode: str) -> AsyncIterator[Client]:
    """A client of the package `mcp`, with the token."""
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=SOON) as web:
        transport = streamable_http_client(f"{served.url}/mcp", http_client=web)
        async with Client(transport, mode=mode) as client:
            yield client


@pytest.mark.parametrize("mode", MODES)
async def test_an_agent_gets_what_the_command_prints(
    served: Served, mode: str, command: Callable[..., Ran], here: Path
) -> None:
    make_tome(here / "novel.tome")
    printed = json.loads(command("ask", QUESTION, "-m", "novel.tome", "--json").out)
    lines: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        lines.append(str(message).partition(":")[0])

    async with connect(served, mode) as client:
        asked = {"question": QUESTION, "tome": "novel"}
        result = await client.call_tool("ask", asked, progress_callback=note)
        bad = await client.call_tool("ask", {**asked, "system": "hybrid+probe cycles=1000000"})
    answer: dict[str, Any] = result.structured_content or {}
    assert (answer["text"], answer["citations"]) == (printed["text"], printed["citations"])
    assert lines == ["retrieved"]
    assert (bad.is_error, "this server allows 20 at most" in bad.model_dump_json()) == (True, True)


@pytest.mark.parametrize("mode", MODES)
async def test_an_agent_that_cancels_asks_the_model_no_more(tmp_path: Path, mode: str) -> None:
    with (
        OpenAIServer(lambda _: reply_with("too late", delay=NEVER)) as model,
        serve_novel(tmp_path, model=model) as served,
    ):
        async with connect(served, mode) as client:
            asking = asyncio.create_task(client.call_tool("ask", {"question": QUESTION}))
            await cancel_when_asked(asking, model)
            assert (await client.call_tool("overview", {})).structured_content
            assert len(model.requests) == 1


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_a_question_at_either_address(served: Served, path: str):
    reply = ask(served, path)
    assert (reply.status_code, "Ada Marsh" in reply.text) == (200, True)
    assert ask(served, path, authorization="").status_code == 401


def test_what_questions_spend_counts(tmp_path: Path):
    with (
        OpenAIServer(lambda _: reply_with("not what was asked for")) as model,
        serve_novel(tmp_path, "--max-calls", "1", model=model) as served,
    ):
        assert "limit" in ask(served).text
        assert len(model.requests) == 1
        assert served.http.get("/api/info").json()["spent"]["calls"] == 1


@pytest.mark.parametrize(
    ("path", "remedy"), [("/mcp", "bytes: send less"), (UPLOAD, "--max-upload"), (ASK, "bytes: send less")]
)
def test_a_body_that_is_too_large_is_refused_with_what_helps_there(served: Served, path: str, remedy: str):
    about = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nAuthorization: Bearer {TOKEN}"
    reply = served.send_raw(f"{about}\r\nContent-Type: application/json\r\nContent-Length: 9999999999\r\n\r\n".encode())
    assert b" 413 " in reply.split(b"\r\n", 1)[0]
    message = json.loads(reply.partition(b"\r\n\r\n")[2])["error"]["message"]
    assert remedy in message
    assert ("--max-upload" in message) == path.endswith("/documents")


async def test_a_question_too_many_is_refused_with_a_sentence():
    library = Library(Settings())
    service = Service(library, ServerOptions(questions=1, waiting=0), JobList(library))
    async with service.admit():
        with pytest.raises(TomewiseError, match="too many questions wait"):
            async with service.admit():
                pass
    async with service.admit():
        pass


async def test_a_question_that_takes_too_long_ends():
    library = Library(Settings())
    service = Service(library, ServerOptions(seconds=0.01), JobList(library))
    with pytest.raises(TimeoutError):
        async with service.admit():
            await asyncio.sleep(5)
