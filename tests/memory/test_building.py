"""Building: the order of layers, which run side by side, errors of one, what is pending, behind, and reckoned."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tomewise.errors import BadReply, BudgetExceeded, ModelUnavailable
from tomewise.language.budget import Budgeted
from tomewise.language.cached import Cached
from tomewise.language.prompts import Prompts
from tomewise.language.scripted import ScriptedModel
from tomewise.language.usage import meter
from tomewise.memory.building import behind, build, estimate, pending
from tomewise.memory.episodes import EpisodesLayer
from tomewise.memory.gists import GistsLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.summaries import SummariesLayer
from tomewise.store.sqlite.store import SqliteStore
from tomewise.testing import HashEmbedder, document_of, put_document
from tomewise.types import Change, Estimate, LayerReport, Node, Progress, Report

EMBEDDER = HashEmbedder(32)


def quiet(_: Progress) -> None:
    pass


@pytest.fixture
def store(tmp_path):
    made = SqliteStore.open(tmp_path / "a.tome")
    for number in range(3):
        put_document(made, EMBEDDER, document_of(f"d{number}", f"Ada Marsh met Tom Hale, {number}."))
    yield made
    made.close()


class Step:
    """A layer that copies the nodes below it, and tells when it began and ended."""

    def __init__(
        self, store: SqliteStore, name: str, needs: Sequence[str], told: list[str], error: Exception | None = None
    ) -> None:
        self.name = name
        self.needs = tuple(needs)
        self._store = store
        self._told = told
        self._error = error

    async def update(self, change: Change, report: Report) -> LayerReport:
        self._told.append(f"{self.name} begins")
        await asyncio.sleep(0.01)
        if self._error:
            raise self._error
        texts = {**self._store.passages(change.added), **self._store.nodes_at(change.added)}
        nodes = {
            key: Node(id=f"{self.name}/{node.id}", layer=self.name, text=node.text, sources=(node.id,))
            for key, node in texts.items()
        }
        taken = self._store.intake(self.name).done.union(change.added)
        with self._store.write() as writing:
            writing.put_nodes(list(nodes.values()))
            writing.record_intake(self.name, change.added)
            writing.record_build(self.name, {"taken": len(taken)})
        self._told.append(f"{self.name} ends")
        return LayerReport(layer=self.name, added=len(nodes))

    async def estimate(self, change: Change) -> Estimate:
        return Estimate(layer=self.name, calls=max(1, len(change.added)))


def tower(store, told, **errors: Exception) -> list[Step]:
    """d needs b and c, which need a; e stands alone. Given in the wrong order."""
    needs = {"d": ("b", "c"), "b": ("a",), "e": ("passages",), "c": ("a",), "a": ("passages",)}
    return [Step(store, name, below, told, errors.get(name)) for name, below in needs.items()]


async def test_a_layer_waits_for_what_it_needs_and_for_nothing_else(store) -> None:
    told: list[str] = []
    reports = await build(tower(store, told), store, quiet)
    assert {report.layer: report.added for report in reports} == {"a": 3, "b": 3, "c": 3, "d": 6, "e": 3}
    at = {what: place for place, what in enumerate(told)}
    assert at["a ends"] < min(at["b begins"], at["c begins"])
    assert max(at["b ends"], at["c ends"]) < at["d begins"]
    assert max(at["b begins"], at["c begins"]) < min(at["b ends"], at["c ends"]), "b and c run side by side"
    assert at["e begins"] < at["a ends"]
    told.clear()
    again = await build(tower(store, told), store, quiet)
    assert told == []
    assert not any(report.added for report in again)


async def test_only_what_is_new_or_gone_is_pending(store) -> None:
    layers = {layer.name: layer for layer in tower(store, [])}
    assert len(pending(layers["a"], store).added) == 3
    assert not pending(layers["b"], store), "nothing below it is there yet"
    assert behind(list(layers.values()), store) == {"a": 3, "e": 3}
    await build(list(layers.values()), store, quiet)
    assert behind(list(layers.values()), store) == {}
    (key,) = put_document(store, EMBEDDER, document_of("new", "A new one."))
    assert pending(layers["a"], store) == Change(added=(key,))
    assert behind(list(layers.values()), store) == {"a": 1, "e": 1}
    await build(list(layers.values()), store, quiet)
    with store.write() as change:
        change.remove_document("d1")
    assert pending(layers["a"], store) == Change(removed=True)
    assert pending(layers["d"], store) == Change(removed=True)
    assert behind(list(layers.values()), store) == dict.fromkeys("abcde", 0)
    await build(list(layers.values()), store, quiet)
    assert not any(pending(layer, store) for layer in layers.values())


async def test_an_error_of_one_layer_leaves_those_that_are_finished(store) -> None:
    told: list[str] = []
    with pytest.raises(ModelUnavailable, match="gone"):
        await build(tower(store, told, b=ModelUnavailable("gone")), store, quiet)
    assert "a ends" in told
    assert "e ends" in told
    assert "d begins" not in told
    assert len(store.nodes("a")) == 3
    assert store.nodes("b") == {}
    assert "b" in behind(tower(store, []), store)
    told.clear()
    await build(tower(store, told), store, quiet)
    assert "a begins" not in told
    assert len(store.nodes("d")) == 6


async def test_a_budget_that_is_used_up_stops_no_layer_but_those_above(store) -> None:
    told: list[str] = []
    with pytest.raises(BudgetExceeded, match="enough"):
        await build(tower(store, told, b=BudgetExceeded("enough")), store, quiet)
    assert {"a ends", "c ends", "e ends"} <= set(told)
    assert "d begins" not in told


async def test_layers_that_wait_for_others_are_reckoned_too(store) -> None:
    told: list[str] = []
    found = await estimate(tower(store, told), store)
    assert {one.layer: one.calls for one in found} == {"a": 3, "b": 1, "c": 1, "d": 1, "e": 3}
    assert told == []
    await build(tower(store, told), store, quiet)
    assert not any(one.calls for one in await estimate(tower(store, told), store))


def every(store, model) -> list[object]:
    gists, summaries = GistsLayer(store, model), SummariesLayer(store, model)
    graphs = [GraphLayer(store, model, EMBEDDER, source=name) for name in ("passages", "gists", "summaries")]
    return [*graphs, EpisodesLayer(store, model, EMBEDDER), gists, summaries]


def talking(*, failing: str = "", **settings) -> ScriptedModel:
    def memory(given):
        return BadReply("no") if failing and failing in given.text else {"memory": given.text}

    return ScriptedModel(
        {
            "gist": memory,
            "extract_facts": lambda given: {"entities": ["Ada"], "triples": [["Ada", "met", given.text[-3:]]]},
            "summarise": lambda given: {"summary": given.texts[0]},
            "narrate": lambda given: {"summary": " ".join(given.texts)},
        },
        **settings,
    )


async def test_real_layers_built_together_ask_as_many_calls_as_was_said(store) -> None:
    model = talking()
    foreseen = await estimate(every(store, model), store)
    with meter() as seen:
        await build(every(store, Cached(model, Prompts(), store.calls)), store, quiet)
    assert seen.usage().total.calls == 9  # the graphs read the same three texts as each other
    assert sum(one.calls for one in foreseen) == 15
    assert behind(every(store, model), store) == {}


async def test_a_passage_whose_call_keeps_failing_does_not_fail_the_build(store) -> None:
    reports = await build(every(store, talking(failing="1.")), store, quiet)
    failed = {report.layer: list(report.failed.values()) for report in reports if report.failed}
    assert failed == {"gists": ["no"]}
    assert store.layers()["gists"] == {"nodes": 2, "failed": 1}
    assert behind(every(store, talking()), store) == {}, "what could be made is usable"
    reports = await build(every(store, talking()), store, quiet)
    assert {report.layer: report.added for report in reports if report.added} == {
        "gists": 1,
        "graph:gists-triples": 2,  # a name and a fact
    }
    assert store.layers()["gists"] == {"nodes": 3, "failed": 0}


async def test_a_budget_half_way_keeps_what_was_paid_for(store) -> None:
    inside = talking(latency=0.005, limit=4)
    with pytest.raises(BudgetExceeded):
        await build(every(store, Cached(Budgeted(inside, calls=5), Prompts(), store.calls)), store, quiet)
    assert len(inside.calls) == 5
    again = talking()
    await build(every(store, Cached(again, Prompts(), store.calls)), store, quiet)
    assert len(again.calls) == 4
    assert behind(every(store, again), store) == {}


def test_the_loss_of_passages_that_failed_is_noticed(store):
    """A summary over them may stand although their own intake failed: the layer is behind once they are gone."""
    kept, lost, last = store.node_keys("passages")
    layer = Step(store, "step", ["passages"], [])
    with store.write() as change:
        change.record_intake("step", [kept, last], {lost: "no reply"})
        change.record_build("step", {})
    assert not pending(layer, store).removed
    with store.write() as change:
        change.remove_document(store.passages([lost])[lost].document)
    assert pending(layer, store).removed
