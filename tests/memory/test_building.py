"""Building: the order of layers, concurrency, errors of one layer, pending changes, lag, and estimates."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tomewise.errors import BadReply, BudgetExceeded, KeepsFailing, ModelUnavailable, UsageError
from tomewise.events import Waiting
from tomewise.language.budget import Budgeted
from tomewise.language.cached import Cached
from tomewise.language.failures import StopAtFailures
from tomewise.language.prompts import Prompts
from tomewise.memory.build_records import record_build
from tomewise.memory.building import build, estimate, find_backlog, find_changes
from tomewise.memory.episodes import EpisodesLayer
from tomewise.memory.gists import GistsLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.summaries import SummariesLayer
from tomewise.run import current_run, meter, open_run
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, document_of, put_document
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Change, Estimate, LayerReport, Node, Progress, Report

EMBEDDER = HashEmbedder(32)


def quiet(_: Progress) -> None:
    pass


@pytest.fixture
def store(tmp_path):
    new_store = SqlStore.open(tmp_path / "a.tome")
    for number in range(3):
        put_document(new_store, EMBEDDER, document_of(f"d{number}", f"Ada Marsh met Tom Hale, {number}."))
    yield new_store
    new_store.close()


class Step:
    """A layer that copies the nodes below it, and records when it begins and ends; those of one `company` meet."""

    company: asyncio.Barrier | None = None

    def __init__(
        self, store: SqlStore, name: str, needs: Sequence[str], events: list[str], error: Exception | None = None
    ) -> None:
        self.name = name
        self.needs = tuple(needs)
        self.writes = (name,)
        self._store = store
        self._events = events
        self._error = error

    async def update(self, change: Change, report: Report) -> LayerReport:
        self._events.append(f"{self.name} begins")
        await asyncio.sleep(0.01)
        if self.company:
            await asyncio.wait_for(self.company.wait(), 30)
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
            record_build(writing, self.name, {"taken": len(taken)})
        self._events.append(f"{self.name} ends")
        return LayerReport(layer=self.name, added=len(nodes))

    async def estimate(self, change: Change) -> Estimate:
        return Estimate(layer=self.name, calls=max(1, len(change.added)))


def make_tower(store, events, **errors: Exception) -> list[Step]:
    """d needs b and c, which need a; e needs only passages. The order of the list is wrong on purpose."""
    needs = {"d": ("b", "c"), "b": ("a",), "e": ("passages",), "c": ("a",), "a": ("passages",)}
    return [Step(store, name, below, events, errors.get(name)) for name, below in needs.items()]


async def test_a_layer_waits_for_what_it_needs_and_for_nothing_else(store) -> None:
    events: list[str] = []
    tower = make_tower(store, events)
    steps = {step.name: step for step in tower}
    for pair in ("ae", "bc"):  # run side by side
        steps[pair[0]].company = steps[pair[1]].company = asyncio.Barrier(2)
    reports = await build(tower, store, quiet)
    assert {report.layer: report.added for report in reports} == {"a": 3, "b": 3, "c": 3, "d": 6, "e": 3}
    place_of = {event: place for place, event in enumerate(events)}
    assert place_of["a ends"] < min(place_of["b begins"], place_of["c begins"])
    assert max(place_of["b ends"], place_of["c ends"]) < place_of["d begins"]
    events.clear()
    again = await build(make_tower(store, events), store, quiet)
    assert events == []
    assert not any(report.added for report in again)


async def test_only_new_and_removed_nodes_are_changes(store) -> None:
    layers = {layer.name: layer for layer in make_tower(store, [])}
    assert len(find_changes(layers["a"], store).added) == 3
    assert not find_changes(layers["b"], store, list(layers.values())), "the layer below has no nodes yet"
    assert find_backlog(list(layers.values()), store).counts == {"a": 3, "e": 3}
    await build(list(layers.values()), store, quiet)
    assert find_backlog(list(layers.values()), store).counts == {}
    (key,) = put_document(store, EMBEDDER, document_of("new", "A new one."))
    assert find_changes(layers["a"], store) == Change(added=(key,))
    assert find_backlog(list(layers.values()), store).counts == {"a": 1, "e": 1}
    await build(list(layers.values()), store, quiet)
    (gone,) = (passage.id for passage in store.passages().values() if passage.document == "d1")
    with store.write() as change:
        change.remove_document("d1")
    assert find_changes(layers["a"], store) == Change(removed=(gone,))
    assert find_changes(layers["d"], store) == Change(removed=(f"b/a/{gone}", f"c/a/{gone}"))
    assert find_backlog(list(layers.values()), store).counts == dict.fromkeys("abcde", 0)
    await build(list(layers.values()), store, quiet)
    assert not any(find_changes(layer, store) for layer in layers.values())


async def test_finished_layers_stay_after_an_error_of_another_layer(store) -> None:
    events: list[str] = []
    with pytest.raises(ModelUnavailable, match="gone"):
        await build(make_tower(store, events, b=ModelUnavailable("gone")), store, quiet)
    assert "a ends" in events
    assert "e ends" in events
    assert "d begins" not in events
    assert len(store.nodes("a")) == 3
    assert store.nodes("b") == {}
    assert "b" in find_backlog(make_tower(store, []), store).counts
    events.clear()
    await build(make_tower(store, events), store, quiet)
    assert "a begins" not in events
    assert len(store.nodes("d")) == 6


async def test_a_used_up_budget_stops_only_the_layers_above(store) -> None:
    events: list[str] = []
    with pytest.raises(BudgetExceeded, match="enough"):
        await build(make_tower(store, events, b=BudgetExceeded("enough")), store, quiet)
    assert {"a ends", "c ends", "e ends"} <= set(events)
    assert "d begins" not in events


async def test_estimates_include_layers_that_wait_for_others(store) -> None:
    events: list[str] = []
    estimates = await estimate(make_tower(store, events), store)
    assert {layer.layer: layer.calls for layer in estimates} == {"a": 3, "b": 1, "c": 1, "d": 1, "e": 3}
    assert events == []
    await build(make_tower(store, events), store, quiet)
    assert not any(layer.calls for layer in await estimate(make_tower(store, events), store))


async def test_a_layer_on_a_graph_takes_in_its_entities_and_facts(store) -> None:
    events: list[str] = []
    graph = GraphLayer(store, make_model(), EMBEDDER)
    above = Step(store, "above", [graph.name], events)
    on_facts = Step(store, "on facts", [graph.names.facts], events)
    assert [layer.calls for layer in await estimate([above, on_facts, graph], store)] == [3, 1, 1]
    reports = await build([above, on_facts, graph], store, quiet)
    assert {report.layer: report.added for report in reports} == {graph.name: 7, "above": 7, "on facts": 3}
    assert {node.id.partition("/")[2][0] for node in store.nodes("above").values()} == {"e", "f"}
    put_document(store, EMBEDDER, document_of("new", "Ada Marsh met Tom Hale, 3."))
    await build([graph], store, quiet)
    (alone,) = await build([above], store, quiet)  # without the graph, which is known by the record of its build
    assert alone.added == 2  # an entity and a fact
    graph_nodes = [*store.nodes(graph.names.entities).values(), *store.nodes(graph.names.facts).values()]
    gone = tuple(sorted(node.id for node in graph_nodes if "3" in node.text))
    with store.write() as change:
        change.remove_document("new")
    assert find_changes(above, store) == Change(removed=gone)
    assert len(store.nodes("above")) == 7


def test_a_need_that_nothing_provides_is_refused(store):
    layer = Step(store, "above", ["graph:other"], [])
    with pytest.raises(UsageError, match=r"above needs 'graph:other', which no layer .* never built.*known are"):
        find_changes(layer, store)


async def test_layers_that_need_each_other_are_refused(store) -> None:
    layers = [Step(store, "a", ["b"], []), Step(store, "b", ["c"], []), Step(store, "c", ["a"], [])]
    with pytest.raises(UsageError, match="a needs b needs c needs a"):
        await build(layers, store, quiet)


def make_layers(store, model) -> list[object]:
    gists, summaries = GistsLayer(store, model), SummariesLayer(store, model)
    graphs = [GraphLayer(store, model, EMBEDDER, source=name) for name in ("passages", "gists", "summaries")]
    return [*graphs, EpisodesLayer(store, model, EMBEDDER), gists, summaries]


def make_model(*, failing: str = "", **settings) -> ScriptedModel:
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


async def test_real_layers_built_together_ask_as_many_calls_as_estimated(store) -> None:
    model = make_model()
    foreseen = await estimate(make_layers(store, model), store)
    with meter() as seen:
        await build(make_layers(store, Cached(model, Prompts(), store.calls)), store, quiet)
    assert seen.usage().total.calls == 9  # the graphs read the same three texts as each other
    assert sum(layer.calls for layer in foreseen) == 15
    assert find_backlog(make_layers(store, model), store).counts == {}


async def test_a_passage_whose_call_keeps_failing_does_not_fail_the_build(store) -> None:
    reports = await build(make_layers(store, make_model(failing="1.")), store, quiet)
    failed = {report.layer: list(report.failed.values()) for report in reports if report.failed}
    assert failed == {"gists": ["no"]}
    assert store.layers()["gists"] == {"nodes": 2, "failed": 1}
    assert find_backlog(make_layers(store, make_model()), store).counts == {}, "the finished nodes are usable"
    reports = await build(make_layers(store, make_model()), store, quiet)
    assert {report.layer: report.added for report in reports if report.added} == {
        "gists": 1,
        "graph:gists-triples": 2,  # a name and a fact
    }
    assert store.layers()["gists"] == {"nodes": 3, "failed": 0}


async def test_a_budget_that_ends_half_way_keeps_paid_replies(store) -> None:
    inside = make_model(latency=0.005, limit=4)
    with pytest.raises(BudgetExceeded):
        await build(make_layers(store, Cached(Budgeted(inside, calls=5), Prompts(), store.calls)), store, quiet)
    assert len(inside.calls) == 5
    again = make_model()
    await build(make_layers(store, Cached(again, Prompts(), store.calls)), store, quiet)
    assert len(again.calls) == 4
    assert find_backlog(make_layers(store, again), store).counts == {}


def test_the_loss_of_passages_that_failed_is_noticed(store):
    """A summary may rest on passages whose own intake failed: after their removal the layer has changes."""
    kept, lost, last = store.node_keys("passages")
    layer = Step(store, "step", ["passages"], [])
    with store.write() as change:
        change.record_intake("step", [kept, last], {lost: "no reply"})
        record_build(change, "step", {})
    assert not find_changes(layer, store).removed
    with store.write() as change:
        change.remove_document(store.passages([lost])[lost].document)
    assert find_changes(layer, store).removed


async def test_failures_of_layers_side_by_side_count_together(store):
    model = ScriptedModel({name: lambda _: BadReply("no") for name in ("gist", "extract_facts")})
    bounded = StopAtFailures(model, 5)
    layers = [GistsLayer(store, bounded), GraphLayer(store, bounded, EMBEDDER)]
    with open_run(), pytest.raises(KeepsFailing, match="5 calls of scripted failed"):
        await build(layers, store, quiet)
    assert len({call.role for call in model.calls}) == 2, "there are only three passages, so one layer has too few"


async def test_a_wait_that_a_server_asks_for_is_reported_with_its_reason(store):
    class Busy(ScriptedModel):
        async def ask(self, role, given):
            current_run().on_wait(Waiting(seconds=30.0, asked=45.0, reason="status 429: slow down"))
            return await super().ask(role, given)

    reports: list[Progress] = []
    model = Busy({"gist": lambda _: {"notes": "n", "memory": "Ada Marsh met Tom Hale."}})
    await build([GistsLayer(store, model)], store, reports.append)
    notes = [progress.note for progress in reports if progress.note]
    assert set(notes) == {"waiting 30 s, since the server asks for 45 s: status 429: slow down"}
