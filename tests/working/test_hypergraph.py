"""The hypergraph: its operations, and what holds after any sequence of them."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.errors import StoreError, UsageError
from tomewise.working.hypergraph import Hypergraph


def make_memory(*points: tuple[Any, ...]) -> Hypergraph:
    memory = Hypergraph()
    for point in points:
        memory.insert(*point)
    return memory


def list_ids(points) -> list[str]:
    return [point.id for point in points]


def test_an_update_changes_the_description_and_keeps_the_entities_unless_others_are_given():
    memory = make_memory(("Issus punishes Xodar.", ["Xodar", "Issus"], ["p-1"]), ("Carter won.", ["Carter"]))
    changed = memory.update("m1", "Issus degrades Xodar.", grounds=["p-2"])
    assert (changed.description, changed.entities) == ("Issus degrades Xodar.", {"Xodar", "Issus"})
    assert changed.grounds == ("p-2", "p-1"), "the newest first"
    assert list_ids(memory.points) == ["M1", "M2"], "it keeps its place"
    assert memory.update("M1", "Xodar is degraded.", ["Degradation"]).entities == {"Degradation"}


@pytest.mark.parametrize("keep", [False, True])
def test_merging_unites_entities_and_grounds_and_the_parts_leave_or_stay(keep):
    memory = make_memory(
        ("Issus punishes Xodar.", ["Xodar", "Issus"], ["p-1", "p-2"]),
        ("Carter defeated Xodar.", ["XODAR", "Carter"], ["p-3"]),
    )
    merged = memory.merge(["M1", "M2"], "Xodar is punished for his defeat.", keep=keep)
    assert (merged.id, merged.order, merged.parts) == ("M3", 2, ("M1", "M2"))
    assert merged.entities == {"Xodar", "Issus", "Carter"}, "a name keeps its first spelling"
    assert merged.grounds == ("p-1", "p-3", "p-2"), "those of its parts in turn"
    assert list_ids(memory.points) == (["M1", "M2", "M3"] if keep else ["M3"])
    assert memory.insert("More.", ["Degradation"]).id == "M4", "no id is used twice"
    assert memory.merge(["M3", "M4"], "All.").order == 3
    with pytest.raises(UsageError, match=f"'M3' is not a memory point: use one of {'M1, M2, M5' if keep else 'M5'}"):
        memory.merge(["M3", "M5"], "a point that was merged")


ENTITIES = st.lists(st.integers(0, 6).map(lambda number: f"name {number}"), min_size=1, max_size=4)
NODES = st.lists(st.sampled_from(["p1", "p2", "p3", "p4"]), max_size=3)
PLACES = st.lists(st.integers(0, 9), min_size=2, max_size=3)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), ENTITIES, NODES, NODES),
        st.tuples(st.just("update"), st.integers(0, 9), ENTITIES | st.just([]), NODES, NODES),
        st.tuples(st.just("merge"), PLACES, st.booleans()),
    ),
    max_size=25,
)


def apply_to(memory: Hypergraph, operation: tuple[Any, ...], number: int) -> None:
    text = f"text {number}"
    match operation:
        case ("insert", *rest):
            memory.insert(text, *rest)
        case ("update", place, *rest) if memory.points:
            memory.update(memory.points[place % len(memory.points)].id, text, *rest)
        case ("merge", places, keep) if memory.points:
            parts = {memory.points[place % len(memory.points)] for place in places}
            if set(list_ids(parts)) in [set(point.parts) for point in memory.points]:
                with pytest.raises(UsageError, match="merged before"):
                    memory.merge(list_ids(parts), text, keep=keep)
            elif len(parts) > 1:
                merged = memory.merge(list_ids(parts), text, keep=keep)
                assert merged.entities == frozenset(chain.from_iterable(part.entities for part in parts))
                assert all(merged.order > part.order for part in parts)
                grounds = set(chain.from_iterable(part.grounds for part in parts))
                assert set(merged.grounds) == grounds, "a merged point rests on all that its parts do"


@given(OPERATIONS, st.integers(1, 4), st.sets(st.sampled_from(["p1", "p2"])))
def test_any_memory_holds_together_and_so_does_what_is_left_of_it(operations, most, gone):
    memory = Hypergraph()
    for number, operation in enumerate(operations):
        apply_to(memory, operation, number)
    ids = list_ids(memory.points)
    assert len(set(ids)) == len(ids)
    assert [point.number for point in memory.points] == sorted(point.number for point in memory.points)
    assert all(point.entities and point.description for point in memory.points)
    memory.weigh(dict.fromkeys(ids, 0.5))
    dumped = memory.dump()
    loaded = Hypergraph.load(json.loads(json.dumps(dumped)))
    assert loaded == memory
    assert json.dumps(loaded.dump()) == json.dumps(dumped), "equal memories have equal bytes"
    assert loaded.insert("one more", ["Xodar"]).id == memory.insert("one more", ["Xodar"]).id
    before = memory.points
    left = memory.shrink(most)
    assert len(memory.points) <= most
    assert [*left] == [point.description for point in before if point not in memory.points]
    assert Hypergraph.load(memory.dump()) == memory
    memory.forget(gone)
    assert memory.find_nodes().isdisjoint(gone), "it rests on nothing that is gone"
    assert Hypergraph.load(memory.dump()) == memory


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda data: data.pop("points"), "it lacks points"),
        (lambda data: data["points"][0].pop("entities"), "entities: Field required"),
        (lambda data: data["points"].append(data["points"][0]), "the same label"),
        (lambda data: data.update(issued=2), "never given"),
        (lambda data: data["points"][0].update(id="Mx"), "never given"),
        (lambda data: data["points"][0].update(entities=[]), "joins no entity"),
    ],
)
def test_data_that_does_not_hold_together_is_refused(change, problem):
    memory = make_memory(("a", ["Xodar", "Issus"]), ("b", ["Carter"]))
    memory.merge(["M1", "M2"], "ab")
    data = memory.dump()
    change(data)
    with pytest.raises(StoreError, match=problem):
        Hypergraph.load(data)


def test_a_point_leaves_with_what_it_rests_on_or_may_rest_on():
    memory = make_memory(
        ("Issus punishes Xodar.", ["Xodar", "Issus"], ["p-1"], ["p-1", "p-8"]),
        ("Carter defeated Xodar.", ["Carter"], [], ["p-2", "p-3"]),
        ("Issus rules.", ["Issus"], ["p-4"], ["p-4"]),
    )
    assert [point.grounds for point in memory.points] == [("p-1",), (), ("p-4",)], (
        "what no record names grounds nothing"
    )
    assert memory.find_nodes() == {"p-1", "p-2", "p-3", "p-4"}
    assert memory.forget(["p-8"]) == (), "it named another passage"
    memory.update("M3", "Issus ruled.", shown=["p-5"])
    memory.merge(["M1", "M2"], "Xodar is punished for his defeat.")
    assert memory.forget(["p-3", "p-5"]) == ("Issus ruled.", "Xodar is punished for his defeat.")
    assert memory.insert("More.", ["Carter"]).id == "M5", "no id is used twice"


def test_a_full_memory_keeps_what_mattered_to_a_late_question_and_then_what_is_new():
    memory = make_memory(*((f"text {number}", ["Xodar"], [f"p-{number}"]) for number in range(5)))
    memory.weigh({"M1": 0.9, "M4": 0.1})
    for _ in range(2):
        memory.weigh({})
    assert memory.shrink(3) == ("text 1", "text 2")
    assert memory.notes == ("text 0", "text 3", "text 4")
    memory.weigh({})
    assert memory.shrink(2) == ("text 0",), "three questions later, what is new counts"
    assert memory.shrink(2) == ()
