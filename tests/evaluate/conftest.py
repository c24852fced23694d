from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tomewise.evaluate.design import Design
from tomewise.evaluate.items import Dataset, Item
from tomewise.evaluate.metrics import find_metric
from tomewise.evaluate.results import Results
from tomewise.evaluate.running import run
from tomewise.testing import HashEmbedder
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Document, Question

NAMES = ("Ada Marsh", "Tom Hale", "Ida Poe", "Sam Reed")
DONE = {"answer": lambda given: {"answer": "the " + given.question.split()[1], "quotes": []}}


@pytest.fixture(scope="session")
def embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
def dataset() -> Dataset:
    """Four short documents and a question about each; the fourth is asked over its own document alone."""
    documents = tuple(
        Document(id=f"d{number}", text=f"{name} kept the lighthouse number {number} at Skerry.")
        for number, name in enumerate(NAMES)
    )
    items = tuple(
        Item(
            id=f"q{number}",
            question=Question(text=f"Which lighthouse did {name} keep?"),
            answers=("the lighthouse",),
            supporting=(f"d{number}",),
            documents=(f"d{number}",) if number == 3 else (),
            slices={"hops": number % 2 + 1},
        )
        for number, name in enumerate(NAMES)
    )
    return Dataset(name="tiny", documents=documents, items=items)


@pytest.fixture
def experiment(dataset: Dataset, embedder: HashEmbedder) -> Callable[..., Design]:
    """Makes an experiment on the tiny dataset; arguments replace its defaults."""

    def make(*systems: Any, **given: Any) -> Design:
        values: dict[str, Any] = {
            "dataset": dataset,
            "variants": systems or ("naive", "hybrid"),
            "model": ScriptedModel(DONE),
            "embedder": embedder,
            "metrics": (find_metric("em"), find_metric("f1"), find_metric("recall@2")),
        }
        return Design(**{**values, **given})

    return make


@pytest.fixture
def evaluate(experiment: Callable[..., Design], tmp_path: Path) -> Callable[..., Awaitable[Results]]:
    """Runs such an experiment in the folder of the test."""

    async def run_here(*systems: Any, retry_failed: bool = False, out: Path = tmp_path, **given: Any) -> Results:
        return await run(experiment(*systems, **given), out, retry_failed=retry_failed)

    return run_here
