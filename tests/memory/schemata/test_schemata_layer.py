"""The layer of schemata: equal for equal passages, whatever their history, and few calls for a change."""

from __future__ import annotations

import asyncio
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.plain_store import PlainStore

from tomewise.errors import BadReply
from tomewise.memory.building import build, estimate
from tomewise.memory.schemata.schemata_layer import SchemataLayer
from tomewise.memory.schemata.schemata_names import USUAL, SchemataNames, SchemataRules
from tomewise.store.export import export
from tomewise.store.lookups import read_edges, read_sources, read_vectors
from tomewise.store.records import BUILDS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel, check_layer, document_of, put_document

EMBEDDER = HashEmbedder(32)
NAMES = SchemataNames()
NAME = NAMES.layer
TOPICS = ("the tide and the harbour pilot", "a ledger of grain and barley", "the school bell and the teacher")
EXACT = SchemataRules(k=4, renew=0)
EXACT_NAME = SchemataNames.from_rules(EXACT).layer


def make_model():
    return ScriptedModel({"summarise": lambda given: {"summary": " / ".join(text[:30] for text in given.texts)}})


def write_text(number, version=0):
    return f"{TOPICS[number % 3]} and {TOPICS[number % 2]} on day {number % 7} note {number}{' again' * version}"


def fill(store, numbers, version=0):
    for number in numbers:
        put_document(store, EMBEDDER, document_of(f"d{number:03}", write_text(number, version)))


def remove(store, numbers):
    with store.write() as change:
        for number in numbers:
            change.remove_document(f"d{number:03}")


def build_layer(store, model, rules=USUAL):
    return asyncio.run(build([SchemataLayer(store, model, EMBEDDER, rules)], store, lambda _: None))[0]


def read_memory(store):
    """The export without settings: an empty tome has none."""
    return [line for line in export(store) if '"kind": "setting"' not in line]


def make_fresh(numbers, rules=EXACT, version=lambda number: 0):
    store = PlainStore()
    for number in numbers:
        fill(store, [number], version(number))
    build_layer(store, make_model(), rules)
    return store


@pytest.mark.parametrize("kind", [SqlStore, PlainStore])
@pytest.mark.parametrize("rules", [USUAL, EXACT, SchemataRules(theta=0.3, clusters="disjoint")])
def test_it_is_a_function_of_its_passages(tmp_path, kind, rules) -> None:
    numbers = iter(range(1000))

    def open_new():
        return PlainStore() if kind is PlainStore else SqlStore.open(tmp_path / f"{next(numbers)}.tome")

    asyncio.run(check_layer(lambda store: [SchemataLayer(store, make_model(), EMBEDDER, rules)], open_new, EMBEDDER))


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "add", "remove", "replace"]), st.sets(st.integers(0, 59), min_size=1)),
    min_size=1,
    max_size=6,
)


@settings(max_examples=40, deadline=None)
@given(STEPS, st.booleans())
def test_any_history_ends_as_a_fresh_build_does(steps, builds_between) -> None:
    store, versions = PlainStore(), {}
    for verb, numbers in steps:
        for number in sorted(numbers, key=lambda number: number * 17 % 61):  # not in document order
            if verb == "remove":
                remove(store, [number] if versions.pop(number, None) is not None else [])
            elif verb == "replace" or number not in versions:
                versions[number] = versions.get(number, -1) + 1
                fill(store, [number], versions[number])
        if builds_between:
            build_layer(store, make_model(), EXACT)
    build_layer(store, make_model(), EXACT)
    fresh = make_fresh(sorted(versions), version=versions.__getitem__)
    assert read_memory(store) == read_memory(fresh)


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(60)), st.sets(st.integers(1, 59), max_size=8))
def test_twenty_ways_of_batching_end_equal(order, cuts) -> None:
    store = PlainStore()
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), 60], strict=True):
        fill(store, order[start:end])
        build_layer(store, make_model(), EXACT)
    assert read_memory(store) == read_memory(make_fresh(range(60)))
    assert len(store.nodes(EXACT_NAME)) > 6


def test_only_changed_clusters_are_summarised_and_the_estimate_says_how_many(tmp_path) -> None:
    store = SqlStore.open(tmp_path / "a.tome")
    fill(store, range(90))
    whole = make_model()
    build_layer(store, whole)
    before = {node.id: node.text for node in store.nodes(NAME).values()}
    fill(store, [90])
    part = make_model()
    (planned,) = asyncio.run(estimate([SchemataLayer(store, part, EMBEDDER)], store))
    build_layer(store, part)
    assert planned.calls == len(part.calls)
    assert 0 < len(part.calls) < len(whole.calls) / 2
    after = {node.id: node.text for node in store.nodes(NAME).values()}
    assert len(before.keys() & after.keys()) > len(before) / 2
    again = make_model()
    build_layer(store, again)
    assert not again.calls


