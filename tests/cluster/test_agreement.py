"""What must be equal on all machines is compared before any work, and an error names the machine and the remedy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tomewise.cluster.agreement import check_agreement
from tomewise.cluster.worker_parts import ModelParts, WorkerFacts, WorkerParts, describe_here
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import MissingDependency, ModelUnavailable, TomewiseError, UsageError

PARTS = WorkerParts(embedder="hash")
HERE = WorkerFacts(
    machine="near", tomewise="0.1.0", python="3.11.7", ray="2.60.0", packages=("own-part 1.0",), keys=(), row=(0.6, 0.8)
)
THERE = replace(HERE, machine="far")


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
def test_what_differs_is_named(changes: dict[str, object], error: type[TomewiseError], message: str) -> None:
    with pytest.raises(error, match=message):
        check_agreement(HERE, replace(THERE, **changes), PARTS)  # type: ignore[arg-type]


def test_a_key_that_only_this_process_has_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = WorkerParts(
        embedder="hash", model=ModelParts(model="openai:gpt-4o-mini", base_url="https://models.example/v1")
    )
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-machine")
    here = describe_here(parts, HashEmbedder())
    monkeypatch.delenv("OPENAI_API_KEY")
    there = describe_here(parts, HashEmbedder())
    check_agreement(there, here, parts)
    with pytest.raises(ModelUnavailable, match="lacks a key that is set here: set OPENAI_API_KEY where workers"):
        check_agreement(here, there, parts)


def test_a_worker_without_the_key_of_a_provider_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ModelUnavailable, match="no key for openai:gpt-4o-mini: set OPENAI_API_KEY"):
        describe_here(WorkerParts(embedder="hash", model=ModelParts(model="openai:gpt-4o-mini")), HashEmbedder())


@pytest.mark.parametrize(
    "parts",
    [
        WorkerParts(embedder="hash", model=ModelParts(model="openai:m", base_url="http://localhost:8000/v1")),
        WorkerParts(embedder="hash", model=ModelParts(model="ollama:llama3.1")),
        WorkerParts(embedder="openai:m", embedder_address="http://127.0.0.1:8000/v1"),
    ],
    ids=["model", "ollama", "embedder"],
)
def test_localhost_is_refused_in_a_cluster_of_several_machines(parts: WorkerParts) -> None:
    check_agreement(HERE, replace(THERE, machine="near"), parts)
    with pytest.raises(UsageError, match="means another machine on each machine of the cluster, such as far"):
        check_agreement(HERE, THERE, parts)
