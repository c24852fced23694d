"""Every system has the same memory, answers and export in PostgreSQL as in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.test_second_store import EMBEDDER, QUESTION, TEXTS, make_kit, quiet

from tomewise.memory.building import build
from tomewise.store.address import find_place
from tomewise.store.export import export
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.registry import SYSTEMS, assemble
from tomewise.testing import check_loop, document_of, put_document
from tomewise.types import Question


@pytest.fixture
def stores(tmp_path: Path, database: str) -> Iterator[tuple[SqlStore, SqlStore]]:
    """A tome in a file and one in a database, with equal documents."""
    pair = SqlStore.open(tmp_path / "a.tome"), SqlStore.open(find_place(f"{database}#a"))
    for store in pair:
        for number, text in enumerate(TEXTS):
            put_document(store, EMBEDDER, document_of(f"d{number:02}", text))
    yield pair
    for store in pair:
        store.close()


async def test_every_system_is_equal_in_both(stores: tuple[SqlStore, SqlStore]) -> None:
    for name in SYSTEMS:  # one after another over one memory, since a tome holds the layers of all systems
        answers = []
        for store in stores:
            system = assemble(name, make_kit(store))
            assert not any(report.failed for report in await build(system.layers, store, quiet))
            answer = await check_loop(system.loop, Question(text=QUESTION, force=True))
            answers.append((answer.text, [(each.node, each.layer, each.text) for each in answer.evidence]))
        assert answers[0] == answers[1], name
    file, database = stores
    assert list(export(file)) == list(export(database))
    for store in stores:
        with store.write() as change:
            change.remove_document("d02")
        for name in SYSTEMS:
            await build(assemble(name, make_kit(store)).layers, store, quiet)
    assert list(export(file)) == list(export(database))
    assert file.layers() == database.layers()
