from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tomewise.evaluate.design import Design
from tomewise.evaluate.items import Dataset, Item
from tomewise.evaluate.metrics import find_metric
from tomewise.systems.registry import parse_variants
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

    def make(systems: tuple[str, ...] = ("naive", "hybrid"), **given: Any) -> Design:
        values: dict[str, Any] = {
            "dataset": dataset,
            "variants": parse_variants(systems),
            "model": ScriptedModel(DONE),
            "embedder": embedder,
            "metrics": (find_metric("em"), find_metric("f1"), find_metric("recall@2")),
        }
        return Design(**{**values, **given})

    return make
