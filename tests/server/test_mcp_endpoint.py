"""Agents at `/mcp` of `tome serve`: what they get, and the token, the queue and the budget that hold there too."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.language.openai_server import OpenAIServer, reply_with
from tests.patience import NEVER, SOON
from tests.server.served import ASK, QUESTION, TOKEN, UPLOAD, Served, serve_novel

from tomewise.server.error_replies import HttpError
from tomewise.server.jobs import JobList
from tomewise.server.library import Library
from tomewise.server.serve_options import ServerOptions
from tomewise.server.service import Service
from tomewise.settings import Settings

MODES = ("legacy", "2026-07-28")
CLIENT = {"name": "test", "version": "1"}
OPEN = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}
ABOUT = {"protocolVersion": MODES[1], "clientCapabilities": {}, "clientInfo": CLIENT}
META = {f"io.modelcontextprotocol/{name}": value for name, value in ABOUT.items()}
BOTH = {"accept": "application/json, text/event-stream"}
HEADERS = {**BOTH, "mcp-protocol-version": MODES[1], "mcp-method": "tools/call", "mcp-name": "ask"}


def write_call(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def write_question(system: str = "naive") -> dict[str, Any]:
    return write_call("tools/call", name="ask", arguments={"question": QUESTION, "system": system}, _meta=META)


def ask(served: Served, path: str = "/mcp", system: str = "naive", **headers: str) -> httpx.Response:
    return served.http.post(path, json=write_question(system), headers={**HEADERS, **headers})


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_of_either_protocol_is_answered(served: Served, mode: str) -> None:
    lines: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        lines.append(str(message).partition(":")[0])

    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=SOON) as web:
        transport = streamable_http_client(f"{served.url}/mcp", http_client=web)
        async with Client(transport, mode=mode) as client:
            result = await client.call_tool("ask", {"question": QUESTION}, progress_callback=note)
    assert "Ada Marsh" in result.model_dump_json()
    assert lines == ["retrieved"]


@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_drops_its_connection_asks_the_model_no_more(tmp_path: Path, mode: str) -> None:
    with (
        OpenAIServer(lambda _: reply_with("too late", delay=NEVER)) as model,
        serve_novel(tmp_path, model=model) as served,
    ):
        headers = HEADERS
        if mode == "legacy":
            opened = served.http.post("/mcp", json=write_call("initialize", **OPEN), headers=BOTH)
            headers = {**BOTH, "mcp-session-id": opened.headers["mcp-session-id"]}
            begun = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            served.http.post("/mcp", json=begun, headers=headers).raise_for_status()
        served.send_and_leave("/mcp", write_question(), model.arrived, **headers)  # no message of the protocol
        assert model.left.wait(SOON)
        time.sleep(0.5)
        assert len(model.requests) == 1


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_a_question_at_either_address(served: Served, path: str):
    reply = ask(served, path)
    assert (reply.status_code, "Ada Marsh" in reply.text) == (200, True)
    assert "this server allows 20 at most" in ask(served, path, "hybrid+probe cycles=1000000").text
    assert ask(served, path, authorization="").status_code == 401


def test_what_questions_spend_counts(tmp_path: Path):
    with (
        OpenAIServer(lambda _: reply_with("not what was asked for")) as model,
        serve_novel(tmp_path, "--budget", "1 calls", model=model) as served,
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
    service = Service(library, ServerOptions(questions=1, waiting=0, seconds=0.5), JobList(library))
    async with service.admit():
        with pytest.raises(HttpError, match="too many questions wait"):
            async with service.admit():
                pass
    with pytest.raises(TimeoutError):  # the place is free again, and one that takes too long ends
        async with service.admit():
            await asyncio.sleep(SOON)
