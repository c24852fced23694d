"""A tome in a database that speaks SQL."""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

from tomewise.errors import Locked, StoreError
from tomewise.store.address import TomeAddress
from tomewise.store.beside import UnsafeFile
from tomewise.store.rights import work_alone
from tomewise.store.sql.arrays import Arrays, load_rows, read_space_version
from tomewise.store.sql.call_cache import StoredCalls
from tomewise.store.sql.damage import find_damage
from tomewise.store.sql.dialects import Dialect, Transaction, find_dialect
from tomewise.store.sql.mirror import Columns
from tomewise.store.sql.row_values import describe_row
from tomewise.store.sql.scope import ScopeKeys
from tomewise.store.sql.spaces import StoredSpaces
from tomewise.store.sql.stored_records import StoredRecords, StoredTraces, reads
from tomewise.store.sql.texts import StoredTexts, StoredWords
from tomewise.store.sql.whole import fill, write_lines
from tomewise.store.sql.write import Write

_TURN_SECONDS = 60.0  # longer than any transaction takes
# The forms of settings; an empty number counts as none.
_FORMS = {
    # A random id that distinguishes this tome from another one that is later stored under the same path.
    "identity": re.compile("[0-9a-f]{32}"),
    "dimensions": re.compile("[0-9]{0,7}"),
    "overlap": re.compile("[0-9]{0,7}"),
    "passage_tokens": re.compile("[1-9][0-9]{0,6}|"),
}


class StoredSnapshot(StoredTexts, StoredSpaces, StoredWords, StoredRecords):
    """What reads a tome, see `store.contract.Snapshot`. All is read in one transaction."""

    def __init__(self, transaction: Transaction, arrays: Arrays) -> None:
        self._transaction = transaction
        self._arrays = arrays
        self._scopes = ScopeKeys(arrays)

    def read(self) -> AbstractContextManager[Transaction]:
        """The transaction."""
        return nullcontext(self._transaction)

    def arrays(self, spaces: Iterable[str]) -> dict[str, Columns]:
        """Several spaces; edges are read from the tables, since an export writes what these hold, not their caches."""
        spaces = list(spaces)
        edges = [space for space in spaces if space.startswith("edges/")]
        return super().arrays(set(spaces).difference(edges)) | {
            space: Columns(read_space_version(self._transaction, space), *load_rows(self._transaction, space))
            for space in edges
        }


