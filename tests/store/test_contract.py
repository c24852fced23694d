"""The SQLite store passes the checks of every store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.contract import CHECKS, MakeStore, add, assert_arrays_follow, remove

from tomewise.store.export import export
from tomewise.store.lookups import read_vectors
from tomewise.store.rights import work_alone
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Document

WORDS = st.lists(st.sampled_from("tide harbour lamp Ada rope clock tide! 潮 fog".split()), min_size=1, max_size=8)
DOCUMENTS = st.dictionaries(st.sampled_from("abcde"), WORDS.map(" ".join), min_size=1, max_size=4)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_keeps(check: Callable[[MakeStore], None], open_store: MakeStore) -> None:
    check(open_store)


@settings(max_examples=8, deadline=None)
@given(DOCUMENTS, st.randoms(use_true_random=False))
def test_any_order_of_adding_gives_the_same_memory(texts: dict[str, str], chance: object) -> None:
    documents = [Document(id=name, text=text) for name, text in texts.items()]
    shuffled = list(documents)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    with TemporaryDirectory() as folder:
        in_order, in_other_order = (SqlStore.open(Path(folder) / name) for name in ("a.tome", "b.tome"))
        add(in_order, *documents)
        add(in_other_order, *shuffled)
        assert list(export(in_order)) == list(export(in_other_order))
        assert_arrays_follow(in_other_order)
        in_order.close()
        in_other_order.close()


@settings(max_examples=8, deadline=None)
@given(DOCUMENTS, WORDS.map(" ".join), st.booleans())
def test_adding_and_removing_leaves_what_was_there(texts: dict[str, str], guest: str, replaced: bool) -> None:
    with TemporaryDirectory() as folder:
        store = SqlStore.open(Path(folder) / "a.tome")
        add(store, *(Document(id=name, text=text) for name, text in texts.items()))
        before = list(export(store))
        add(store, Document(id="guest", text=guest))
        assert list(export(store)) != before
        if replaced:
            add(store, Document(id="guest", text=guest[::-1]))
        remove(store, "guest")
        assert list(export(store)) == before
        assert_arrays_follow(store)
        store.close()


def test_stores_share_nothing(open_store: MakeStore) -> None:
    first, second = open_store(), open_store()
    add(first, Document(id="one", text="a cat sat"))
    assert not second.holds_documents()
    assert len(read_vectors(second, "passages").keys) == 0
    with work_alone(first, "add"), work_alone(second, "add"):
        add(second, Document(id="two", text="a dog sat"))
    assert [record.id for record in first.documents()] == ["one"]
    assert first.lexical("dog", 5) == []
    assert first.versions(["vectors/passages"]) != second.versions(["vectors/passages"])
