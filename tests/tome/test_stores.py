"""A tome opens any store, and says what it needs for an address that it does not know."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Ran
from tests.store.plain_store import PlainStore

from tomewise.errors import StoreError, UsageError
from tomewise.tome.tome import Tome
from tomewise.types import Document

TEXTS = {"one": "Ada Marsh kept the lighthouse at Skerry.", "two": "Tom Hale sold the Heron to Ida Poe in May 1912."}
QUESTION = "Who sold the Heron?"
ADDRESS = "mysql://ada:secret@host/database#novels"


def test_a_store_of_ones_own_answers_as_a_file(tmp_path: Path):
    store = PlainStore()
    answers, exports = [], []
    for opened in (Tome.open(store=store, embedder="hash"), Tome.open(tmp_path / "a.tome", embedder="hash")):
        with opened as tome:
            tome.add(*(Document(id=id, text=text) for id, text in TEXTS.items()))
            tome.build("comorag")
            answers.append(tome.ask(QUESTION, system="comorag").text)
            exports.append(list(tome.export()))
    assert answers[0] == answers[1]
    assert exports[0] == exports[1]
    with pytest.raises(StoreError, match="closed"):
        store.documents()


def test_an_address_without_a_store_is_refused_with_what_it_needs(command: Callable[..., Ran], here: Path):
    with pytest.raises(UsageError, match="needs a store for mysql") as refusal:
        Tome.open(ADDRESS)
    assert "secret" not in str(refusal.value)
    for words in (("show",), ("add", "story.md"), ("export", "--all"), ("mcp",)):
        ran = command(*words, "-m", ADDRESS)
        assert ran.code == 2
        assert "needs a store for mysql" in " ".join(ran.err.split())
        assert "secret" not in ran.out + ran.err
    assert list(here.iterdir()) == []
