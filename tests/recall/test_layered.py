"""Several layers searched concurrently: each gives its own evidence in order, whichever is first."""

from __future__ import annotations

import asyncio

import pytest
from tests.patience import SOON

from tomewise.errors import ModelUnavailable
from tomewise.recall.layered import LayeredRecall
from tomewise.types import Evidence, Scope


class Layer:
    """Finds `name:query:rank`; the later a layer was made, the sooner it replies."""

    made = 0

    def __init__(self, name: str) -> None:
        Layer.made += 1
        self._name = name
        self._delay = 0.02 / Layer.made

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        await asyncio.sleep(self._delay)
        ids = [f"{self._name}:{query}:{rank}" for rank in range(limit)]
        return [Evidence(node=node, layer=self._name, text=node, score=1.0, sources=()) for node in ids]


class Meeting:
    """Returns once the expected number of calls are waiting."""

    def __init__(self, expected: int) -> None:
        self._barrier = asyncio.Barrier(expected)

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        async with self._barrier:
            return []


class Away:
    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        raise ModelUnavailable("gone")


async def test_each_query_gets_what_each_layer_gives_best_first():
    recall = LayeredRecall({name: Layer(name) for name in ("veridical", "semantic", "episodic")})
    assert recall.layers == ("veridical", "semantic", "episodic")
    found = await recall.retrieve(["b", "a", "b"], 2)
    nodes = [{layer: [piece.node for piece in pieces] for layer, pieces in layers.items()} for layers in found]
    assert nodes == [
        {layer: [f"{layer}:{query}:0", f"{layer}:{query}:1"] for layer in recall.layers} for query in ("b", "a", "b")
    ]
    assert [list(layers) for layers in found] == [list(recall.layers)] * 3


async def test_no_query_finds_nothing():
    assert await LayeredRecall({"veridical": Layer("veridical")}).retrieve([], 5) == []


async def test_all_queries_and_layers_are_asked_side_by_side():
    meeting = Meeting(6)
    async with asyncio.timeout(SOON):
        found = await LayeredRecall({"semantic": meeting, "episodic": meeting}).retrieve(["a", "b", "c"], 1)
    assert found == [{"semantic": [], "episodic": []}] * 3


async def test_a_layer_that_fails_is_an_error_and_not_an_empty_layer():
    with pytest.raises(ModelUnavailable, match="gone"):
        await LayeredRecall({"veridical": Layer("veridical"), "semantic": Away()}).retrieve(["a"], 1)
