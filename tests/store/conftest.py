"""Fixtures: stores in a temporary folder and in a database, which are closed at the end of a test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tomewise.store.address import find_tome_address
from tomewise.store.sql import arrays
from tomewise.store.sql.sql_store import SqlStore

OpenStore = Callable[..., SqlStore]


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[OpenStore]:
    """A function that opens stores in this test's folder, by name."""
    stores: list[SqlStore] = []

    def open_file(name: str) -> SqlStore:
        stores.append(SqlStore.open(tmp_path / name))
        return stores[-1]

    yield open_file
    for store in stores:
        store.close()


@pytest.fixture
def store(open_store: OpenStore) -> SqlStore:
    return open_store("test.tome")


@pytest.fixture
def make(database: str, tmp_path: Path) -> Iterator[OpenStore]:
    """A function that opens tomes in the database by name, as a user and as a machine with a cache of its own."""
    stores: list[SqlStore] = []

    def open_tome(
        name: str | None = None, *, user: str = "postgres", machine: str = "cache", **options: Any
    ) -> SqlStore:
        before = os.environ["TOMEWISE_CACHE"]
        os.environ["TOMEWISE_CACHE"] = str(tmp_path / machine)
        try:
            address = database.replace("user=postgres", f"user={user}")
            stores.append(SqlStore.open(find_tome_address(f"{address}#{name or f't{len(stores)}'}"), **options))
        finally:
            os.environ["TOMEWISE_CACHE"] = before
        return stores[-1]

    yield open_tome
    for store in stores:
        store.close()


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The spaces that were read whole from the tables."""
    seen: list[str] = []
    load = arrays.load_rows

    def count_load(transaction: Any, space: str) -> Any:
        seen.append(space)
        return load(transaction, space)

    monkeypatch.setattr(arrays, "load_rows", count_load)
    return seen
