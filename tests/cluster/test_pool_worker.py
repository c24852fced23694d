"""A worker, without a cluster: what it does before its first ask, and asks that end early."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from tomewise.cluster.pool_worker import Ask, Failed, Worker
from tomewise.cluster.worker_parts import ModelParts, WorkerParts
from tomewise.errors import UsageError
from tomewise.language import roles
from tomewise.language.extractive import ExtractiveModel
from tomewise.testing import HashEmbedder, check_language_model

GIVEN = roles.FuseIn(question="Who hid the letter?", cues=["Mara held it last."])

DESCRIBE = """
import asyncio
import sys
from tomewise.cluster.pool_worker import Worker
from tomewise.cluster.worker_parts import ModelParts, WorkerParts

parts = ModelParts(**{"model": sys.argv[1], "models": {"gist": sys.argv[2]}})
worker = Worker(WorkerParts(embedder="hash", model=parts), 1)
assert asyncio.run(worker.describe()).python, "it fits"
assert sys.argv[3] in sys.modules
"""


@pytest.mark.parametrize("models", [("ollama:a", "extractive"), ("extractive", "ollama:a")])
@pytest.mark.parametrize("module", ["tomewise.language.client", "tomewise.language.extractive.plays"])
def test_a_worker_imports_before_its_first_ask(models: tuple[str, str], module: str) -> None:
    """All workers do it side by side, while they start."""
    subprocess.run([sys.executable, "-c", DESCRIBE, *models, module], check=True, timeout=60)


class Stopping(ExtractiveModel):
    """A model that cancels its own ask, and counts its asks."""

    asked = 0

    async def ask(self, role: Any, given: Any) -> Any:
        self.asked += 1
        raise asyncio.CancelledError


def make_worker(model: Any) -> Worker:
    return Worker(WorkerParts(embedder="hash", model=ModelParts(model=model)), 1)


def read_error(output: str | Failed) -> str:
    assert isinstance(output, Failed)
    return str(output.error)


async def test_an_ask_that_was_given_up_before_it_came_asks_nobody() -> None:
    model = Stopping(HashEmbedder())
    worker = make_worker(model)
    await worker.give_up(7)
    reply = await worker.ask(Ask(number=7, role=roles.FUSE, size=0, given=GIVEN, most=0))
    assert read_error(reply.output) == "the ask was given up"
    assert model.asked == 0


async def test_a_model_that_cancels_its_own_ask_is_named() -> None:
    reply = await make_worker(Stopping(HashEmbedder())).ask(Ask(number=7, role=roles.FUSE, size=0, given=GIVEN, most=0))
    assert read_error(reply.output).startswith("the model extractive cancelled an ask of 'fuse' itself")


class Renaming(ExtractiveModel):
    """A model whose `prepare` is another method than ours."""

    async def prepare(self, prompt: str) -> None:  # type: ignore[override]
        pass


class Writing(ExtractiveModel):
    """A model whose `prepare` is not async."""

    def prepare(self) -> None:  # type: ignore[override]
        pass


@pytest.mark.parametrize("model", [Renaming(HashEmbedder()), Writing(HashEmbedder())], ids=["prompt", "plain"])
async def test_a_model_that_cannot_be_prepared_is_named(model: Any) -> None:
    failed = await make_worker(model).describe()
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, UsageError)
    assert ": the model extractive could not be prepared (TypeError: " in str(failed.error)
    assert "`prepare` takes no arguments and is async; correct it" in str(failed.error)
    with pytest.raises((AssertionError, TypeError), match="prepare"):
        await check_language_model(model, roles.FUSE, GIVEN)
