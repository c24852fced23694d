"""What goes out has one shape: nouns, whose JSON derives from their fields, whatever the door."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tests.conftest import Ran

import tomewise
from tomewise.sample import STORY
from tomewise.server import mcp_results, openai_api
from tomewise.server.mcp_server import TomeServer
from tomewise.tome import entities, holdings, reports, session_record, traces
from tomewise.tome.tome import Tome
from tomewise.types import Answer, Document, Event, Evidence, Place, Quote, Statement, read_plain, write_plain

QUESTION = "Who wrote the Slack Water Book?"
DECLINED = "What did Napoleon eat at Waterloo?"


def check(kind: Any, reply: Any) -> None:
    """The reply has what the noun has, and no key or value besides."""
    assert write_plain(read_plain(kind, reply)) == reply


@pytest.fixture
def story(here: Path, command: Callable[..., Ran]) -> Path:
    """A tome of the sample with a graph."""
    path = here / "novel.tome"
    (here / "story.md").write_bytes(STORY.read_bytes())
    assert command("-m", path, "add", here / "story.md").code == 0
    assert command("-m", path, "build", "--system", "hipporag2").code == 0
    return path


def test_the_command(here: Path, story: Path, command: Callable[..., Ran]) -> None:
    def run(*words: object) -> Any:
        return json.loads(command("-m", story, *words, "--json").out)

    for question in (QUESTION, DECLINED):
        check(Answer, run("ask", question, "--session", "talk"))
        traced = run("ask", question, "--trace", "--document", "story.md")
        check(list[Event], traced.pop("events"))
        check(Answer, traced)
    check(list[Evidence], run("search", QUESTION))
    for kind, words in (
        (traces.Trace, ("log", 1)),
        (session_record.SessionRecord, ("sessions", "talk")),
        (holdings.Contents, ("show",)),
        (Document, ("show", "story.md")),
        (entities.Entity, ("show", "--entity", "Slack Water Book")),
        (reports.Price, ("build", "--system", "raptor", "--estimate")),
        (reports.BuildReport, ("build", "--system", "raptor")),
        (reports.AddReport, ("add", here / "story.md")),
        (reports.RemoveReport, ("remove", "story.md", "--yes")),
    ):
        check(kind, run(*words))


def test_a_quote_of_several_statements_has_one_number() -> None:
    quote = Quote(
        document="/d/log.txt", passage="p", position=1, start=0, end=9, text="Ada\nMarsh", place=Place(page=3)
    )
    statements = tuple(Statement(text=text, support="inferred", quotes=(quote,)) for text in ("A.", "B."))
    answer = Answer(text="A. B.", statements=statements, claimed="full")
    assert str(quote) == "“Ada Marsh” (log.txt, p. 3, part 2)"
    assert str(answer) == f"A. [1] B. [1]\n[1] {quote}"
    content = openai_api.write_answer(answer, "novel", "http://127.0.0.1")["content"]
    assert "[1]" in content
    assert "[2]" not in content


async def test_mcp(story: Path) -> None:
    with Tome.open(story) as tome:
        async with Client(TomeServer({"novel": tome}, write=True)) as client:
            for kind, tool, arguments in (
                (mcp_results.AnswerResult, "ask", {"question": QUESTION}),
                (mcp_results.AnswerResult, "ask", {"question": DECLINED}),
                (mcp_results.SearchResult, "search", {"query": QUESTION}),
                (mcp_results.TextResult, "read", {"document": "story.md", "end": 3000}),
                (mcp_results.DocumentsResult, "list_documents", {}),
                (mcp_results.OverviewResult, "overview", {}),
                (mcp_results.EntityResult, "entity", {"name": "Slack Water Book"}),
                (mcp_results.BuildResult, "build", {"system": "raptor"}),
                (mcp_results.BuildResult, "build", {"system": "raptor", "accept": "1000 calls"}),
                (mcp_results.AddResult, "add_text", {"document": "note", "text": "Ada put out the light."}),
                (mcp_results.RemoveResult, "remove_document", {"document": "note"}),
            ):
                result = await client.call_tool(tool, arguments)
                assert not result.is_error, result.content
                reply = result.structured_content or {}
                assert kind.model_validate(reply).model_dump(mode="json") == reply


def test_an_answer_as_plain_data_is_what_the_command_prints(story: Path, command: Callable[..., Ran]) -> None:
    printed = json.loads(command("-m", story, "ask", QUESTION, "--json").out)
    with Tome.open(story) as tome:
        made = tome.ask(QUESTION).to_dict()
    assert {**printed, "cost": 0, "trace": 0} == {**made, "cost": 0, "trace": 0}


ASK_EVERYWHERE = """
import asyncio, json
from pathlib import Path
from mcp import Client
from tests.server.served import make_client
from tomewise import Document, Tome
from tomewise.server.mcp_server import TomeServer
from tomewise.terminal.program import run
from tools.docs.reference_pages import write_reference_pages

QUESTION = "Who put out the light?"
with Tome.open("a.tome", embedder="hash") as tome:
    tome.add(Document(id="log", text="The keeper, Ada Marsh, put out the light at nine."))
    answer = tome.ask(QUESTION)
    assert answer.mood == answer.to_dict()["mood"] == "calm", "Python"
    assert tome.traces[answer.trace].answer.mood == "calm", "traces"

    async def ask_by_mcp():
        async with Client(TomeServer({"a": tome})) as client:
            return (await client.call_tool("ask", {"question": QUESTION})).structured_content

    assert asyncio.run(ask_by_mcp())["answer"]["mood"] == "calm", "MCP"
with make_client(files=[Path("a.tome").resolve()]) as client:
    assert client.post("/api/tomes/a/ask", json={"question": QUESTION}).json()["mood"] == "calm", "HTTP"
    schema = client.get("/openapi.json").json()["components"]["schemas"]["Answer"]["properties"]["mood"]
    assert schema["description"] == "How it sounds.", "OpenAPI"
pages = write_reference_pages()
assert "How it sounds." in pages["http.md"], "the page of HTTP"
run(["-m", "a.tome", "ask", QUESTION, "--json"])
"""


def test_a_new_field_of_an_answer_appears_at_every_door(here: Path) -> None:
    package = here / "copy" / "tomewise"
    shutil.copytree(Path(tomewise.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    nouns = package / "types" / "proof.py"
    field = "    only_quotes: bool = False\n"
    source = nouns.read_text()
    assert source.count(field) == 1
    nouns.write_text(source.replace(field, f'    mood: str = "calm"\n    """How it sounds."""\n{field}'))
    places = [str(package.parent), str(Path(__file__).parent.parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    made = subprocess.run(
        [sys.executable, "-c", ASK_EVERYWHERE], env=environment, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout.splitlines()[-1])["mood"] == "calm"
