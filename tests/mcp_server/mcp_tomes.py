"""What the tests of the MCP server share: a tome of the sample story, and a process of `tome mcp`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult
from tests.language.openai_server import OpenAIServer, in_turn, reply_with
from tests.patience import NEVER

from tomewise.sample import STORY
from tomewise.server.mcp_server import TomeServer
from tomewise.tome.tome import Tome
from tomewise.types import Document

SOURCE = Path(__file__).resolve().parents[2] / "src"
QUESTION = "Who wrote the Slack Water Book?"
GARBAGE = "{this is not what was asked for"  # a model that replies so is asked a second time


def serve_garbage() -> OpenAIServer:
    """A model server that never replies to the first request, and to the others what fits no role."""
    return OpenAIServer(in_turn(reply_with(GARBAGE, delay=NEVER), reply_with(GARBAGE)))


def make_tome(path: Path) -> Path:
    """A tome with the sample story under the id `story`."""
    with Tome.open(path, embedder="hash") as tome:
        tome.add(Document(id="story", text=STORY.read_text(encoding="utf-8"), metadata={"year": 1911}))
    return path


def start_command(path: Path, *options: str, **environment: str) -> StdioServerParameters:
    """How a client starts `tome mcp` for this tome, with these options and nothing of this machine's settings."""
    environment = {
        "PYTHONPATH": str(SOURCE),
        "XDG_CONFIG_HOME": str(path.parent),
        "NO_PROXY": "127.0.0.1",
    } | environment
    words = ["-m", "tomewise", "mcp", "-m", str(path), *options]
    return StdioServerParameters(command=sys.executable, args=words, env=environment, cwd=path.parent)


@asynccontextmanager
async def connect(*paths: Path, **options: Any) -> AsyncIterator[Client]:
    """A client in the same process as the server of these tomes, made with these options of `TomeServer`."""
    books = {path.stem: Tome.open(path) for path in paths}
    try:
        async with Client(TomeServer(books, **options)) as client:
            yield client
    finally:
        for book in books.values():
            await book.aclose()


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured content of a call that succeeds."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, read_text(result)
    assert result.structured_content is not None
    return result.structured_content


async def fail(client: Client, tool: str, **arguments: Any) -> str:
    """The message of a call that fails."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return read_text(result)


def read_text(result: CallToolResult) -> str:
    """The text of a result."""
    (content,) = result.content
    assert content.type == "text"
    return content.text


def name_document(tome: str, document: str) -> str:
    """The address of a document as a resource."""
    return f"tome://{tome}/documents/{quote(document, safe='')}"