class SqlStore(StoredTexts, StoredSpaces, StoredWords, StoredRecords, StoredTraces):
    """See `store.contract.Store`. Arrays are cached in files."""

    def __init__(self, dialect: Dialect, identity: str, *, read_only: bool = False) -> None:
        self.dialect = dialect
        self.address = dialect.address
        self.read_only = dialect.read_only or read_only
        self._remedy = dialect.remedy
        if read_only:
            self._remedy = "it was opened with read_only, so open it without that to change it"
        self._process: int | None = os.getpid()  # None once closed
        self._turn = threading.RLock()  # one transaction in this process
        self._cache = dialect.cache
        self.cache_folder = self._cache.path  # may be deleted at any time
        if fault := self._cache.find_fault():
            warnings.warn(
                f"{self.cache_folder} {fault}, so it is not used and answers take longer: delete it, it is made again",
                stacklevel=2,
            )
        self._arrays = Arrays(self._cache, identity, self._begin_repair, follows_steps=dialect.follows_steps)
        self._scopes = ScopeKeys(self._arrays)
        self.calls = StoredCalls(self.read, None if self.read_only else self.begin_append)

    @classmethod
    def open(cls, path: TomeAddress, *, create: bool = True, read_only: bool = False) -> SqlStore:
        """Open a tome; if `create` is true, create it if it does not exist. Raises StoreError and Locked.

        With `read_only` nothing is written to the file: no trace and no reply is stored.
        """
        dialect = find_dialect(path).open(path, create=create, read_only=read_only)
        try:
            with dialect.read() as transaction:
                identity = _check_settings(transaction)["identity"]
            return cls(dialect, identity, read_only=read_only)
        except BaseException:
            dialect.close(forked=False)
            raise

    @classmethod
    def restore(
        cls,
        path: TomeAddress,
        lines: Iterable[bytes],
        check: Callable[[Mapping[str, str]], None] | None = None,
    ) -> None:
        """Make a new tome of what `dump` wrote: whole, or not at all. Raises StoreError, also for hostile lines.

        `check` gets the rows of the table meta, and may raise.
        """
        with find_dialect(path).begin_new(path) as transaction:
            fill(transaction, lines)
            _check_settings(transaction)
            if check:
                check(dict(transaction.fetch("SELECT meta.key, meta.value\nFROM meta")))

    def delete(self) -> None:
        """Close the store, and delete the tome with its caches. Raises Locked while it is being written."""
        with work_alone(self, "delete"):
            self.close()
            self.dialect.delete()
        self.delete_cache()

    def move(self, path: TomeAddress) -> None:
        """Close the store, and give the tome another path in its folder. Its caches are made again.

        Raises Locked while another program has it open, StoreError if there is something at that path.
        """
        with work_alone(self, "rename"):
            self.close()
            self.dialect.move(path)
        self.delete_cache()

    def dump(self) -> Iterator[str]:
        """All that the tome holds, with keys, replies and traces, as JSON lines in one order: see `restore`."""
        with self.read() as transaction:
            yield from write_lines(transaction)

    @contextmanager
    def write(self) -> Iterator[Write]:
        """One transaction; the cached arrays are updated with its changes."""
        with self._begin_write() as transaction:
            change = Write(transaction)
            yield change
            deltas = change.finish()
            with self.dialect.guard_files() as is_free:
                if is_free:
                    self._arrays.apply_deltas(transaction, deltas)
            self.dialect.finish_write(transaction, deltas, change.rows_written)

    def hold(self, name: str, refusal: str, *, is_long: bool = False) -> AbstractContextManager[None]:
        """See `contract.Store`."""
        self._check(writes=True)
        return self.dialect.hold(name, refusal, is_long=is_long)

    @contextmanager
    def snapshot(self) -> Iterator[StoredSnapshot]:
        """The methods that read, in one read transaction."""
        with self.read() as transaction:
            yield StoredSnapshot(transaction, self._arrays)

    def find_damage(self) -> str:
        """What is damaged: the file, the row, and the remedy; empty if nothing is. This reads the whole file.

        Cached arrays that do not belong to the tome are deleted and made again, and so is all that was kept.
        """
        with self.read() as transaction:
            if found := find_damage(transaction) or transaction.find_damaged_index():
                return f"{self.address} is damaged: {found}"
            is_stale = self._arrays.find_mismatch(transaction)
        self._arrays.delete_kept()
        if not is_stale:
            return ""
        with suppress(StoreError, OSError):
            self.clear_cache()
        self._arrays.forget()
        return f"{self.cache_folder} held arrays of something else, and they were deleted: try again"

    # ------------------------------------------------------------ state, transactions and rights

    @property
    def path(self) -> Path:
        """The file of a tome in SQLite."""
        return Path(self.address)

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
        self._check(writes=True)
        for name in self._list_cached():
            self._cache.delete(name)
        if self.dialect.forget_removed_words is not None:
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
            self.calls.close()
        self.dialect.close(forked=forked)

    @reads
    def check(self, transaction: Transaction) -> None:
        """Raise StoreError if the store cannot be used any more: it is closed, or a newer Tomewise changed the file."""
        transaction.check()

    def _check(self, *, writes: bool = False) -> None:
        """Raise StoreError if the store is closed, was opened before a fork, or if it `writes` and may only be read."""
        if self._process is None:
            raise StoreError(f"{self.address} is closed: open it again")
        if self._process != os.getpid():
            raise StoreError(f"{self.address} was opened before this process was forked: open it again in this process")
        if writes and self.read_only:
            raise StoreError(f"{self.address} may only be read: {self._remedy}")

    def read(self) -> AbstractContextManager[Transaction]:
        """A consistent view of the tome. Raises StoreError."""
        self._check()
        return self.dialect.read()

    def begin_append(self) -> AbstractContextManager[Transaction]:
        """One transaction for replies and traces; where the database allows it, it waits for no writer."""
        self._check(writes=True)
        return self._begin_write() if self.dialect.append is None else self.dialect.append()

    def _begin_repair(self, reading: Transaction | None = None) -> AbstractContextManager[Transaction]:
        """A transaction in which the cached arrays may be changed. Raises Locked if it would have to wait."""
        self._check()
        return self._begin_write(wait=False) if self.dialect.repair is None else self.dialect.repair(reading)

    @contextmanager
    def _begin_write(self, *, wait: bool = True) -> Iterator[Transaction]:
        self._check(writes=True)
        # Threads of one process wait for each other longer than SQLite would wait.
        if not self._turn.acquire(timeout=_TURN_SECONDS if wait else 0):
            raise Locked(f"{self.address} is being written by another thread of this program: try again later")
        try:
            with self.dialect.write(wait=wait) as transaction:
                yield transaction
        finally:
            self._turn.release()


def _check_settings(transaction: Transaction) -> dict[str, str]:
    """The settings that have a form. Raises StoreError for one of another form, or for a tome without an identity."""
    query = "SELECT meta.key, meta.value\nFROM meta WHERE meta.key IN :names"
    settings: dict[str, str] = dict(transaction.fetch(query, names=list(_FORMS)))
    for key, form in _FORMS.items():
        if form.fullmatch(settings.get(key, "")) is None:
            raise StoreError(f"{transaction.address} is damaged: {describe_row('meta', key)}")
    return settings
