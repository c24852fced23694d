"""What one database does otherwise than others. This one keeps a tome in an SQLite file.

Of SQLite are also `sqlite_rows` and `database`. What names no database in this folder is shared by all.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from sqlalchemy import Engine

from tomewise.errors import Locked, StoreError
from tomewise.store.address import TomeAddress
from tomewise.store.beside import FolderBeside, UnsafeFile
from tomewise.store.rights import WRITER
from tomewise.store.sql.database import begin, begin_new, connect, delete_files, is_read_only, move_file
from tomewise.store.sql.mirror import FILE_NAMES, Deltas
from tomewise.store.sql.sqlite_rows import SqliteTransaction

_LOCKS = r"writer\.lock|session-[0-9a-f]{16}\.lock"


class SqliteDialect:
    """A tome in one SQLite file, with its caches and locks in a folder beside it."""

    follows_steps = False  # every writer changes the files of arrays, and these may come from a stranger
    remedy = "check the permissions of it and its folder, or copy it"
    append = repair = None  # SQLite has one writer: replies, traces and files of arrays wait for a write transaction
    guard_files = staticmethod(partial(nullcontext, True))  # which guards the files of arrays

    def __init__(self, path: Path, engine: Engine) -> None:
        self.path = path
        self.address = str(path)
        self.read_only = is_read_only(path)
        self.cache = FolderBeside(path, "-cache", f"{FILE_NAMES}|{_LOCKS}")
        self._engine = engine
        self.read = partial(begin, engine, path)
        self.write = partial(begin, engine, path, writes=True)
        self._is_writing = False  # somebody here holds the right of the writer
        self._holds_gone_words = False  # the index has words of what was removed

    # ------------------------------------------------------------ the file, its transactions and rights

    @classmethod
    def open(cls, address: TomeAddress, *, create: bool, read_only: bool) -> SqliteDialect:
        """Open the file; create it if needed. Raises Locked, and StoreError if it is not a tome."""
        path = Path(str(address)).absolute()
        return cls(path, connect(path, create=create and not read_only))

    @staticmethod
    def begin_new(address: TomeAddress) -> AbstractContextManager[SqliteTransaction]:
        """One write transaction in a new file, which has this path once all is written. Raises StoreError."""
        return begin_new(Path(str(address)).absolute())

    def finish_write(self, transaction: Any, deltas: Deltas, rows: int) -> None:
        """Take the words of what was removed out of their index; a writer does that once, at the end of its work."""
        self._holds_gone_words |= transaction.holds_gone_words
        if self._holds_gone_words and not self._is_writing:
            if not transaction.has_many_words():
                transaction.merge_words()
            self._holds_gone_words = False

    def forget_removed_words(self) -> None:
        """Take the words of what was removed out of their index, however large it is. Raises Locked, StoreError."""
        with self.write() as transaction:
            transaction.merge_words()

    @contextmanager
    def hold(self, name: str, refusal: str, *, is_long: bool) -> Iterator[None]:
        """Take the exclusive right of this name, which ends with the process. Raises Locked if somebody has it.

        A file keeps every right, those that are long too.
        """
        # The lock of a name with more words is called after the first of them and a digest of the others.
        first, _, others = name.partition(" ")
        file = f"{first}-{sha256(others.encode()).hexdigest()[:16]}.lock" if others else f"{first}.lock"
        try:
            lock = FileLock(str(self.cache.prepare_lock(file)), timeout=0, thread_local=False).acquire()
        except Timeout as error:
            raise Locked(refusal) from error
        except UnsafeFile as error:
            raise StoreError(f"{error}, so nobody can write to this tome: delete it, it is made again") from error
        except OSError as error:
            raise StoreError(f"{self.cache.path} cannot be written: {error.strerror}") from error
        self._is_writing |= name == WRITER
        with lock:
            try:
                yield
            finally:
                if name == WRITER:
                    self._is_writing = False
                    self._end_writing()

    def _end_writing(self) -> None:
        if self._holds_gone_words:
            try:
                with self.write() as transaction:
                    self.finish_write(transaction, {}, 0)
            except StoreError as error:  # what was written stays
                warnings.warn(f"words that were removed stay in the index until more is removed: {error}", stacklevel=2)

    def size(self) -> int:
        """The size of the file in bytes, with what was written and waits in the log beside it."""
        log = self.path.with_name(self.path.name + "-wal")
        size = self.path.stat().st_size
        with suppress(FileNotFoundError):  # a process that closes the tome deletes the log
            return size + log.stat().st_size
        return size

    def delete(self, *, if_empty: bool = False) -> None:
        """Delete the file, which nobody here has open any more.

        Whoever asks for one `if_empty` has the right of the writer, so that nobody fills it meanwhile.
        """
        delete_files(self.path)

    def move(self, path: TomeAddress) -> None:
        """Give the file, which nobody has open any more, another path in its folder. Raises Locked, StoreError."""
        assert isinstance(path, Path)
        move_file(self.path, path)

    def close(self, *, forked: bool) -> None:
        """Close all connections; in a fork, they belong to the parent process."""
        self._engine.dispose(close=not forked)
