"""The hypergraph: its operations, and what holds after any sequence of them."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.errors import StoreError, UsageError
from tomewise.working.hypergraph import Hypergraph, Vertex

XODAR, ISSUS, CARTER = Vertex("e-1", "Xodar"), Vertex("e-2", "Issus"), Vertex("e-3", "Carter")
NEW = Vertex("o-1", "Degradation", in_graph=False)


def make_memory(*points: tuple[Any, ...]) -> Hypergraph:
    memory = Hypergraph()
    for point in points:
        memory.insert(*point)
    return memory


def list_ids(points) -> list[str]:
    return [point.id for point in points]


def test_an_update_changes_the_description_and_keeps_the_vertices_unless_others_are_given():
    memory = make_memory(("Issus punishes Xodar.", [XODAR, ISSUS], ["p-1"]), ("Carter won.", [CARTER]))
    changed = memory.update("m1", "Issus degrades Xodar.", ["p-2"])
    assert changed.vertices == {"e-1", "e-2"}
    assert [step.description for step in changed.history] == ["Issus punishes Xodar.", "Issus degrades Xodar."]
    assert memory.find_grounds(changed) == ("p-2", "p-1"), "the newest first"
    assert list_ids(memory.points) == ["M1", "M2"], "it keeps its place"
    assert memory.update("M1", "Xodar is degraded.", (), [NEW]).vertices == {"o-1"}
    assert set(memory.vertices) == {"e-3", "o-1"}, "no vertex is left over"


@pytest.mark.parametrize("keep", [False, True])
def test_merging_unites_vertices_and_the_originals_leave_or_stay(keep):
    memory = make_memory(
        ("Issus punishes Xodar.", [XODAR, ISSUS], ["p-1"]), ("Carter defeated Xodar.", [XODAR, CARTER], ["p-2"])
    )
    merged = memory.merge(["M1", "M2"], "Xodar is punished for his defeat.", keep=keep)
    assert (merged.id, merged.order, merged.vertices) == ("M3", 2, {"e-1", "e-2", "e-3"})
    assert merged.history[-1].earlier == ("M1", "M2")
    assert set(memory.find_grounds(merged)) == {"p-1", "p-2"}
    assert list_ids(memory.points) == (["M1", "M2", "M3"] if keep else ["M3"])
    assert list_ids(memory.former) == ([] if keep else ["M1", "M2"])
    assert memory.insert("More.", [NEW]).id == "M4", "no id is used twice"
    assert memory.merge(["M3", "M4"], "All.").order == 3
    with pytest.raises(UsageError, match=f"'M3' is not a memory point: use one of {'M1, M2, M5' if keep else 'M5'}"):
        memory.merge(["M3", "M5"], "a point that was merged")


VERTICES = st.lists(
    st.integers(0, 6).map(lambda number: Vertex(f"v{number}", f"name {number}", number < 4)), min_size=1, max_size=4
)
GROUNDS = st.lists(st.sampled_from(["p1", "p2", "p3", "p4"]), max_size=3)
PLACES = st.lists(st.integers(0, 9), min_size=2, max_size=3)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), VERTICES, GROUNDS),
        st.tuples(st.just("update"), st.integers(0, 9), GROUNDS, st.none() | VERTICES),
        st.tuples(st.just("merge"), PLACES, st.booleans()),
    ),
    max_size=25,
)


def apply_to(memory: Hypergraph, operation: tuple[Any, ...], number: int) -> None:
    text = f"text {number}"
    match operation:
        case ("insert", vertices, grounds):
            memory.insert(text, vertices, grounds)
        case ("update", place, grounds, vertices) if memory.points:
            memory.update(memory.points[place % len(memory.points)].id, text, grounds, vertices)
        case ("merge", places, keep) if memory.points:
            parts = {memory.points[place % len(memory.points)] for place in places}
            made = [set(step.earlier) for point in memory.points for step in point.history]
            if set(list_ids(parts)) in made:
                with pytest.raises(UsageError, match="merged before"):
                    memory.merge(list_ids(parts), text, keep=keep)
            elif len(parts) > 1:
                merged = memory.merge(list_ids(parts), text, keep=keep)
                assert merged.vertices == frozenset(chain.from_iterable(part.vertices for part in parts))
                assert all(merged.order > part.order for part in parts)
                grounds = set(chain.from_iterable(map(memory.find_grounds, parts)))
                assert set(memory.find_grounds(merged)) == grounds, "a merged point rests on all that its parts do"


@given(OPERATIONS, st.integers(1, 4), st.sets(st.sampled_from(["p1", "p2", "v1"])))
def test_any_memory_holds_together_and_so_does_what_is_left_of_it(operations, most, gone):
    memory = Hypergraph()
    for number, operation in enumerate(operations):
        apply_to(memory, operation, number)
    points = [*memory.points, *memory.former]
    ids = list_ids(points)
    assert len(set(ids)) == len(ids)
    assert set(memory.vertices) == set(chain.from_iterable(point.vertices for point in points)), "no dangling vertex"
    for point in points:
        assert point.vertices
        assert point.history[0].operation in ("insert", "merge")
        assert point.history[-1].description == point.description
        assert {part for step in point.history for part in step.earlier} <= set(ids), "a closed history"
    dumped = memory.dump()
    loaded = Hypergraph.load(json.loads(json.dumps(dumped)))
    assert loaded == memory
    assert json.dumps(loaded.dump()) == json.dumps(dumped), "equal memories have equal bytes"
    assert loaded.insert("one more", [XODAR]).id == memory.insert("one more", [XODAR]).id
    grounds = {point.id: set(memory.find_grounds(point)) for point in memory.points}
    memory.shrink(most)
    assert len(memory.points) <= most
    assert len(memory.former) <= most
    assert all(len(point.history) <= most for point in (*memory.points, *memory.former))
    assert all(set(memory.find_grounds(point)) == grounds[point.id] for point in memory.points)
    assert Hypergraph.load(memory.dump()) == memory
    memory.forget(gone)
    assert memory.find_nodes().isdisjoint(gone), "it rests on nothing that is gone"
    assert Hypergraph.load(memory.dump()) == memory


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda data: data.pop("points"), "points: Field required"),
        (lambda data: data["points"].append(data["points"][0]), "same id"),
        (lambda data: data.update(issued=2), "never issued"),
        (lambda data: data["points"][0].update(id="Mx"), "never issued"),
        (lambda data: data["vertices"].pop(), "a vertex that is missing"),
        (lambda data: data["points"][0].update(vertices=[]), "or none"),
        (lambda data: data["vertices"].append({"id": "e-9", "name": "Nobody"}), "belongs to no point"),
        (lambda data: data["former"].pop(), "names a point that is missing"),
        (lambda data: data["points"][0].update(description="c"), "does not end with what it says"),
    ],
)
def test_data_that_does_not_hold_together_is_refused(change, problem):
    memory = make_memory(("a", [XODAR, ISSUS]), ("b", [CARTER]))
    memory.merge(["M1", "M2"], "ab")
    data = memory.dump()
    change(data)
    with pytest.raises(StoreError, match=problem):
        Hypergraph.load(data)


def test_a_point_that_rests_on_a_removed_node_leaves_and_its_other_parts_come_back():
    memory = make_memory(
        ("Issus punishes Xodar.", [XODAR, ISSUS], ["p-1"]), ("Carter defeated Xodar.", [CARTER, NEW], ["p-2"])
    )
    memory.merge(["M1", "M2"], "Xodar is punished for his defeat.")
    memory.insert("Issus rules.", [ISSUS], ["p-3"])
    assert memory.find_nodes() == {"p-1", "p-2", "p-3", "e-1", "e-2", "e-3"}
    assert memory.forget(["p-2", "e-1"]) == ("Xodar is punished for his defeat.",)
    assert {point.id: point.description for point in memory.points} == {
        "M1": "Issus punishes Xodar.",
        "M4": "Issus rules.",
    }
    assert memory.former == ()
    assert {id: vertex.in_graph for id, vertex in memory.vertices.items()} == {"e-1": False, "e-2": True}
    assert memory.insert("More.", [CARTER]).id == "M5", "no id is used twice"
    assert memory.forget(["p-9"]) == ()
    memory.update("M1", "Issus degrades Xodar.", ["p-4"])
    assert memory.forget(["p-4"]) == ("Issus degrades Xodar.",), "its update rests on what is gone"
    assert memory.forget(["p-3"]) == ("Issus rules.",)
    assert list_ids(memory.points) == ["M5"]


def test_a_full_memory_keeps_what_joins_others_and_then_what_is_new():
    memory = make_memory(*((f"text {number}", [XODAR], [f"p-{number}"]) for number in range(5)))
    memory.merge(["M1", "M2"], "both")
    assert [point.id for point in memory.rank()] == ["M6", "M5", "M4", "M3"], (
        "what joins others and what is new in turn"
    )
    assert memory.shrink(2) == ("text 2", "text 3")
    assert memory.notes == ("text 4", "both")
    assert memory.shrink(2) == ()
    for number in range(9):
        memory.update("M6", f"more {number}", [f"q-{number}"])
    grounds = set(memory.find_grounds(memory.find("M6")))
    memory.shrink(1)
    (kept,) = memory.points
    assert (kept.id, len(kept.history), len(memory.former)) == ("M6", 1, 1)
    assert set(memory.find_grounds(kept)) == grounds, "what leaves a history leaves its evidence there"
