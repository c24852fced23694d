"""The one place that chooses the store of a tome."""

from __future__ import annotations

from pathlib import Path

from tomewise.store.contract import Store
from tomewise.store.sqlite.store import SqliteStore


def open_store(path: Path, *, create: bool = True) -> Store:
    """Open the store at a path; if `create` is true, create it if it does not exist. Raises StoreError and Locked."""
    return SqliteStore.open(path, create=create)