def test_a_summary_of_summaries_goes_on_until_too_much_below_it_has_changed() -> None:
    store = make_fresh(range(90), USUAL)
    calls = Counter()
    for number in range(90, 120):
        fill(store, [number])
        exact = make_fresh(range(number + 1), USUAL)
        model = make_model()
        build_layer(store, model)
        calls["carried"] += len(model.calls)
        nodes = store.nodes(NAME)
        assert {node.id for node in nodes.values()} == {node.id for node in exact.nodes(NAME).values()}
        older = {key: node for key, node in nodes.items() if node.data}
        assert all(node.level > 1 and float(node.data["drift"]) <= 0.1 for node in older.values())
        assert store.notes(BUILDS)[NAME]["network"]["older"] == len(older)
        calls["older"] += len(older)
        assert len(read_vectors(store, NAME).keys) == len(nodes)
    assert calls["older"], "some go on"
    store = make_fresh(range(90))
    for number in range(90, 120):
        fill(store, [number])
        model = make_model()
        build_layer(store, model, EXACT)
        calls["exact"] += len(model.calls)
    assert calls["exact"] > calls["carried"]


def test_nothing_tells_of_a_passage_that_was_removed() -> None:
    quoting = ScriptedModel({"summarise": lambda given: {"summary": " / ".join(given.texts)}})
    store = PlainStore()
    fill(store, range(90))
    build_layer(store, quoting)
    for number in range(90, 110):
        fill(store, [number])
        build_layer(store, quoting)
    assert any(node.data for node in store.nodes(NAME).values())
    for number in range(0, 110, 5):
        remove(store, [number])
        build_layer(store, quoting)
        assert not any(f"note {number} " in f"{node.text} " for node in store.nodes(NAME).values())


def test_a_failed_summary_is_recorded_and_made_later(tmp_path) -> None:
    store = SqlStore.open(tmp_path / "a.tome")
    fill(store, range(30))
    refusals = iter([True, True])

    def refuse_twice(given):
        if next(refusals, False):
            raise BadReply("no")
        return {"summary": " / ".join(text[:30] for text in given.texts)}

    report = build_layer(store, ScriptedModel({"summarise": refuse_twice}), EXACT)
    assert report.failed
    whole = make_fresh(range(30))
    assert len(store.nodes(EXACT_NAME)) == len(whole.nodes(EXACT_NAME)) - 2
    report = build_layer(store, make_model(), EXACT)
    assert not report.failed
    assert read_memory(store) == read_memory(whole)


def test_where_all_fails_there_is_no_node_and_all_is_tried_again() -> None:
    def refuse(_):
        raise BadReply("no")

    store = PlainStore()
    fill(store, range(30))
    report = build_layer(store, ScriptedModel({"summarise": refuse}))
    assert report.added == 0
    assert set(report.failed.values()) <= {"no", "none of the members of the cluster could be summarised"}
    assert not store.nodes(NAME)
    assert not build_layer(store, make_model()).failed
    assert store.nodes(NAME)


def test_an_empty_tome_and_one_without_schemata() -> None:
    store = PlainStore()
    fill(store, range(30))
    assert build_layer(store, make_model()).added
    remove(store, range(30))
    build_layer(store, make_model())
    assert not store.nodes(NAME)
    assert not any(len(read_edges(store, space).rows) for space in (NAMES.lists, NAMES.links(0), NAMES.links(1)))
    fill(store, range(2))
    model = make_model()
    report = build_layer(store, model, SchemataRules(levels=0))
    assert report.notes == ("1 links between 2 passages, no summaries",)
    assert not model.calls


def test_one_level_has_no_summaries_of_summaries() -> None:
    rules = SchemataRules(levels=1)
    store = make_fresh(range(90), rules)
    nodes = store.nodes(SchemataNames.from_rules(rules).layer)
    assert {node.level for node in nodes.values()} == {1}


def test_nodes_have_the_order_of_their_passages(tmp_path) -> None:
    store = SqlStore.open(tmp_path / "a.tome")
    fill(store, reversed(range(60)))
    build_layer(store, make_model())
    order = {key: place for place, key in enumerate(store.node_keys("passages"))}
    lowest = [key for key, node in store.nodes(NAME).items() if node.level == 1]
    for members in read_sources(store, lowest, NAME).values():
        places = [order[key] for key in members]
        assert places == sorted(places)
        assert 3 <= len(places) <= 16
    assert np.isfinite(read_vectors(store, NAME).rows).all()
