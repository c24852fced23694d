"""Fixtures: stores in a temporary folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tomewise.store.sqlite.sqlite_store import SqliteStore


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Callable[..., SqliteStore]]:
    """A function that opens stores in this test's folder, by name. They are closed at the end."""
    stores: list[SqliteStore] = []

    def make(name: str | None = None) -> SqliteStore:
        stores.append(SqliteStore.open(tmp_path / (name or f"{len(stores)}.tome")))
        return stores[-1]

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def store(open_store: Callable[..., SqliteStore]) -> SqliteStore:
    return open_store("test.tome")
