"""`tome mcp` as a real process, through the client of the package `mcp` and through bare pipes."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import stdio_client
from tests.conftest import Ran
from tests.language.openai_server import OpenAIServer, cancel_when_asked
from tests.mcp_server.mcp_tomes import QUESTION, call, serve_garbage, start_command
from tests.patience import SOON

from tomewise.tome.tome import Tome

MODES = ("legacy", "2026-07-28")


def name_model(server: OpenAIServer) -> tuple[str, ...]:
    return ("--model", "openai:test", "--base-url", server.url)


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_asks_over_standard_input(story: Path, mode: str, command: Callable[..., Ran]) -> None:
    printed = json.loads(command("ask", QUESTION, "-m", story, "--json").out)
    steps: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message)

    async with Client(stdio_client(start_command(story)), mode=mode) as client:
        assert client.protocol_version == mode or mode == "legacy"
        assert len((await client.list_tools()).tools) == 6
        result = await client.call_tool("ask", {"question": QUESTION}, progress_callback=note)
        answer = result.structured_content or {}
        assert (answer["text"], answer["citations"]) == (printed["text"], printed["citations"])
        assert [str(step).split(":")[0] for step in steps] == ["retrieved"]
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
        process = subprocess.Popen(
            [parameters.command, *parameters.args],
            env=parameters.env,
            cwd=parameters.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        for message in _begin():
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
        assert server.arrived.wait(SOON)
        out, _ = process.communicate(timeout=SOON)  # closes standard input
        assert len(server.requests) == 1
    assert process.returncode == 0
    messages = [json.loads(line) for line in out.splitlines()]
    assert messages
    assert {message["jsonrpc"] for message in messages} == {"2.0"}


def _begin() -> list[dict[str, Any]]:
    """The messages of a client that opens a connection and asks a question."""
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    ask = {"name": "ask", "arguments": {"question": QUESTION}}
    return [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": ask},
    ]


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
        assert tome.document("log").text == "The keeper put out the light."


async def test_config_prints_what_starts_the_server(story: Path, command: Callable[..., Ran]) -> None:
    printed = command("mcp", "-m", story.name, "--config", "--max-calls", 9, "--model", "extractive")
    entry = json.loads(printed.out)["mcpServers"]["novel"]
    command_line = [entry["command"], *entry["args"]]
    assert command_line[-7:] == ["mcp", "--tome", str(story), "--model", "extractive", "--max-calls", "9"]
    assert entry["command"] == (shutil.which("tome") or sys.executable)
    parameters = start_command(story)
    parameters.args = ["-m", "tomewise", *entry["args"][entry["args"].index("mcp") :]]
    async with Client(stdio_client(parameters)) as client:
        assert (await call(client, "overview"))["documents"] == 1


def test_config_shows_no_password(story: Path, command: Callable[..., Ran]) -> None:
    printed = command("mcp", "-m", story, "--config", "--base-url", "http://me:secretword@localhost:8000/v1")
    assert "secretword" not in printed.out


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
