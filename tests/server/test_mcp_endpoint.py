"""MCP at `/mcp`: the token, the queue and the budget of the server hold there too."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from tests.language.openai_server import OpenAIServer, reply_with
from tests.server.conftest import make_tome
from tests.server.served import TOKEN, Served, serve

from tomewise.errors import TomewiseError
from tomewise.server.jobs import JobList
from tomewise.server.library import Library
from tomewise.server.serve_options import ServerOptions
from tomewise.server.service import Service
from tomewise.settings import Settings

MODE = "2026-07-28"
ABOUT = {"protocolVersion": MODE, "clientCapabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
META = {f"io.modelcontextprotocol/{name}": value for name, value in ABOUT.items()}
HEADERS = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": MODE,
    "mcp-method": "tools/call",
    "mcp-name": "ask",
}


def ask(served: Served, path: str = "/mcp", **headers: str) -> httpx.Response:
    given = {"name": "ask", "arguments": {"question": "Who put out the light?", "system": "naive"}, "_meta": META}
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": given}
    return served.http.post(path, json=body, headers={**HEADERS, **headers})


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_a_question_at_either_address(served: Served, path: str):
    reply = ask(served, path)
    assert (reply.status_code, "Ada Marsh" in reply.text) == (200, True)
    assert ask(served, path, authorization="").status_code == 401


def test_what_questions_spend_counts(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    with OpenAIServer(lambda _: reply_with("not what was asked for")) as model:
        words = ("novel.tome", "--model", "openai:test", "--base-url", model.url, "--max-calls", "1")
        with serve(tmp_path, *words, OPENAI_API_KEY="test") as served:
            assert "limit" in ask(served).text
            assert len(model.requests) == 1
            assert served.http.get("/api/info").json()["spent"]["calls"] == 1


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("/mcp", "bytes: send less"),
        ("/api/tomes/novel/documents", "--max-upload"),
        ("/api/tomes/novel/ask", "bytes: send less"),
    ],
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
