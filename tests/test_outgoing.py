"""Whatever goes out, by the command or by MCP, is as `outgoing` says; `server/test_endpoints` has HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tests.conftest import Ran

from tomewise.outgoing import answer_models, passage_models, report_models
from tomewise.outgoing.form import Outgoing
from tomewise.sample import STORY
from tomewise.server import mcp_results
from tomewise.server.mcp_server import make_server
from tomewise.server.named_tomes import FixedLibrary
from tomewise.tome.tome import Tome

QUESTION = "Who wrote the Slack Water Book?"
DECLINED = "What did Napoleon eat at Waterloo?"


def check(model: type[Outgoing], reply: Any) -> None:
    """The reply has what the model has, and no key or value besides."""
    assert model.model_validate(reply).write() == reply


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
        check(answer_models.Asked, run("ask", question, "--session", "talk"))
        check(answer_models.TracedAnswer, run("ask", question, "--trace", "--document", "story.md"))
    for piece in run("search", QUESTION):
        check(passage_models.Evidence, piece)
    check(answer_models.Trace, run("log", 1))
    check(answer_models.Session, run("sessions", "talk"))
    check(report_models.Contents, run("show"))
    check(passage_models.Document, run("show", "story.md"))
    check(report_models.Entity, run("show", "--entity", "Slack Water Book"))
    check(report_models.BuildCosts, run("build", "--system", "raptor", "--estimate"))
    check(report_models.BuildReport, run("build", "--system", "raptor"))
    check(report_models.AddReport, run("add", here / "story.md"))
    check(report_models.RemoveReport, run("remove", "story.md", "--yes"))


async def test_mcp(story: Path) -> None:
    with Tome.open(story) as tome:
        async with Client(make_server(FixedLibrary({"novel": tome}), write=True)) as client:

            async def call(model: type[Outgoing], tool: str, **arguments: Any) -> None:
                result = await client.call_tool(tool, arguments)
                assert not result.is_error, result.content
                check(model, result.structured_content)

            for question in (QUESTION, DECLINED):
                await call(mcp_results.AnswerResult, "ask", question=question)
            await call(mcp_results.SearchResult, "search", query=QUESTION)
            await call(mcp_results.TextResult, "read", document="story.md", end=3000)
            await call(mcp_results.DocumentsResult, "list_documents")
            await call(mcp_results.OverviewResult, "overview")
            await call(mcp_results.EntityResult, "entity", name="Slack Water Book")
            await call(mcp_results.BuildResult, "build", system="raptor")
            await call(mcp_results.BuildResult, "build", system="raptor", accept_calls=1000)
            await call(mcp_results.AddResult, "add_text", document="note", text="Ada put out the light.")
            await call(mcp_results.RemoveResult, "remove_document", document="note")


def test_an_answer_as_plain_data_is_what_the_command_prints(story: Path, command: Callable[..., Ran]) -> None:
    printed = json.loads(command("-m", story, "ask", QUESTION, "--json").out)
    with Tome.open(story) as tome:
        made = tome.ask(QUESTION).to_dict()
    assert printed.keys() - made.keys() == {"within", "nearest"}
    assert {**printed, "usage": 0} == {**printed, **made, "usage": 0}
