"""The effects of each change, compared with cases computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.store.contract import MakeStore, add, assert_arrays_follow, cut_passages, remove

from tomewise.store.sqlite.store import SqliteStore
from tomewise.types import Document, Node

DOCUMENTS = [Document(id=name, text=f"text of {name}.") for name in ("one", "two", "three")]


def node(name: str, *sources: str, layer: str = "made") -> Node:
    return Node(id=name, layer=layer, text=name, sources=sources)


@pytest.fixture
def store_with_rows(store: SqliteStore) -> SqliteStore:
    with store.write() as change:
        for document in DOCUMENTS:
            change.put_document(document, "", cut_passages(document, 100))
    return store


def ids(store: SqliteStore) -> list[str]:
    return [passage.id for passage in store.passages().values()]  # of one, three, two


def test_a_removal_reaches_every_level_of_nodes_made_from_it(store_with_rows: SqliteStore) -> None:
    first, third, second = ids(store_with_rows)
    with store_with_rows.write() as change:
        change.put_nodes([node("a", first), node("b", second), node("both", first, second)])
        change.put_nodes([node("aa", "a"), node("top", "aa", "b")])
        change.put_nodes([node("seen", "a", "b", layer="s"), node("lone", "aa", layer="s")], shared=True)
        change.put_nodes([node("on-lone", "lone")])
    gone = remove(store_with_rows, "one")
    left = {found.id for layer in ("made", "s") for found in store_with_rows.nodes(layer).values()}
    assert left == {"b", "seen"}
    assert len(gone) == len(set(gone)) == 7  # the passage, a, both, aa, top, lone, on-lone
    remove(store_with_rows, "two")
    assert store_with_rows.nodes("s") == store_with_rows.nodes("made") == {}
    assert ids(store_with_rows) == [third]


def test_a_shared_node_goes_when_all_its_sources_are_removed_at_once(store_with_rows: SqliteStore) -> None:
    first, third, second = ids(store_with_rows)
    with store_with_rows.write() as change:
        change.put_nodes([node("x", first, second, layer="s"), node("y", first, third, layer="s")], shared=True)
    keys = store_with_rows.keys_of([first, second, "unknown"])
    assert set(keys) == {first, second}
    with store_with_rows.write() as change:
        change.remove_nodes(keys.values())
    assert [found.id for found in store_with_rows.nodes("s").values()] == ["y"]


def test_nodes_that_exist_keep_their_text_and_gain_sources(store_with_rows: SqliteStore) -> None:
    first, third, second = ids(store_with_rows)
    with store_with_rows.write() as change:
        shared = change.put_nodes([node("x", second, layer="s")], shared=True)
        again = Node(id="x", layer="s", text="other", sources=(first, second))
        assert change.put_nodes([again, again, node("y", third, layer="s")], shared=True)["x"] == shared["x"]
    keys = store_with_rows.keys_of([first, second])
    assert store_with_rows.nodes_at([shared["x"]])[shared["x"]].text == "x"
    assert store_with_rows.sources([shared["x"]], "s") == {shared["x"]: [keys[first], keys[second]]}
    assert store_with_rows.find_derived([keys[first], 10_000], "seen-in:s") == {keys[first]: [shared["x"]], 10_000: []}


def test_only_passages_have_places(store_with_rows: SqliteStore) -> None:
    _, third, second = ids(store_with_rows)
    with store_with_rows.write() as change:
        change.put_nodes([node("x", second)])
    assert store_with_rows.places([second, "x", "unknown", third]) == {second: ("two", 0), third: ("three", 0)}
    assert store_with_rows.places([]) == {}


def test_an_id_belongs_to_one_layer(store_with_rows: SqliteStore) -> None:
    with store_with_rows.write() as change:
        change.put_nodes([node("x")])
    message = "'x' is the id of a node in 'made' and in 's'"
    with pytest.raises(ValueError, match=message), store_with_rows.write() as change:
        change.put_nodes([node("x", layer="s")])


def test_edges_are_kept_once_and_the_first_weight_stays(store_with_rows: SqliteStore) -> None:
    a, b, c = store_with_rows.node_keys("passages")
    with store_with_rows.write() as change:
        change.put_edges("e", np.array([a, a]), np.array([b, b]), np.array([1.0, 2.0]))
    version = store_with_rows.versions(["edges/e"])
    with store_with_rows.write() as change:
        change.put_edges("e", np.array([a]), np.array([b]), np.array([3.0]))
    assert store_with_rows.versions(["edges/e"]) == version, "nothing changed"
    with store_with_rows.write() as change:
        change.put_edges("e", np.array([b, a, c]), np.array([a, b, c]), np.array([4.0, 5.0, 6.0]))
        change.put_edges("other", np.array([a]), np.array([b]), np.array([7.0]))
    assert store_with_rows.edges("e").rows.tolist() == [[a, b, 1.0], [b, a, 4.0], [c, c, 6.0]]
    with store_with_rows.write() as change:
        change.remove_edges("e")
    assert store_with_rows.edges("e").rows.tolist() == []
    assert store_with_rows.edges("other").rows.tolist() == [[a, b, 7.0]]
    assert_arrays_follow(store_with_rows)


def test_what_comes_and_goes_in_one_transaction_leaves_no_trace(store_with_rows: SqliteStore) -> None:
    with store_with_rows.write() as change:
        change.put_document(Document(id="guest", text="x"), "", [])
        keys = change.put_nodes([node("x", ids(store_with_rows)[0])])
        change.put_vectors("made", list(keys.values()), np.ones((1, 4), np.float32))
        change.remove_nodes(keys.values())
        change.remove_document("guest")
    assert store_with_rows.versions(["vectors/made"]) == {"vectors/made": 0}
    assert store_with_rows.edges("made-of:made").rows.tolist() == []
    assert len(store_with_rows.documents()) == 3


def test_more_keys_than_a_statement_takes_parameters(store: SqliteStore) -> None:
    many = [node(f"n{number}") for number in range(33_000)]
    with store.write() as change:
        keys = change.put_nodes(many)
        at = np.array(list(keys.values()))
        change.put_edges("e", at[:-1], at[1:], np.ones(len(at) - 1))
    assert len(store.nodes_at(keys.values())) == len(store.keys_of(keys)) == 33_000
    with store.write() as change:
        assert len(change.remove_nodes(at[5:])) == 32_995  # integers of NumPy are accepted
    assert store.edges("e").rows.shape == (4, 3)


def test_data_and_texts_are_replaced(store_with_rows: SqliteStore) -> None:
    with store_with_rows.write() as change:
        keys = change.put_nodes([node("x"), node("y")])
        change.set_data({keys["x"]: {"known as": ["É", 1]}, keys["y"]: {}}, {keys["y"]: "new"})
    found = store_with_rows.nodes_at([keys["y"], keys["x"], 10_000])
    assert [(made.text, made.data) for made in found.values()] == [("new", {}), ("x", {"known as": ["É", 1]})]


def test_a_layer_remembers_what_it_has_taken_in(store_with_rows: SqliteStore) -> None:
    first, third, second = store_with_rows.node_keys("passages")
    assert store_with_rows.find_pending_keys("l", ["passages"]) == [first, third, second]
    with store_with_rows.write() as change:
        change.record_intake("l", [second], {first: "no reply"})
        change.record_build("l", {"taken": 1})
    assert (store_with_rows.intake("l").done, store_with_rows.intake("l").failed) == ({second}, {first: "no reply"})
    assert store_with_rows.find_pending_keys("l", ["passages"]) == [first, third]
    assert store_with_rows.layers()["l"] == {"nodes": 0, "failed": 1}
    with store_with_rows.write() as change:
        change.record_intake("l", [first])
    assert store_with_rows.intake("l").failed == {}
    remove(store_with_rows, "one")
    assert store_with_rows.intake("l").done == {second}
    assert store_with_rows.builds() == {"l": {"seen": 2, "taken": 1}}
    with store_with_rows.write() as change:
        change.forget_layer("l")
    assert store_with_rows.find_pending_keys("l", ["passages"]) == [third, second]


def test_lists_are_in_document_order(store: SqliteStore) -> None:
    add(store, Document(id="b", text="third part, and the fourth"), Document(id="a", text="first part"))
    texts = [passage.text for passage in store.passages().values()]
    assert texts == ["first part", "third part, ", "and the four", "th"]
    keys = store.node_keys("passages")
    assert list(store.passages(reversed(keys))) == keys[::-1]
    assert list(store.passages_of(["b", "a", "none"])) == keys
    assert list(store.passages_of(["b"])) == keys[1:]


def test_texts_of_any_kind_are_kept(store: SqliteStore, open_store: MakeStore) -> None:
    text = "null \x00 inside, 潮 and 🌊, \r\n quotes ' \" and %s"
    add(store, Document(id='it\'s "odd" %/?', text=text))
    again = open_store("test.tome")
    assert again.document('it\'s "odd" %/?').text == text
    assert again.documents()[0].characters == len(text)
    assert "".join(passage.text for passage in again.passages().values()) == text


def test_traces_come_newest_first(store: SqliteStore) -> None:
    for number in range(3):
        store.save_trace(asked=f"2026-01-0{number + 1}", question=f"q{number}", record={"answer": "å"})
    found = store.traces(2)
    assert [(trace["question"], trace["answer"]) for trace in found] == [("q2", "å"), ("q1", "å")]
