"""Small tomes for tests of recall, closed at their end."""

from __future__ import annotations

import pytest
from tests.recall import graph_tomes, relation_tomes

from tomewise.store.sql.sql_store import SqlStore


@pytest.fixture
def open_store(tmp_path):
    """Opens a new tome, or the one that stands at a path."""
    made = []

    def open_at(path=None) -> SqlStore:
        made.append(SqlStore.open(path or tmp_path / f"{len(made)}.tome"))
        return made[-1]

    yield open_at
    for store in made:
        store.close()


@pytest.fixture
def build_graph(open_store):
    """Builds a graph of triples over these texts."""
    return lambda *texts: graph_tomes.build_graph(open_store(), *texts)


@pytest.fixture
def build_relations(open_store):
    """Builds a graph of relations over these texts."""
    return lambda *texts: relation_tomes.build_relations(open_store(), *texts)
