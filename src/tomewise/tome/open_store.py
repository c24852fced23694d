"""The one place that chooses the store of a tome."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import BinaryIO

from tomewise.errors import StoreError
from tomewise.store.address import DatabaseAddress, TomeAddress
from tomewise.store.contract import Store
from tomewise.store.rights import work_alone
from tomewise.store.sql.database import delete_dead_drafts as delete_dead_drafts
from tomewise.store.sql.dialects import find_sizes
from tomewise.store.sql.sql_store import SqlStore
from tomewise.tome.fixed_settings import find_embedder
from tomewise.types import Embedder

_LONGEST_LINE = 1 << 30  # bytes; no row of a tome takes as much


def open_store(path: TomeAddress, *, create: bool = True, read_only: bool = False) -> Store:
    """Open the store at a path; if `create` is true, create it if it does not exist. Raises StoreError and Locked.

    With `read_only` nothing is written to it: no trace and no reply is kept.
    """
    return SqlStore.open(path, create=create, read_only=read_only)


def exists(path: TomeAddress) -> bool:
    """Whether there is something at a path, or a tome of this name in a database. Raises StoreError."""
    return path.tome in find_sizes(path) if isinstance(path, DatabaseAddress) else path.exists()


def list_tomes(database: DatabaseAddress) -> dict[str, int]:
    """The tomes of a database that may be read, sorted, each with its bytes. Raises StoreError."""
    return find_sizes(database)


def copy_tome(source: TomeAddress, target: TomeAddress) -> None:
    """Make a new tome with all that another one holds, keys, replies and traces too: whole, or not at all.

    Raises StoreError, also where there is something at the target.
    """
    with closing(SqlStore.open(source, create=False)) as store:
        SqlStore.restore(target, (line.encode() for line in store.dump()))


def export_all(path: TomeAddress) -> Iterator[str]:
    """All that a tome holds, as JSON lines: its memory, sessions, replies and traces. Raises StoreError."""
    with closing(SqlStore.open(path, create=False)) as store:
        yield from store.dump()


def import_all(
    path: TomeAddress,
    source: str,
    file: BinaryIO,
    check: Callable[[Mapping[str, str]], None] | None = None,
) -> None:
    """Make a new tome of the lines that `export_all` gave: whole, or not at all.

    `source` is the name of the file in errors. `check` gets the settings of the tome and may raise. Raises StoreError
    if there is a file at the path, and for lines that make no sound tome: they may come from anyone.
    """
    lines = iter(lambda: file.readline(_LONGEST_LINE), b"")
    try:
        SqlStore.restore(path, lines, check)
    except StoreError as error:
        raise type(error)(f"{source} was not imported: {error}") from None


def delete_tome(path: TomeAddress) -> None:
    """Delete a tome that nobody here has open, with its caches. Raises StoreError, Locked while it is being written."""
    SqlStore.open(path, create=False).delete()


def move_tome(path: TomeAddress, new: TomeAddress) -> None:
    """Give a tome that nobody here has open another path in its folder.

    Raises Locked while another program has it open, StoreError if there is something at that path.
    """
    SqlStore.open(path, create=False).move(new)


def delete_empty_store(path: TomeAddress) -> None:
    """Delete a store without documents, with its caches. A store with documents stays, and so does any other file."""
    if isinstance(path, Path) and not path.is_file():
        return
    try:
        store = SqlStore.open(path, create=False)
    except StoreError:
        return
    try:
        with work_alone(store, "add"):
            if store.holds_documents():
                return
            store.close()
            store.dialect.delete(if_empty=True)
    except StoreError:
        return  # somebody else fills it, or keeps something of his own in its schema
    finally:
        store.close()
    with suppress(OSError):
        store.delete_cache()


def recall_embedder(path: TomeAddress, base_url: str | None, *, read_only: bool = False) -> Embedder:
    """The embedder that the tome at a path was made with, as `Tome.open` finds it. Raises StoreError, UsageError."""
    with closing(open_store(path, create=False, read_only=read_only)) as store:
        return find_embedder(store, None, base_url)
