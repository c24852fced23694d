"""An open SQLite file: its connections, transactions and locks."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine

from tomewise.beside import FolderBeside, UnsafeFile
from tomewise.errors import Locked, StoreError
from tomewise.store.sqlite.damage import name_damage
from tomewise.store.sqlite.database import begin_write, is_read_only, read_version, refuse_newer, translate_errors
from tomewise.store.sqlite.mirror import FILE_NAMES

_LOCK = "writer.lock"
_LOCK_NAMES = r"writer\.lock|session-[0-9a-f]{16}\.lock"
_TURN_SECONDS = 60.0  # longer than any transaction takes


class _RunningWork:
    """What this process is doing alone, by the file: a lock file does not say who holds it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._works: dict[tuple[int, Path], str] = {}  # by process too: a forked one does none of its parent's work

    def begin(self, path: Path, what: str) -> str | None:
        """Record the work; if the file has other work under way, return that instead."""
        with self._guard:
            if (current := self._works.get((os.getpid(), path))) is None:
                self._works[os.getpid(), path] = what
            return current

    def end(self, path: Path) -> None:
        with self._guard:
            self._works.pop((os.getpid(), path), None)


_RUNNING_WORK = _RunningWork()


class Session:
    """The parts of `SqliteStore` share these connections and locks."""

    def __init__(self, path: Path, engine: Engine) -> None:
        self.path = path
        self.read_only = is_read_only(path)
        self._remedy = "check the permissions of it and its folder, or copy it"
        self._process: int | None = os.getpid()  # None once closed
        self._engine = engine
        self._turn = threading.RLock()  # one transaction in this process
        self._cache = FolderBeside(path, "-cache", f"{FILE_NAMES}|{_LOCK_NAMES}")
        if fault := self._cache.find_fault():
            warnings.warn(
                f"{self.cache_folder} {fault}, so it is not used and answers take longer: delete it, it is made again",
                stacklevel=2,
            )

    @property
    def address(self) -> str:
        """The path of the file."""
        return str(self.path)

    @property
    def cache_folder(self) -> Path:
        """The folder beside the file in which arrays are cached. It may be deleted at any time."""
        return self._cache.path

    def size(self) -> int:
        """The size of the file in bytes, with what was written and waits in the log beside it."""
        log = self.path.with_name(self.path.name + "-wal")
        size = self.path.stat().st_size
        with suppress(FileNotFoundError):  # a process that closes the tome deletes the log
            size += log.stat().st_size
        return size

    def cache_size(self) -> int:
        """How many bytes the cached arrays beside the file take."""
        return sum(self._cache.read_size(name) for name in self._list_cached())

    def clear_cache(self) -> None:
        """Delete the cached arrays; they are made again when they are needed. Files of others in the folder stay."""
        self._check_writable()
        for name in self._list_cached():
            self._cache.delete(name)

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
        self._engine.dispose(close=not forked)  # in a fork, the connections belong to the parent process

    def check(self) -> None:
        """Raise StoreError if the store cannot be used any more: it is closed, or a newer Tomewise changed the file."""
        with self.read() as connection:
            version = read_version(connection)
        refuse_newer(version, self.path)

    def _check_open(self) -> None:
        """Raise StoreError if the store is closed, or if another process opened it and forked this one."""
        if self._process == os.getpid():
            return
        if self._process is None:
            raise StoreError(f"{self.path} is closed: open it again")
        raise StoreError(f"{self.path} was opened before this process was forked: open it again in this process")

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent view of the tome. Raises StoreError."""
        self._check_open()
        with translate_errors(self.path), self._engine.connect() as connection, name_damage(connection, self.path):
            yield connection

    @contextmanager
    def alone(self, what: str) -> Iterator[None]:
        """Take the exclusive right to add, remove and build. Raises Locked at once if somebody else has it."""
        self._check_writable()
        file = Path(os.path.realpath(self.path))
        if (current := _RUNNING_WORK.begin(file, what)) is not None:
            raise Locked(f"{self.path}: this program has another {current} under way: {what} when that has finished")
        refusal = Locked(f"{self.path} is being written by another program: try to {what} again when it has finished")
        try:
            with self._hold_lock(_LOCK, refusal):
                yield
        finally:
            _RUNNING_WORK.end(file)

    @contextmanager
    def hold_session(self, name: str) -> Iterator[None]:
        """Take the exclusive right to a session. Raises Locked at once if somebody else has it."""
        self._check_writable()
        lock = f"session-{sha256(name.encode()).hexdigest()[:16]}.lock"
        refusal = Locked(f"the session {name!r} is answering another question: try again when it has finished")
        with self._hold_lock(lock, refusal):
            yield

    def _finish(self) -> None:
        """Write what is pending, before the connections are closed."""

    @contextmanager
    def _hold_lock(self, name: str, refusal: Locked) -> Iterator[None]:
        try:
            lock = FileLock(str(self._cache.prepare_lock(name)), timeout=0, thread_local=False)
            lock.acquire()
        except Timeout as error:
            raise refusal from error
        except UnsafeFile as error:
            raise StoreError(f"{error}, so nobody can write to this tome: delete it, it is made again") from error
        except OSError as error:
            raise StoreError(f"{self.cache_folder} cannot be written: {error.strerror}") from error
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def _begin_write(self, *, wait: bool = True) -> Iterator[Connection]:
        self._check_writable()
        # Threads of one process wait for each other longer than SQLite would wait.
        if not self._turn.acquire(timeout=_TURN_SECONDS if wait else 0):
            raise Locked(f"{self.path} is being written by another thread of this program: try again later")
        try:
            with (
                begin_write(self._engine, self.path, wait=wait) as connection,
                name_damage(connection, self.path),
            ):
                yield connection
        finally:
            self._turn.release()

    def _check_writable(self) -> None:
        self._check_open()
        if self.read_only:
            raise StoreError(f"{self.path} may only be read: {self._remedy}")
