"""Fixtures: stores in a temporary folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tomewise.store.sql import arrays
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


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The spaces that were read whole from the tables."""
    seen: list[str] = []
    load = arrays.load_rows

    def count_load(connection: Any, dialect: Any, space: str) -> Any:
        seen.append(space)
        return load(connection, dialect, space)

    monkeypatch.setattr(arrays, "load_rows", count_load)
    return seen
