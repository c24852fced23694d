"""Clients of agents and chats at a process of `tome serve`: what they get, and what happens when they leave."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import openai
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.conftest import Ran
from tests.language.openai_server import OpenAIServer, cancel_when_asked, reply_with
from tests.patience import NEVER, SOON
from tests.server.conftest import make_tome
from tests.server.served import TOKEN, Served, serve

MODES = ("legacy", "2026-07-28")
QUESTION = "Who put out the light?"


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[tuple[Served, OpenAIServer]]:
    """A server whose model never replies."""
    make_tome(tmp_path / "novel.tome")
    with OpenAIServer(lambda _: reply_with("too late", delay=NEVER)) as model:
        words = ("novel.tome", "--model", "openai:test", "--base-url", model.url)
        with serve(tmp_path, *words, OPENAI_API_KEY="k") as served:
            yield served, model


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
async def test_an_agent_that_cancels_asks_the_model_no_more(slow: tuple[Served, OpenAIServer], mode: str) -> None:
    served, model = slow
    async with connect(served, mode) as client:
        asking = asyncio.create_task(client.call_tool("ask", {"question": QUESTION}))
        await cancel_when_asked(asking, model)
        assert (await client.call_tool("overview", {})).structured_content


def test_a_chat_that_is_stopped_half_way_asks_the_model_no_more(slow: tuple[Served, OpenAIServer]) -> None:
    served, model = slow
    with httpx.Client(trust_env=False) as web:
        chat = openai.OpenAI(base_url=f"{served.url}/v1", api_key=TOKEN, max_retries=0, http_client=web)
        messages: Any = [{"role": "user", "content": QUESTION}]
        stream = chat.chat.completions.create(model="novel/naive", messages=messages, stream=True)
        assert next(iter(stream)).choices[0].delta.role == "assistant"
        assert model.arrived.wait(SOON)
        stream.close()
        assert model.left.wait(SOON)
        time.sleep(0.5)
        assert len(model.requests) == 1
    assert served.http.get("/api/health").json() == {"ok": True}


@pytest.mark.parametrize("words", [[], ["--no-stream"]])
def test_the_command_llm_gets_the_answer(served: Served, tmp_path: Path, words: list[str]) -> None:
    entry = {"model_id": "novel", "model_name": "novel/hybrid", "api_base": f"{served.url}/v1", "api_key_name": "tome"}
    (tmp_path / "extra-openai-models.yaml").write_text(json.dumps([entry]))  # JSON is YAML
    own = {**os.environ, "LLM_USER_PATH": str(tmp_path), "NO_PROXY": "127.0.0.1"}
    (tmp_path / "keys.json").write_text(json.dumps({"tome": TOKEN}))
    command = [sys.executable, "-m", "llm", "-m", "novel", *words, QUESTION]
    ran = subprocess.run(command, env=own, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert "[1] “Ada Marsh put out the light at nine.”" in ran.stdout, ran.stderr
