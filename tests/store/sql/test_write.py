"""The effects of each change, compared with cases computed by hand."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.conftest import OpenStore
from tests.store.contract import add, assert_arrays_follow, cut_passages, remove

from tomewise.memory.build_records import record_build
from tomewise.store.lookups import find_derived, find_keys, read_edges, read_sources, read_vectors
from tomewise.store.sql.sql_store import SqlStore
from tomewise.store.sql.write import Write
from tomewise.types import Document, Node

DOCUMENTS = [Document(id=name, text=f"text of {name}.") for name in ("one", "two", "three")]


def node(name: str, *sources: str, layer: str = "made") -> Node:
    return Node(id=name, layer=layer, text=name, sources=sources)


@pytest.fixture
def store(store: SqlStore) -> SqlStore:
    """A store with three documents of one passage each."""
    with store.write() as change:
        for document in DOCUMENTS:
            change.put_document(document, "", cut_passages(document, 100))
    return store


def ids(store: SqlStore) -> list[str]:
    return [passage.id for passage in store.passages().values()]  # of one, three, two


def list_left(store: SqlStore, *layers: str) -> set[str]:
    return {found.id for layer in layers for found in store.nodes(layer).values()}


def test_a_removal_reaches_every_level_of_nodes_made_from_it(store: SqlStore) -> None:
    first, third, second = ids(store)
    with store.write() as change:
        change.put_nodes([node("a", first), node("b", second), node("both", first, second)])
        change.put_nodes([node("aa", "a"), node("top", "aa", "b")])
        change.put_nodes([node("seen", "a", "b", layer="s"), node("lone", "aa", layer="s")], lifetime="any")
        change.put_nodes([node("on-lone", "lone")])
    gone = remove(store, "one")
    assert list_left(store, "made", "s") == {"b", "seen"}
    assert len(gone) == len(set(gone)) == 7  # the passage, a, both, aa, top, lone, on-lone
    remove(store, "two")
    assert list_left(store, "made", "s") == set()
    assert ids(store) == [third]


def test_a_shared_node_goes_when_all_its_sources_are_removed_at_once(store: SqlStore) -> None:
    first, third, second = ids(store)
    with store.write() as change:
        change.put_nodes([node("x", first, second, layer="s"), node("y", first, third, layer="s")], lifetime="any")
    keys = find_keys(store, [first, second, "unknown"])
    assert set(keys) == {first, second}
    with store.write() as change:
        change.remove_nodes(keys.values())
    assert list_left(store, "s") == {"y"}


def test_nodes_that_exist_keep_their_text_and_gain_sources(store: SqlStore) -> None:
    first, third, second = ids(store)
    with store.write() as change:
        shared = change.put_nodes([node("x", second, layer="s")], lifetime="any")
        again = Node(id="x", layer="s", text="other", sources=(first, second))
        assert change.put_nodes([again, again, node("y", third, layer="s")], lifetime="any")["x"] == shared["x"]
    keys = find_keys(store, [first, second])
    assert store.nodes_at([shared["x"]])[shared["x"]].text == "x"
    assert read_sources(store, [shared["x"]], "s") == {shared["x"]: [keys[first], keys[second]]}
    assert find_derived(store, [keys[first], 10_000], "seen-in:s") == {keys[first]: [shared["x"]], 10_000: []}


def test_an_id_belongs_to_one_layer(store: SqlStore) -> None:
    with store.write() as change:
        change.put_nodes([node("x")])
    message = "'x' is the id of a node in 'made' and in 's'"
    with pytest.raises(ValueError, match=message), store.write() as change:
        change.put_nodes([node("x", layer="s")])


def test_what_comes_and_goes_in_one_transaction_leaves_no_trace(store: SqlStore) -> None:
    with store.write() as change:
        change.put_document(Document(id="guest", text="x"), "", [])
        keys = change.put_nodes([node("x", ids(store)[0])])
        change.put_vectors("made", list(keys.values()), np.ones((1, 4), np.float32))
        change.remove_nodes(keys.values())
        change.remove_document("guest")
    assert store.versions(["vectors/made"]) == {"vectors/made": 0}
    assert read_edges(store, "made-of:made").rows.tolist() == []
    assert len(store.documents()) == 3


def test_more_keys_than_a_statement_takes_parameters(store: SqlStore) -> None:
    many = [node(f"n{number}") for number in range(33_000)]
    with store.write() as change:
        keys = change.put_nodes(many)
        at = np.array(list(keys.values()))
        change.put_edges("e", at[:-1], at[1:], np.ones(len(at) - 1))
    assert len(store.nodes_at(keys.values())) == len(find_keys(store, keys)) == 33_000
    with store.write() as change:
        assert len(change.remove_nodes(at[5:])) == 32_995  # integers of NumPy are accepted
    assert read_edges(store, "e").rows.shape == (4, 3)


def test_a_new_text_reaches_the_layers_above(store: SqlStore) -> None:
    first, _, second = ids(store)
    with store.write() as change:
        keys = change.put_nodes([node("x", first), node("y", second)], lifetime="any")
        keys |= change.put_nodes([node("gist", "x", layer="gists")])
        keys |= change.put_nodes([node("both", "x", "y", layer="s"), node("one", "x", layer="s")], lifetime="any")
        keys |= change.put_nodes([node("kept", "x", layer="k")], lifetime="layer")
        for layer in ("gists", "s"):
            change.record_intake(layer, [keys["x"], keys["y"]])
            record_build(change, layer, {})
    with store.write() as change:
        change.update_nodes([Node(id="y", layer="made", text="y", sources=(first,), data={"only": "data"})])
    assert store.find_pending_keys("s", ["made"]) == [], "the text is the same"
    assert read_sources(store, [keys["y"]], "made") == {keys["y"]: list(find_keys(store, [first]).values())}
    with store.write() as change:
        change.update_nodes([Node(id="x", layer="made", text="new", sources=(first,))], lifetime="any")
    assert list_left(store, "gists", "s", "k") == {"both", "kept"}
    assert read_sources(store, [keys["both"]], "s") == {keys["both"]: [keys["y"]]}
    assert read_sources(store, [keys["kept"]], "k") == {keys["kept"]: [keys["x"]]}
    for layer in ("gists", "s"):
        assert store.find_pending_keys(layer, ["made"]) == [keys["x"]]
        assert store.find_removed_ids(layer) == ("x",)
    assert_arrays_follow(store)


def test_a_document_that_moves_gives_its_spaces_new_versions_and_the_same_rows(store: SqlStore) -> None:
    """Whoever read ids by the versions of before reads them again."""
    keys = store.node_keys("passages")
    with store.write() as change:
        change.put_vectors("passages", keys, np.eye(len(keys), 4, dtype=np.float32))
    before, rows = store.versions(["vectors/passages"]), read_vectors(store, "passages").rows.tolist()
    with store.write() as change:
        change.move_document("one", Document(id="other", text=DOCUMENTS[0].text), "digest")
    assert store.versions(["vectors/passages"]) != before
    assert read_vectors(store, "passages").rows.tolist() == rows
    assert_arrays_follow(store)


PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 9)), max_size=6)
STEPS = st.lists(st.tuples(st.sampled_from(["put", "reweight", "remove"]), PAIRS), max_size=4)


@settings(max_examples=15, deadline=None)
@given(st.lists(STEPS, max_size=4))
def test_edges_are_what_a_dictionary_would_hold(history: list[list[tuple[str, list[tuple[int, int, int]]]]]) -> None:
    with TemporaryDirectory() as folder:
        store = SqlStore.open(Path(folder) / "a.tome")
        with store.write() as change:
            change.put_nodes([node(f"n{number}") for number in range(4)])
            change.put_edges("other", np.array([1]), np.array([2]), np.array([0.5]))
        truth: dict[tuple[int, int], float] = {}
        for transaction in history:
            with store.write() as change:
                for step, rows in transaction:
                    _change_edges(change, truth, step, [(a + 1, b + 1, float(weight)) for a, b, weight in rows])
            assert {(a, b): weight for a, b, weight in read_edges(store, "e").rows.tolist()} == truth
            assert_arrays_follow(store)
        assert read_edges(store, "other").rows.tolist() == [[1, 2, 0.5]]
        store.close()


def _change_edges(
    change: Write, truth: dict[tuple[int, int], float], step: str, rows: list[tuple[int, int, float]]
) -> None:
    pairs = np.array([row[:2] for row in rows], np.int64).reshape(-1, 2)
    weights = np.array([row[2] for row in rows], np.float64)
    if step == "put":
        change.put_edges("e", pairs[:, 0], pairs[:, 1], weights)
        for a, b, weight in rows:
            truth.setdefault((a, b), weight)
    elif step == "reweight":
        change.put_edges("e", pairs[:, 0], pairs[:, 1], weights, replace=True)
        truth.update({(a, b): weight for a, b, weight in rows})
    else:
        change.remove_edges("e", pairs)
        for a, b, _ in rows:
            truth.pop((a, b), None)


def test_texts_of_any_kind_are_kept(open_store: OpenStore) -> None:
    text = "null \x00 inside, 潮 and 🌊, \r\n quotes ' \" and %s"
    add(open_store("other.tome"), Document(id='it\'s "odd" %/?', text=text))
    again = open_store("other.tome")
    assert again.document('it\'s "odd" %/?').text == text
    assert again.documents()[0].characters == len(text)
    assert "".join(passage.text for passage in again.passages().values()) == text
