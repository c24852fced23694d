"""MCP over `tome mcp` as a process, and over HTTP in another app; `server/test_mcp_endpoint` has `tome serve`."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import stdio_client
from tests.conftest import Ran
from tests.language.openai_server import OpenAIServer, cancel_when_asked
from tests.mcp_server.mcp_tomes import QUESTION, call, serve_garbage, start_command
from tests.patience import SOON

from tomewise.server.limits import MCP_BYTES, MOST_ADDED
from tomewise.server.mcp_app import McpApp
from tomewise.tome.tome import Tome

MODES = ("legacy", "2026-07-28")
CLIENT = {"name": "test", "version": "1"}
OPEN = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}
ABOUT = {"protocolVersion": MODES[1], "clientCapabilities": {}, "clientInfo": CLIENT}
META = {f"io.modelcontextprotocol/{name}": value for name, value in ABOUT.items()}
ADDRESS = "http://127.0.0.1/mcp"
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def name_model(server: OpenAIServer) -> tuple[str, ...]:
    return ("--model", "openai:test", "--base-url", server.url)


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_asks_over_standard_input(story: Path, mode: str, command: Callable[..., Ran]) -> None:
    printed = json.loads(command("ask", QUESTION, "-m", story, "--json").out)
    steps: list[tuple[float, str]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, str(message).partition(":")[0]))

    async with Client(stdio_client(start_command(story)), mode=mode) as client:
        assert client.protocol_version == mode or mode == "legacy"
        assert len((await client.list_tools()).tools) == 11
        result = await client.call_tool("ask", {"question": QUESTION}, progress_callback=note)
        answer = result.structured_content or {}
        assert (answer["answer"]["text"], answer["answer"]["statements"]) == (printed["text"], printed["statements"])
        assert steps == [(1.0, "retrieved")]
        assert (await call(client, "overview"))["tome"] == "novel"


@pytest.mark.parametrize("mode", MODES)
async def test_a_cancelled_question_asks_the_model_no_more(story: Path, mode: str) -> None:
    with serve_garbage() as server:
        parameters = start_command(story, *name_model(server), OPENAI_API_KEY="test")
        async with Client(stdio_client(parameters), mode=mode) as client:
            asking = asyncio.create_task(client.call_tool("ask", {"question": QUESTION}))
            await cancel_when_asked(asking, server)
            assert (await call(client, "overview"))["documents"] == 1  # the server still serves
            failed = await client.call_tool("ask", {"question": QUESTION})
    assert failed.is_error
    assert len(server.requests) > 2  # without the cancellation a question sends more than one request


def test_nothing_but_the_protocol_is_printed_and_the_end_of_input_ends_the_process(story: Path) -> None:
    with serve_garbage() as server:
        parameters = start_command(story, *name_model(server), OPENAI_API_KEY="test")
        pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        command_line = [parameters.command, *parameters.args]
        process = subprocess.Popen(command_line, env=parameters.env, cwd=parameters.cwd, text=True, **pipes)
        assert process.stdin is not None
        ask = {"name": "ask", "arguments": {"question": QUESTION}}
        for message in (
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": OPEN},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": ask},
        ):
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
        assert server.arrived.wait(SOON)
        out, _ = process.communicate(timeout=SOON)  # closes standard input
        assert len(server.requests) == 1
    assert process.returncode == 0
    messages = [json.loads(line) for line in out.splitlines()]
    assert messages
    assert {message["jsonrpc"] for message in messages} == {"2.0"}


def test_without_write_a_missing_tome_is_an_error(here: Path) -> None:
    parameters = start_command(here / "new.tome")
    arguments = [parameters.command, *parameters.args]
    ran = subprocess.run(arguments, env=parameters.env, cwd=here, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (4, "")
    assert "new.tome" in ran.stderr


async def test_write_makes_the_tome(here: Path) -> None:
    path = here / "new.tome"
    async with Client(stdio_client(start_command(path, "--write", TOMEWISE_EMBEDDER="hash"))) as client:
        await call(client, "add_text", document="log", text="The keeper put out the light.")
    with Tome.open(path) as tome:
        assert tome.documents["log"].text == "The keeper put out the light."


def test_without_the_package_the_message_names_the_extra(
    story: Path, command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "mcp"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "tomewise.server.mcp_server", raising=False)
    ran = command("mcp", "-m", story)
    assert ran.code == 5
    assert "pip install 'tomewise[server]'" in ran.err


def test_config_prints_what_starts_the_server_and_no_password(story: Path, command: Callable[..., Ran]) -> None:
    printed = command("mcp", "-m", story.name, "--config", "--budget", "9 calls", "--model", "extractive")
    entry = json.loads(printed.out)["mcpServers"]["novel"]
    assert entry["command"] == (shutil.which("tome") or sys.executable)
    assert entry["args"][-7:] == ["mcp", "--tome", str(story), "--model", "extractive", "--budget", "9 calls"]
    printed = command("mcp", "-m", story, "--config", "--base-url", "http://me:secretword@localhost:8000/v1")
    assert "secretword" not in printed.out


async def test_another_app_has_tomes_that_join_later_and_takes_the_longest_text_in_any_json(story: Path) -> None:
    tomes: dict[str, Tome] = {}
    app = McpApp(tomes, write=True)
    text = ("\U0001f4d6" * 1000 + "\n\n") * (MOST_ADDED // 1002)
    text += "\U0001f4d6" * (MOST_ADDED - len(text))

    async with Tome.open(story) as book, httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app)) as web:

        async def post(tool: str, **arguments: Any) -> httpx2.Response:
            """Call a tool with a bare request of the newer protocol."""
            names = {"mcp-protocol-version": MODES[1], "mcp-method": "tools/call", "mcp-name": tool}
            params = {"name": tool, "arguments": arguments, "_meta": META}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            assert tool != "add_text" or len(body) > 11 * MOST_ADDED
            return await web.post(ADDRESS, content=body, headers={**HEADERS, **names})

        assert "no tome" in (await post("overview", tome="novel")).text
        tomes["novel"] = book
        reply = await post("add_text", document="long", text=text, title="\U0001f4d6" * 5000)
        assert (reply.status_code, "added: long" in reply.text) == (200, True), reply.text[:500]
        assert (await web.post(ADDRESS, content=b" " * (MCP_BYTES + 1), headers=HEADERS)).status_code == 413
        await app.close()
