"""Workers without a cluster: what must be equal on all machines, how they begin, and how asks end early."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.language.openai_server import OpenAIServer, in_turn, reply_with

from tomewise.cluster.pool_worker import Ask, Failed, Worker
from tomewise.cluster.pooled_model import make_model_parts
from tomewise.cluster.worker_parts import ModelParts, WorkerFacts, WorkerParts, check_agreement, describe_here
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import MissingDependency, ModelUnavailable, TomewiseError, UsageError
from tomewise.language import roles
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.prompts import Prompts
from tomewise.settings import Settings
from tomewise.testing import check_language_model

PARTS = WorkerParts(embedder="hash")
HERE = WorkerFacts(
    machine="near", tomewise="0.1.0", python="3.11.7", ray="2.60.0", packages=("own-part 1.0",), keys=(), row=(0.6, 0.8)
)
THERE = replace(HERE, machine="far")
GIVEN = roles.FuseIn(question="Who hid the letter?", cues=["Mara held it last."])


def test_an_equal_worker_is_taken() -> None:
    check_agreement(HERE, THERE, PARTS)
    check_agreement(HERE, replace(THERE, packages=("more 2.0", *HERE.packages), row=(0.60001, 0.79999)), PARTS)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"tomewise": "0.2.0"}, UsageError, "the worker on far has Tomewise 0.2.0, and this process 0.1.0"),
        ({"python": "3.12.1"}, UsageError, "the worker on far has Python 3.12.1"),
        ({"ray": "2.59.0"}, UsageError, "the worker on far has Ray 2.59.0"),
        ({"packages": ()}, MissingDependency, "the worker on far lacks packages with parts.*own-part 1.0"),
        ({"packages": ("own-part 1.1",)}, MissingDependency, "lacks.*own-part 1.0"),
        ({"row": (0.8, -0.6)}, UsageError, "the worker on far has another embedder"),
        ({"row": (0.6, 0.8, 0.0)}, UsageError, "the worker on far has another embedder"),
    ],
    ids=["tomewise", "python", "ray", "plug-in", "version of a plug-in", "embedder", "dimensions"],
)
def test_what_differs_is_named(changes: dict[str, Any], error: type[TomewiseError], message: str) -> None:
    with pytest.raises(error, match=message):
        check_agreement(HERE, replace(THERE, **changes), PARTS)


def test_a_key_that_only_one_process_has_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = WorkerParts(
        embedder="hash", model=ModelParts(model="openai:gpt-4o-mini", base_url="https://models.example/v1")
    )
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-machine")
    here = describe_here(parts, HashEmbedder())
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    there = describe_here(parts, HashEmbedder())
    check_agreement(there, here, parts)
    with pytest.raises(ModelUnavailable, match="lacks a key that is set here: set OPENAI_API_KEY where workers"):
        check_agreement(here, there, parts)
    with pytest.raises(ModelUnavailable, match="no key for openai:gpt-4o-mini: set OPENAI_API_KEY"):
        describe_here(WorkerParts(embedder="hash", model=ModelParts(model="openai:gpt-4o-mini")), HashEmbedder())


@pytest.mark.parametrize(
    "parts",
    [
        WorkerParts(embedder="hash", model=ModelParts(model="openai:m", base_url="http://localhost:8000/v1")),
        WorkerParts(embedder="openai:m", embedder_address="http://127.0.0.1:8000/v1"),
    ],
    ids=["model", "embedder"],
)
def test_localhost_is_refused_in_a_cluster_of_several_machines(parts: WorkerParts) -> None:
    check_agreement(HERE, replace(THERE, machine="near"), parts)
    with pytest.raises(UsageError, match="means another machine on each machine of the cluster, such as far"):
        check_agreement(HERE, THERE, parts)


class Stopping(ExtractiveModel):
    """A model that cancels its own ask, and counts its asks."""

    asked = 0

    async def ask(self, role: Any, given: Any) -> Any:
        self.asked += 1
        raise asyncio.CancelledError


class Writing(ExtractiveModel):
    """A model whose `prepare` is not async."""

    def prepare(self) -> None:  # type: ignore[override]
        pass


def make_worker(model: Any) -> Worker:
    return Worker(WorkerParts(embedder="hash", model=ModelParts(model=model)), 1)


@pytest.mark.parametrize(
    ("given_up", "message"),
    [(True, "the ask was given up"), (False, "the model extractive cancelled an ask of 'fuse' itself")],
)
async def test_an_ask_that_is_cancelled_says_by_whom(given_up: bool, message: str) -> None:
    model = Stopping(HashEmbedder())
    worker = make_worker(model)
    if given_up:
        await worker.give_up(7)  # before it came
    reply = await worker.ask(Ask(number=7, role=roles.FUSE, size=0, given=GIVEN, most=0))
    assert isinstance(reply.output, Failed)
    assert str(reply.output.error).startswith(message)
    assert model.asked == (not given_up)


async def test_a_model_that_cannot_be_prepared_is_named() -> None:
    model: Any = Writing(HashEmbedder())
    failed = await make_worker(model).describe()
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, UsageError)
    assert ": the model extractive could not be prepared (TypeError: " in str(failed.error)
    assert "correct `prepare` of its abilities, which takes no arguments and is async" in str(failed.error)
    with pytest.raises((AssertionError, TypeError), match="prepare"):
        await check_language_model(model, roles.FUSE, GIVEN)


async def test_prompts_of_the_user_are_sent_as_text_and_a_key_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "fuse.md").write_text("My own prompt: {{ question }}", encoding="utf-8")
    with OpenAIServer(in_turn(reply_with('{"cue": "Mara hid it."}'))) as server:
        settings = Settings(base_url=server.url, model="openai:test")
        parts = make_model_parts("openai:test", None, Prompts(tmp_path), None, settings)
        (tmp_path / "fuse.md").unlink()  # a worker has no such file
        model: Any = parts.make_model(HashEmbedder())
        await model.ask(roles.FUSE, GIVEN)
        await model.close()
        (prompt,) = server.prompts
        assert prompt.startswith("My own prompt: Who hid the letter?\n\n")
    with pytest.raises(UsageError, match="`api_key` is not sent to workers: set the variable of the key"):
        make_model_parts("openai:test", None, Prompts(), "sk-a-key-of-mine", Settings())
