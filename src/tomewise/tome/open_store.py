"""The one place that chooses the store of a tome."""

from __future__ import annotations

from pathlib import Path

from tomewise.store.contract import Store
from tomewise.store.sqlite.store import SqliteStore
from tomewise.trust import refuse_folder


def open_store(path: Path, *, create: bool = True) -> Store:
    """Open the store at a path; if `create` is true, create it if it does not exist. Raises StoreError and Locked."""
    return SqliteStore.open(path, create=create)


def read_embedder(path: Path) -> str:
    """The name of the embedder that the tome at a path was made with. Raises StoreError, UsageError."""
    store = open_store(path, create=False)
    try:
        name = store.meta("embedder") or "bundled"
    finally:
        store.close()
    refuse_folder(name, str(path))  # the tome may come from anyone
    return name
