"""A tome that is opened to be read stays as it is, though its file could be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tomewise.errors import StoreError
from tomewise.tome.tome import Tome
from tomewise.types import Document

LIGHT = Document(id="light", text="Ada Marsh put out the light at nine.")


def test_answers_leave_nothing(here: Path) -> None:
    path = here / "a.tome"
    with Tome.open(path, embedder="hash") as tome:
        tome.add(LIGHT)
        before = tome.store.trace_numbers(), list(tome.export())
    with Tome.open(path, read_only=True) as tome:
        answer = tome.ask("Who put out the light?")
        assert (answer.text, answer.trace) == (LIGHT.text, None)
        assert (tome.store.trace_numbers(), list(tome.export())) == before
        for write in (lambda: tome.add(LIGHT), lambda: tome.remove("light"), lambda: tome.build("raptor")):
            with pytest.raises(StoreError, match="may only be read: it was opened with read_only"):
                write()


def test_a_tome_that_does_not_exist_is_not_made(here: Path) -> None:
    with pytest.raises(StoreError, match="found no tome"):
        Tome.open(here / "none.tome", read_only=True)
    assert not (here / "none.tome").exists()
