"""A store in a database passes the checks of every store; a tome holds the same memory whatever its history."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.conftest import OpenStore
from tests.store.contract import add, assert_arrays_follow, remove

from tomewise.store.export import export
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import check_store
from tomewise.types import Document


def test_a_store_in_a_database_passes_the_checks(make: OpenStore, tmp_path: Path) -> None:
    check_store(lambda path: make(path.stem.removeprefix("a-")), tmp_path / "a.tome")


WORDS = st.lists(st.sampled_from("tide harbour lamp Ada rope clock tide! 潮 fog".split()), min_size=1, max_size=8)
STEPS = st.lists(st.tuples(st.sampled_from("abcde"), WORDS.map(" ".join) | st.none()), min_size=1, max_size=6)


@settings(max_examples=10, deadline=None)
@given(STEPS, st.integers(0, 9))
def test_any_history_leaves_the_memory_of_what_is_there(steps: list[tuple[str, str | None]], seed: int) -> None:
    with TemporaryDirectory() as folder:
        store, fresh = (SqlStore.open(Path(folder) / name) for name in ("a.tome", "b.tome"))
        add(store, Document(id="guest", text="fog lay on the harbour"))
        remove(store, "guest")
        texts: dict[str, str] = {}
        for name, text in steps:
            if text is None:
                remove(store, name)
                texts.pop(name, None)
            else:
                add(store, Document(id=name, text=text))
                texts[name] = text
        documents = [Document(id=name, text=text) for name, text in texts.items()]
        random.Random(seed).shuffle(documents)
        add(fresh, Document(id="guest", text="fog"), *documents)
        assert list(export(store)) != list(export(fresh))
        remove(fresh, "guest")
        assert list(export(store)) == list(export(fresh))
        for each in (store, fresh):
            assert_arrays_follow(each)
            each.close()
