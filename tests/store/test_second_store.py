"""Systems work on a store of plain dictionaries, and in PostgreSQL, as on a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.plain_store import PlainStore

from tomewise.embedding.hash import HashEmbedder
from tomewise.language.extractive import ExtractiveModel
from tomewise.memory.building import build, find_backlog
from tomewise.store.contract import Store
from tomewise.store.export import export
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.kit import Kit
from tomewise.systems.registry import SYSTEMS, assemble
from tomewise.testing import check_loop, check_retriever, document_of, put_document
from tomewise.types import Progress, Question

EMBEDDER = HashEmbedder()
TEXTS = (
    "Ada Marsh kept the lighthouse at Skerry. She was the daughter of Captain Marsh.",
    "Captain Marsh sailed the Heron from Ostend until 1911.",
    "Tom Hale sold the Heron to Ida Poe in May 1912.",
    "Ida Poe lived in Ghent with her brother Sam Poe.",
    "The lighthouse at Skerry was built by Sam Poe.",
    "It rained on the harbour all that winter, and nobody came.",
    "The council of Ghent bought the harbour from Tom Hale.",
    *(f"On day {number} Ada Marsh wrote to Tom Hale about the harbour." for number in range(6)),
)
QUESTION = "Who sold the Heron to Ida Poe?"
ALL_KINDS = ("comorag", "hgmem", "graphrag", "memtree")  # they build layers of all kinds


@pytest.fixture(params=["plain", "database"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """A store of plain dictionaries or one in a database, and one in a file, with equal documents."""
    file = SqlStore.open(tmp_path / "a.tome")
    counterpart = PlainStore() if request.param == "plain" else request.getfixturevalue("make")("a")
    for store in (counterpart, file):
        for number, text in enumerate(TEXTS):
            put_document(store, EMBEDDER, document_of(f"d{number:02}", text))
    yield counterpart, file
    for store in (counterpart, file):
        store.close()


def make_kit(store: Store) -> Kit:
    return Kit(store, ExtractiveModel(EMBEDDER), EMBEDDER)


def quiet(_: Progress) -> None:
    pass


async def test_systems_give_equal_memories_and_answers_from_both(stores: tuple[Store, Store]) -> None:
    counterpart, file = stores
    systems = SYSTEMS if isinstance(counterpart, PlainStore) else ALL_KINDS
    for name in systems:  # one after another over one memory, since a tome holds the layers of all systems
        answers = []
        for store in stores:
            system = assemble(name, make_kit(store))
            assert not any(report.failed for report in await build(system.layers, store, quiet))
            assert find_backlog(system.layers, store).counts == {}
            if system.retriever is not None:
                await check_retriever(system.retriever, QUESTION, store)
            answer = await check_loop(system.loop, Question(text=QUESTION, force=True))
            assert answer.evidence or name == "chain_of_agents", "only a note answers without evidence"
            answers.append((answer.words, [(each.id, each.layer, each.text) for each in answer.evidence]))
        assert answers[0] == answers[1] or name == "bm25", name  # plain dictionaries have no BM25 of FTS5
    assert list(export(counterpart)) == list(export(file))
    for store in stores:
        with store.write() as change:
            change.remove_document("d02")
        for name in ALL_KINDS:
            await build(assemble(name, make_kit(store)).layers, store, quiet)
    assert list(export(counterpart)) == list(export(file))
    assert counterpart.layers() == file.layers()
