"""An open tome: its state, its transactions and rights."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from tomewise.beside import UnsafeFile
from tomewise.errors import Locked, StoreError
from tomewise.store.sql.dialect import SqliteDialect
from tomewise.store.sql.stored_notes import Reading, reads

if TYPE_CHECKING:
    from tomewise.store.sql.dialects import Dialect

_TURN_SECONDS = 60.0  # longer than any transaction takes


class Session(Reading):
    """The connections and rights of one open tome, as `SqlStore` has them."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.read_only = dialect.read_only
        self._remedy = dialect.remedy
        self._process: int | None = os.getpid()  # None once closed
        self._turn = threading.RLock()  # one transaction in this process
        self._cache = dialect.cache
        if fault := self._cache.find_fault():
            warnings.warn(
                f"{self.cache_folder} {fault}, so it is not used and answers take longer: delete it, it is made again",
                stacklevel=2,
            )

    @property
    def address(self) -> str:
        """Where the tome is."""
        return self.dialect.address

    @property
    def path(self) -> Path:
        """The file of a tome in SQLite."""
        assert isinstance(self.dialect, SqliteDialect)
        return self.dialect.path

    @property
    def cache_folder(self) -> Path:
        """The folder in which arrays are cached. It may be deleted at any time."""
        return self._cache.path

    def size(self) -> int:
        """How many bytes the tome takes."""
        return self.dialect.size()

    def cache_size(self) -> int:
        """How many bytes the cached arrays beside the file take."""
        return sum(self._cache.read_size(name) for name in self._list_cached())

    def clear_cache(self) -> None:
        """Delete the cached arrays; they are made again when they are needed. Files of others in the folder stay.

        The index of words forgets what was removed.
        """
        self._check_writable()
        for name in self._list_cached():
            self._cache.delete(name)
        self.dialect.forget_removed_words()

    def delete_cache(self) -> None:
        """Delete the folder of the caches with its locks, except for files of others: the tome is deleted."""
        self._cache.delete_all()

    def _list_cached(self) -> list[str]:
        """The files of the caches, without locks, which must stay the same files for everybody."""
        try:
            return [name for name in self._cache.list_names() if not name.endswith(".lock")]
        except UnsafeFile:
            return []

    def close(self) -> None:
        """Close the file. The store cannot be used afterwards."""
        forked = self._process not in (None, os.getpid())
        self._process = None
        if not forked:
            self._finish()
        self.dialect.close(forked=forked)

    @reads
    def check(self, connection: Connection) -> None:
        """Raise StoreError if the store cannot be used any more: it is closed, or a newer Tomewise changed the file."""
        self.dialect.check(connection)

    def _check_open(self) -> None:
        """Raise StoreError if the store is closed, or if another process opened it and forked this one."""
        if self._process == os.getpid():
            return
        if self._process is None:
            raise StoreError(f"{self.address} is closed: open it again")
        raise StoreError(f"{self.address} was opened before this process was forked: open it again in this process")

    def read(self) -> AbstractContextManager[Connection]:
        """A consistent view of the tome. Raises StoreError."""
        self._check_open()
        return self.dialect.read()

    def hold(self, name: str, refusal: str, *, is_long: bool = False) -> AbstractContextManager[None]:
        """Take the exclusive right of this name. Raises Locked at once if somebody else has it."""
        self._check_writable()
        return self.dialect.hold(name, refusal, is_long=is_long)

    def _finish(self) -> None:
        """Write what is pending, before the connections are closed."""

    def _begin_append(self) -> AbstractContextManager[Connection]:
        """One transaction for replies and traces, which waits for no writer where the database allows that."""
        self._check_writable()
        return self.dialect.append() or self._begin_write()

    def _begin_repair(self, reading: Connection | None = None) -> AbstractContextManager[Connection]:
        """A transaction in which the cached arrays may be changed. Raises Locked if it would have to wait."""
        self._check_open()
        return self.dialect.repair(reading) or self._begin_write(wait=False)

    @contextmanager
    def _begin_write(self, *, wait: bool = True) -> Iterator[Connection]:
        self._check_writable()
        # Threads of one process wait for each other longer than SQLite would wait.
        if not self._turn.acquire(timeout=_TURN_SECONDS if wait else 0):
            raise Locked(f"{self.address} is being written by another thread of this program: try again later")
        try:
            with self.dialect.write(wait=wait) as connection:
                yield connection
        finally:
            self._turn.release()

    def _check_writable(self) -> None:
        self._check_open()
        if self.read_only:
            raise StoreError(f"{self.address} may only be read: {self._remedy}")
