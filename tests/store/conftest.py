"""Fixtures: stores in a temporary folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tomewise.store.sql.sql_store import SqlStore


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Callable[..., SqlStore]]:
    """A function that opens stores in this test's folder, by name. They are closed at the end."""
    stores: list[SqlStore] = []

    def make(name: str | None = None) -> SqlStore:
        stores.append(SqlStore.open(tmp_path / (name or f"{len(stores)}.tome")))
        return stores[-1]

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def store(open_store: Callable[..., SqlStore]) -> SqlStore:
    return open_store("test.tome")
