"""Which nodes lie within a scope, compared with a slow reading of the same definition."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.plain_store import make_opener

from tomewise.embedding.hash import HashEmbedder
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import put_document
from tomewise.types import Condition, Document, Node, Scope

EMBEDDER = HashEmbedder(16)
TESTS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
METADATA = {
    "a": {"year": 1911, "date": "1911-05-02", "tags": ["sea", "light"]},
    "b": {"year": 1899.5, "date": "1899-12-31", "open": True, "tags": []},
    "c": {"year": "unknown", "open": False, "tags": ["law", 3]},
    "d": {'odd "field".[0]': "it's"},
    "e": {"year": 9, "open": 1},
}
VALUES = [1911, 1899.5, 9, 10, "1900", "1911-05-02", "sea", "law", "light", 3, True, False, 1, "unknown", 2**70, "it's"]
FIELDS = ["year", "date", "tags", "open", 'odd "field".[0]', "none"]


@pytest.fixture(scope="module", params=[SqlStore.open, make_opener()], ids=["sqlite", "plain"])
def store(request, tmp_path_factory):
    made = request.param(tmp_path_factory.mktemp("scope") / "a.tome")
    for name, metadata in METADATA.items():
        put_document(made, EMBEDDER, Document(id=name, text=f"The text of {name}.", metadata=metadata))
    home = {passage.document: passage.id for passage in made.passages().values()}
    entities = {"ada": "ab", "tom": "bc", "ida": "d"}
    with made.write() as change:
        layer = "entities:passages-triples"
        for name, seen_in in entities.items():
            sources = tuple(home[document] for document in seen_in)
            change.put_nodes([Node(id=name, layer=layer, text=name, sources=sources)], lifetime="any")
        summary = Node(id="low", layer="tree", text="low", sources=(home["a"], home["b"]), level=1)
        change.put_nodes([summary, Node(id="alone", layer="tree", text="alone", sources=(home["c"],), level=1)])
        change.put_nodes([Node(id="high", layer="tree", text="high", sources=("low", "alone"), level=2)])
        change.put_nodes([Node(id="note", layer="notes", text="note", sources=("low",))])
        group = Node(id="group", layer="groups", text="group", sources=(home["a"], home["d"]))
        change.put_nodes([group, Node(id="empty", layer="groups", text="empty", sources=())], lifetime="layer")
    yield made
    made.close()


def documents_within(store, scope):
    keys = store.keys_within(scope)
    assert keys.tolist() == sorted(keys.tolist())
    return "".join(sorted(passage.document for passage in store.passages(keys.tolist()).values()))


def nodes_within(store, scope, layer):
    return {node.id for node in store.nodes_at(store.keys_within(scope, layer).tolist()).values()}


def same_kind(value, stated):
    kinds = [bool if isinstance(item, bool) else str if isinstance(item, str) else float for item in (value, stated)]
    return kinds[0] is kinds[1]


def passes(metadata, condition):
    if condition.field not in metadata:
        return False
    value = metadata[condition.field]
    for item in value if isinstance(value, list) else [value]:
        if not same_kind(item, condition.value):
            if condition.operator == "!=":
                return True
        elif TESTS[condition.operator](item, condition.value):
            return True
    return False


conditions = st.builds(Condition, st.sampled_from(FIELDS), st.sampled_from(list(TESTS)), st.sampled_from(VALUES))


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(conditions, max_size=3), st.none() | st.sets(st.sampled_from("abcdez")))
def test_documents_and_conditions_are_those_of_a_slow_reading(store, where, documents):
    scope = Scope(documents=None if documents is None else frozenset(documents), where=tuple(where))
    expected = [
        name
        for name, metadata in METADATA.items()
        if (documents is None or name in documents) and all(passes(metadata, condition) for condition in where)
    ]
    if scope != Scope():
        assert documents_within(store, scope) == "".join(expected)


def test_the_whole_tome_needs_no_keys(store):
    assert store.keys_within(None) is None
    assert store.keys_within(Scope()) is None


def test_entities_are_seen_in_passages(store):
    assert documents_within(store, Scope(entities=frozenset({"ada"}))) == "ab"
    assert documents_within(store, Scope(entities=frozenset({"ada", "ida", "nobody"}))) == "abd"
    assert documents_within(store, Scope(entities=frozenset())) == ""
    assert documents_within(store, Scope(entities=frozenset({"ada"}), where=(Condition("year", "<", 1900),))) == "b"


def test_left_out_are_passages_that_see_these_entities_and_no_other(store):
    assert documents_within(store, Scope(without_entities=frozenset({"ada"}))) == "bcde"
    assert documents_within(store, Scope(without_entities=frozenset({"ada", "tom"}))) == "de"
    assert documents_within(store, Scope(without_entities=frozenset({"nobody"}))) == "abcde"


def test_a_derived_node_is_within_if_all_it_rests_on_is(store):
    assert nodes_within(store, Scope(documents=frozenset("ab")), "tree") == {"low"}
    assert nodes_within(store, Scope(documents=frozenset("ac")), "tree") == {"alone"}
    assert nodes_within(store, Scope(documents=frozenset("abc")), "tree") == {"low", "alone", "high"}
    assert nodes_within(store, Scope(documents=frozenset("ab")), "notes") == {"note"}
    assert nodes_within(store, Scope(documents=frozenset("ac")), "notes") == set()
    assert nodes_within(store, Scope(documents=frozenset("d")), "no such layer") == set()


def test_a_node_that_lives_until_its_layer_removes_it_is_within_if_all_it_rests_on_is(store):
    assert nodes_within(store, Scope(documents=frozenset("ad")), "groups") == {"group"}
    assert nodes_within(store, Scope(documents=frozenset("ab")), "groups") == set()


def test_words_are_looked_for_within(store):
    def find(scope):
        return [store.passages([key])[key].document for key, _ in store.lexical("text", 9, within=scope)]

    assert sorted(find(None)) == sorted(find(Scope())) == list("abcde")
    assert sorted(find(Scope(documents=frozenset("ad")))) == ["a", "d"]
    assert find(Scope(where=(Condition("year", "<", 1900), Condition("open", "=", value=True)))) == ["b"]
    assert sorted(find(Scope(entities=frozenset({"ada"})))) == ["a", "b"]
    assert sorted(find(Scope(without_entities=frozenset({"ada"})))) == list("bcde")
    assert find(Scope(documents=frozenset())) == []


def test_a_shared_node_is_within_if_one_passage_is(store):
    assert nodes_within(store, Scope(documents=frozenset("bd")), "entities:passages-triples") == {"ada", "tom", "ida"}
    assert nodes_within(store, Scope(documents=frozenset("e")), "entities:passages-triples") == set()


def test_keys_follow_changes_and_are_kept_between_them(tmp_path):
    store = SqlStore.open(tmp_path / "a.tome")
    scope = Scope(where=(Condition("year", "=", 1),))
    put_document(store, EMBEDDER, Document(id="a", text="One.", metadata={"year": 1}))
    first = store.keys_within(scope)
    assert store.keys_within(scope) is first
    put_document(store, EMBEDDER, Document(id="b", text="Two.", metadata={"year": 1}))
    assert len(store.keys_within(scope)) == 2
    put_document(store, EMBEDDER, Document(id="a", text="One.", metadata={"year": 2}))
    assert documents_within(store, scope) == "b"
    with store.write() as change:
        change.put_nodes([Node(id="ada", layer="entities:g", text="ada", sources=())], lifetime="any")
    seen = Scope(entities=frozenset({"ada"}))
    assert documents_within(store, seen) == ""
    passage = next(passage.id for passage in store.passages().values() if passage.document == "a")
    with store.write() as change:
        change.put_nodes([Node(id="ada", layer="entities:g", text="ada", sources=(passage,))], lifetime="any")
    assert documents_within(store, seen) == "a"
    for number in range(100):
        store.keys_within(Scope(where=(Condition("year", "=", number),)))
    assert np.array_equal(store.keys_within(scope), store.keys_within(scope))
    assert len(store._scopes._cache) <= 32
    store.close()
