"""Building: the order of layers, errors of one layer, pending changes, estimates, records, and calls side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from tests.memory.memories import (
    EMBEDDER,
    build_layers,
    ignore_progress,
    keep_replies,
    put_documents,
    put_text,
    remove_documents,
)

from tomewise.errors import BadReply, BudgetExceeded, KeepsFailing, ModelUnavailable, Refused, UsageError
from tomewise.language.budget import Budget, stop_after
from tomewise.language.roles import FUSE, FuseIn
from tomewise.language.wrapped import Wrapped
from tomewise.memory.ask_each import ask_each, run_each
from tomewise.memory.build_records import (
    change_record,
    count_replies,
    forget_layer,
    read_build,
    record_build,
)
from tomewise.memory.building import estimate, find_backlog, find_changes
from tomewise.memory.gists import GistsLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.run import open_run
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import ScriptedModel
from tomewise.types import Change, Cost, Estimate, LayerReport, Limit, Node, Progress, Report


@pytest.fixture
def store(open_store):
    made = open_store()
    put_documents(made, *(f"Ada Marsh met Tom Hale, {number}." for number in range(3)))
    return made


class Step:
    """A layer that copies the nodes below it, and notes when it begins and ends; those of one `company` meet."""

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
        if self.company:
            await asyncio.wait_for(self.company.wait(), 30)
        if self._error:
            raise self._error
        await asyncio.sleep(0.01)
        texts = {**self._store.passages(change.added), **self._store.nodes_at(change.added)}
        nodes = [
            Node(id=f"{self.name}/{node.id}", layer=self.name, text=node.text, sources=(node.id,))
            for node in texts.values()
        ]
        with self._store.write() as writing:
            writing.put_nodes(nodes)
            writing.record_intake(self.name, change.added)
            record_build(writing, self.name, {})
        self._events.append(f"{self.name} ends")
        return LayerReport(layer=self.name, added=len(nodes))

    async def estimate(self, change: Change) -> Estimate:
        return Estimate(layer=self.name, cost=Cost(calls=max(1, len(change.added))))


def make_tower(store, events, **errors: Exception) -> list[Step]:
    """d needs b and c, which need a; e needs only passages. The order of the list is wrong on purpose."""
    needs = {"d": ("b", "c"), "b": ("a",), "e": ("passages",), "c": ("a",), "a": ("passages",)}
    return [Step(store, name, below, events, errors.get(name)) for name, below in needs.items()]


def pair_up(tower: list[Step]) -> None:
    """Let the layers meet that can run side by side."""
    first, second = asyncio.Barrier(2), asyncio.Barrier(2)
    barriers = {"a": first, "e": first, "b": second, "c": second}
    for step in tower:
        step.company = barriers.get(step.name)


# ---------------------------------------------------------------- layers


async def test_a_layer_waits_for_what_it_needs_and_for_nothing_else(store) -> None:
    events: list[str] = []
    tower = make_tower(store, events)
    pair_up(tower)
    foreseen = await estimate(tower, store)
    assert {layer.layer: layer.cost.calls for layer in foreseen} == {"a": 3, "b": 1, "c": 1, "d": 1, "e": 3}
    assert events == []
    reports = await build_layers(tower, store)
    assert {report.layer: report.added for report in reports} == {"a": 3, "b": 3, "c": 3, "d": 6, "e": 3}
    place_of = {event: place for place, event in enumerate(events)}
    assert place_of["a ends"] < min(place_of["b begins"], place_of["c begins"])
    assert max(place_of["b ends"], place_of["c ends"]) < place_of["d begins"]
    events.clear()
    assert not any(report.added for report in await build_layers(make_tower(store, events), store))
    assert events == []
    assert not any(layer.cost.calls for layer in await estimate(tower, store))


async def test_only_new_and_removed_nodes_are_changes(store) -> None:
    tower = make_tower(store, [])
    layers = {layer.name: layer for layer in tower}
    assert len(find_changes(layers["a"], store).added) == 3
    assert not find_changes(layers["b"], store, tower), "the layer below has no nodes yet"
    assert find_backlog(tower, store).counts == {"a": 3, "e": 3}
    await build_layers(tower, store)
    assert find_backlog(tower, store).counts == {}
    put_text(store, "new", "A new one.")
    key = next(key for key, passage in store.passages().items() if passage.document == "new")
    assert find_changes(layers["a"], store) == Change(added=(key,))
    assert find_backlog(tower, store).counts == {"a": 1, "e": 1}
    await build_layers(tower, store)
    (gone,) = (passage.id for passage in store.passages().values() if passage.document == "d1")
    remove_documents(store, "d1")
    assert find_changes(layers["a"], store) == Change(removed=(gone,))
    assert find_changes(layers["d"], store) == Change(removed=(f"b/a/{gone}", f"c/a/{gone}"))
    assert find_backlog(tower, store).counts == dict.fromkeys("abcde", 0)
    await build_layers(tower, store)
    assert not any(find_changes(layer, store) for layer in tower)


@pytest.mark.parametrize("error", [ModelUnavailable("gone"), BudgetExceeded("enough")])
async def test_an_error_of_a_layer_stops_those_above_and_finished_layers_stay(store, error) -> None:
    events: list[str] = []
    tower = make_tower(store, events, b=error)
    pair_up(tower)  # so that the error comes after e, and before c ends
    with pytest.raises(type(error), match=str(error)):
        await build_layers(tower, store)
    assert {"a ends", "e ends"} <= set(events)
    assert "d begins" not in events
    if isinstance(error, BudgetExceeded):
        assert "c ends" in events, "a used up budget stops only those above"
    assert [len(store.nodes(name)) for name in "ab"] == [3, 0]
    assert "b" in find_backlog(make_tower(store, []), store).counts
    events.clear()
    await build_layers(make_tower(store, events), store)
    assert "a begins" not in events
    assert len(store.nodes("d")) == 6


async def test_needs_that_cannot_be_met_are_refused(store) -> None:
    with pytest.raises(UsageError, match=r"above needs 'graph:other', which no layer .* never built.*known are"):
        find_changes(Step(store, "above", ["graph:other"], []), store)
    layers = [Step(store, "a", ["b"], []), Step(store, "b", ["c"], []), Step(store, "c", ["a"], [])]
    with pytest.raises(UsageError, match="a needs b needs c needs a"):
        await build_layers(layers, store)


def test_the_loss_of_passages_that_failed_is_noticed(store):
    """A summary may rest on passages whose own intake failed: after their removal the layer has changes."""
    kept, lost, last = store.node_keys("passages")
    layer = Step(store, "step", ["passages"], [])
    with store.write() as change:
        change.record_intake("step", [kept, last], {lost: "no reply"})
        record_build(change, "step", {})
    assert not find_changes(layer, store).removed
    remove_documents(store, store.passages([lost])[lost].document)
    assert find_changes(layer, store).removed


async def test_failures_of_layers_side_by_side_count_together(store):
    model = ScriptedModel({name: lambda _: BadReply("no") for name in ("gist", "extract_facts")})
    bounded = Wrapped(model, stop_after(5))
    with open_run(), pytest.raises(KeepsFailing, match="5 calls of scripted failed"):
        await build_layers([GistsLayer(store, bounded), GraphLayer(store, bounded, EMBEDDER)], store)
    assert len({call.role for call in model.calls}) == 2, "there are only three passages, so one layer has too few"


def test_records_count_over_all_builds_and_last_until_the_layer_is_forgotten(store):
    with store.write() as change:
        record_build(change, "gists", {"model": "m"})
        change_record(change, "gists", again="mark", writes=["x", "y"])
    count_replies(store, "gists", {"mended": 1})
    first = {"model": "m", "replies": {"mended": 1}, "writes": ["x", "y"]}
    assert read_build(store, "gists") == {**first, "again": "mark"}, "the mark lasts until the next build"
    count_replies(store, "gists", {"mended": 2})
    with store.write() as change:
        record_build(change, "gists", {"model": "n"})
    assert read_build(store, "gists") == {**first, "model": "n", "replies": {"mended": 3}, "former_models": ["m"]}
    with store.write() as change:
        forget_layer(change, "gists")
    assert read_build(store, "gists") == {}


# ---------------------------------------------------------------- many calls


def make_inputs(count: int, name: str = "q") -> dict[int, FuseIn]:
    return {number: FuseIn(question=f"{name}{number}", cues=[]) for number in range(count)}


def repeat_question(given: FuseIn) -> dict[str, str]:
    return {"cue": given.question}


async def test_replies_are_in_the_order_of_the_inputs_and_progress_is_reported() -> None:
    async def play(number: int) -> str:
        await asyncio.sleep(0.001 * (7 - number))
        return f"r{number}"

    reports: list[Progress] = []
    replies = await run_each({f"k{n}": n for n in range(7)}, play, reports.append, "asked")
    assert list(replies.items()) == [(f"k{n}", f"r{n}") for n in range(7)]
    assert [progress.done for progress in reports] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert {(progress.label, progress.total) for progress in reports} == {("asked", 7)}
    assert dict(await run_each({}, play, ignore_progress, "nothing")) == {}


async def test_a_reply_that_fails_for_good_is_recorded_and_left_out() -> None:
    errors = {"q1": BadReply("no JSON"), "q3": Refused("no")}
    model = ScriptedModel({"fuse": lambda given: errors.get(given.question) or repeat_question(given)})
    replies = await ask_each(model, FUSE, make_inputs(5), ignore_progress, "fused")
    assert {key: output.cue for key, output in replies.items()} == {0: "q0", 2: "q2", 4: "q4"}
    assert replies.failed == {1: "no JSON", 3: "no"}


@pytest.mark.parametrize("error", [ModelUnavailable("gone"), UsageError("the prompt is broken")])
async def test_an_error_that_every_call_would_raise_stops_at_once(error: Exception) -> None:
    model = ScriptedModel({"fuse": lambda given: error if given.question == "q3" else {"cue": "x"}}, limit=1)
    with pytest.raises(type(error), match=str(error)):
        await ask_each(model, FUSE, make_inputs(2000), ignore_progress, "fused")
    assert len(model.calls) < 2000


async def test_running_calls_end_after_the_budget_is_used_up(store) -> None:
    inside = ScriptedModel({"fuse": repeat_question}, latency=0.01, limit=8)
    budgeted = keep_replies(Wrapped(inside, Budget(Limit(calls=10), name="scripted").ask), store)
    reports: list[Progress] = []
    with pytest.raises(BudgetExceeded, match="10 calls"):
        await ask_each(budgeted, FUSE, make_inputs(30), reports.append, "fused")
    assert len(inside.calls) == max(progress.done for progress in reports) == 10
    again = ScriptedModel({"fuse": repeat_question})
    replies = await ask_each(keep_replies(again, store), FUSE, make_inputs(30), ignore_progress, "fused")
    assert len(again.calls) == 20, "the cache keeps the ten replies that were paid for"
    assert [output.cue for output in replies.values()] == [f"q{number}" for number in range(30)]
