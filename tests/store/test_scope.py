"""Which nodes lie within a scope, compared with a slow reading of the same definition."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.plain_store import PlainStore

from tomewise.embedding.hash import HashEmbedder
from tomewise.store.address import find_tome_address
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import put_document
from tomewise.types import Condition, Document, Node, Scope

EMBEDDER = HashEmbedder(16)
OPERATORS = ["=", "!=", "<", "<=", ">", ">="]
METADATA = {
    "a": {"year": 1911, "date": "1911-05-02", "tags": ["sea", "light"]},
    "b": {"year": 1899.5, "date": "1899-12-31", "open": True, "tags": []},
    "c": {"year": "unknown", "open": False, "tags": ["law", 3], "title": "own"},
    "d": {'odd "field".[0]': "it's"},
    "e": {"year": 9, "open": 1},
}
TITLES = {"a": "One", "c": "not its own", "d": "own"}
VALUES = [
    *("One", "own", "1900", "1911-05-02", "sea", "law", "light", "unknown", "it's"),
    *(10**30, 1911, 1899.5, 9, 10, 3, True, False, 1, 2**70),
]
FIELDS = ["year", "date", "tags", "open", "title", 'odd "field".[0]', "none"]


@pytest.fixture(scope="module")
def plain():
    """A store of dictionaries, which tests a scope document by document and node by node."""
    store = PlainStore()
    fill(store)
    return store


@pytest.fixture(scope="module", params=["file", "database", "plain"])
def store(request, tmp_path_factory, plain):
    if request.param == "plain":
        made = plain
    elif request.param == "file":
        made = SqlStore.open(tmp_path_factory.mktemp("scope") / "a.tome")
        fill(made)
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TOMEWISE_CACHE", str(tmp_path_factory.mktemp("scope")))
            made = SqlStore.open(find_tome_address(f"{request.getfixturevalue('postgres')}#scope"))
        fill(made)
    yield made
    if request.param == "database":
        made.delete()
    elif request.param == "file":
        made.close()


def fill(made):
    for name, metadata in METADATA.items():
        document = Document(id=name, text=f"The text of {name}.", title=TITLES.get(name, ""), metadata=metadata)
        put_document(made, EMBEDDER, document)
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


def documents_within(store, scope):
    keys = store.keys_within(scope)
    assert keys.tolist() == sorted(keys.tolist())
    return "".join(sorted(passage.document for passage in store.passages(keys.tolist()).values()))


conditions = st.builds(Condition, st.sampled_from(FIELDS), st.sampled_from(OPERATORS), st.sampled_from(VALUES))


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(conditions, max_size=3), st.none() | st.sets(st.sampled_from("abcdez")))
def test_documents_and_conditions_are_those_of_a_slow_reading(store, plain, where, documents):
    scope = Scope(documents=None if documents is None else frozenset(documents), where=tuple(where))
    expected = [record.id for record in plain.documents(scope)]
    assert [record.id for record in store.documents(scope)] == expected
    if scope != Scope():
        assert documents_within(store, scope) == "".join(expected)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Condition("year", ">", 1900), "a"),
        (Condition("year", "!=", 9), "abc"),
        (Condition("tags", "!=", "law"), "ac"),
        (Condition("open", "=", value=True), "b"),
        (Condition("open", "=", 1), "e"),
        (Condition('odd "field".[0]', "=", "it's"), "d"),
        (Condition("none", "!=", 1), ""),
    ],
)
def test_a_condition_tests_each_value_of_its_kind(store, condition, expected):
    assert documents_within(store, Scope(where=(condition,))) == expected


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (Scope(entities=frozenset({"ada", "ida", "nobody"})), "abd"),
        (Scope(entities=frozenset()), ""),
        (Scope(entities=frozenset({"ada"}), where=(Condition("year", "<", 1900),)), "b"),
        # Left out are passages that see these entities and no other.
        (Scope(without_entities=frozenset({"ada"})), "bcde"),
        (Scope(without_entities=frozenset({"ada", "tom"})), "de"),
    ],
)
def test_entities_are_seen_in_passages(store, scope, expected):
    assert documents_within(store, scope) == expected


@pytest.mark.parametrize(
    ("documents", "layer", "expected"),
    [
        # A derived node is within if all that it rests on is, whatever its lifetime.
        ("ab", "tree", {"low"}),
        ("ac", "tree", {"alone"}),
        ("abc", "tree", {"low", "alone", "high"}),
        ("ab", "notes", {"note"}),
        ("ac", "notes", set()),
        ("d", "no such layer", set()),
        ("ad", "groups", {"group"}),
        ("ab", "groups", set()),
        # A shared node is within if one passage is.
        ("bd", "entities:passages-triples", {"ada", "tom", "ida"}),
        ("e", "entities:passages-triples", set()),
    ],
)
def test_nodes_are_within_by_what_they_rest_on(store, documents, layer, expected):
    keys = store.keys_within(Scope(documents=frozenset(documents)), layer)
    assert {node.id for node in store.nodes_at(keys.tolist()).values()} == expected


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
    kept = store.keys_within(scope)
    for number in range(100, 200):
        store.keys_within(Scope(where=(Condition("year", "=", number),)))
    assert store.keys_within(scope) is not kept, "few scopes are kept"
    store.close()
