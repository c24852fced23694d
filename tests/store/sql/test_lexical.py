"""Full-text search: stems, scripts, and queries that contain operators of FTS5."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.conftest import OpenStore
from tests.store.contract import remove

from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Document, Passage

TEXTS = {
    "a": "The keeper was running along the pier with two lanterns.",
    "b": "She said that the clock had stopped; the café was closed.",
    "c": "东京的天气今天很好。",
    "d": "What was it that they had been?",
    "e": "NEAR the lighthouse AND NOT the quay: tide OR fog*",
    "f": "ภาษาไทยไม่มีช่องว่าง",
}


def add(store: SqlStore, name: str, text: str, title: str = "") -> int:
    document = Document(id=name, text=text, title=title)
    passage = Passage(id=f"p-{name}", document=name, position=0, start=0, end=len(text), text=text, title=title)
    with store.write() as change:
        return change.put_document(document, "", [passage])[0]


@pytest.fixture
def store_with_rows(store: SqlStore) -> SqlStore:
    for name, text in TEXTS.items():
        add(store, name, text)
    return store


def find_documents(store: SqlStore, query: str, limit: int = 10) -> str:
    passages = store.passages(key for key, _ in store.lexical(query, limit))
    return "".join(passage.document for passage in passages.values())


@pytest.mark.parametrize(
    ("query", "documents"),
    [
        ("run", "a"),  # stems
        ("Lantern", "a"),
        ("cafe", "b"),  # accents in any Unicode form
        ("CAFÉ", "b"),
        (unicodedata.normalize("NFD", "café"), "b"),
        ("天气", "c"),  # scripts without spaces
        ("京", "c"),
        ("ไทย", "f"),
        ("where is the clock?", "b"),  # common words do not count if there are others
        ("lighthouse_keeper", "ea"),
        ("", ""),
        ('?!"*(): -- ^', ""),
        ("zebra", ""),
    ],
)
def test_finds(store_with_rows: SqlStore, query: str, documents: str) -> None:
    assert sorted(find_documents(store_with_rows, query)) == sorted(documents)


def test_common_words_count_if_there_are_no_others(store_with_rows: SqlStore) -> None:
    assert find_documents(store_with_rows, "what had they been").startswith("d")


@pytest.mark.parametrize(
    "query",
    ['"', '""', "tide*", "NEAR(tide fog)", "text:tide", "tide NOT fog", "{text} : tide", "^tide", "(tide", "a\x00tide"],
)
def test_operators_are_words(store_with_rows: SqlStore, query: str) -> None:
    expected = "e" if "tide" in query else ""
    assert find_documents(store_with_rows, query) == expected


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=40))
def test_no_query_is_a_syntax_error(store: SqlStore, query: str) -> None:
    key = add(store, "any", query)
    assert {found for found, _ in store.lexical(query, 5)} <= {key}
    remove(store, "any")
    assert store.lexical(query, 5) == []


def test_titles_are_found(store: SqlStore) -> None:
    key = add(store, "z", "Nothing about it.", title="Barometers")
    assert [at for at, _ in store.lexical("barometer", 5)] == [key]
    remove(store, "z")
    assert store.lexical("barometer nothing", 5) == []


def test_a_removed_document_is_not_found_and_does_not_change_scores(
    store_with_rows: SqlStore, open_store: OpenStore
) -> None:
    before = store_with_rows.lexical("clock lantern tide", 10)
    add(store_with_rows, "g", "A clock, a clock, a lantern.", title="Tides")
    assert find_documents(store_with_rows, "clock")[0] == "g"
    remove(store_with_rows, "g")
    assert store_with_rows.lexical("clock lantern tide", 10) == before
    with store_with_rows.read() as transaction:
        transaction.run("INSERT INTO lexical (lexical) VALUES ('integrity-check')")
