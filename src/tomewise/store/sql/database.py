"""The SQLite file of a tome: opening, checking, and transactions."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Any
from urllib.parse import quote as quote_address
from uuid import uuid4

from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from tomewise.errors import NO_WORDS, Locked, StoreError
from tomewise.store.sql.damage import name_damage
from tomewise.store.sql.row_values import LONGEST, RESTORE, find_cause
from tomewise.store.sql.schema import APPLICATION_ID, check_format, find_strange_statement
from tomewise.store.sql.sqlite_rows import SqliteTransaction

BUSY_SECONDS = 3.0
_DRAFT = re.compile(r"\.[0-9a-f]{32}\.import(?:-wal|-shm|-journal)?")
_DEAD_SECONDS = 3600.0
_BESIDE = "-wal", "-shm", "-journal"  # the ends of the names of what SQLite writes beside a file
_HEADER = b"SQLite format 3\x00"
_PAGE = 8192  # bytes; holds five vectors of 384 numbers; a default page holds two and stays a quarter empty
_CACHE = -65536  # kilobytes, for writing: index pages are changed in no order, and must stay in memory
_LEAN_CACHE = -2000  # kilobytes, for reading; SQLite's default
_JOURNAL = 64 << 20  # bytes; the size to which the write-ahead log shrinks after a large transaction
_LONGEST_STATEMENT = 1_000_000  # bytes
# What SQLite advises for files of strangers, and that nothing of what is deleted stays in the file.
_SAFE = "trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "secure_delete = ON"
_NAMES_FILE = bytes.fromhex("d9d505f920a163d7")  # the end of a rollback journal with the name of another file in it


def connect(path: Path, *, create: bool) -> Engine:
    """Open the file as a tome; create it if needed. Raises Locked, and StoreError if it is not a tome."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a tome: name a file, such as -m {path.name}.tome")
    _check_files(path)
    if not path.exists() or path.stat().st_size == 0:
        if not create:
            raise StoreError(
                f"found no tome at {path}: add something first, with `tome -m {quote(str(path))} add PATH`"
            )
        if not path.parent.is_dir():
            raise StoreError(f"the folder {path.parent} does not exist: make it first")
        if path.is_symlink():
            raise StoreError(f"{path} is a link to where no tome is, and no tome is made through a link: delete it")
    elif _read_bytes(path, 0, len(_HEADER)) != _HEADER:
        raise StoreError(f"{path} is not a tome: name another file with -m")
    try:
        return _open(path, create=create)
    except StoreError as error:
        if not _lacks_room_beside(error):
            raise
    return _open(path, create=create, alone=True)


def _open(path: Path, *, create: bool, alone: bool = False) -> Engine:
    engine = _make_engine(path, alone=alone)
    try:
        _prepare(engine, path, create=create and not is_read_only(path))
    except BaseException:
        engine.dispose()
        raise
    return engine


def _lacks_room_beside(error: StoreError) -> bool:
    """Whether the disk is too full for the small file by which the programs that have a tome open agree."""
    name = getattr(find_cause(error.__cause__), "sqlite_errorname", "")
    return os.name == "posix" and name in ("SQLITE_IOERR_SHMOPEN", "SQLITE_IOERR_SHMSIZE")


@contextmanager
def begin_new(path: Path) -> Iterator[SqliteTransaction]:
    """One write transaction in a new file, which has this path once all is written. Raises StoreError.

    Until then the file has another name in the same folder. It never takes the place of another file.
    """
    _check_place(path)
    delete_dead_drafts(path.parent)
    draft = path.with_name(f".{uuid4().hex}.import")
    engine = _make_engine(draft)
    try:
        try:
            with begin(engine, path, writes=True) as transaction:
                yield transaction
        finally:
            engine.dispose()
        if draft.with_name(draft.name + "-wal").exists():
            raise StoreError(f"{path} could not be written to its end: check the disk")
        _check_place(path)
        _move_to(draft, path)
    finally:
        delete_files(draft)


def delete_dead_drafts(folder: Path) -> None:
    """Delete what `begin_new` left in a folder where its process was killed: drafts that did not change for an hour."""
    for draft in folder.glob(".*.import*"):
        if _DRAFT.fullmatch(draft.name) and not draft.is_symlink():
            with suppress(OSError):
                if time.time() - draft.stat().st_mtime > _DEAD_SECONDS:
                    draft.unlink()


def delete_files(path: Path) -> None:
    """Delete a file that nobody here has open, then what SQLite left beside it: without the file that is nothing."""
    for found in (path, *_list_beside(path)):
        found.unlink(missing_ok=True)


def _list_beside(path: Path) -> list[Path]:
    """What SQLite may write beside a file: the log, its index, the journal."""
    return [path.with_name(path.name + suffix) for suffix in _BESIDE]


def move_file(path: Path, new: Path) -> None:
    """Give a file that nobody has open another path in its folder. It takes the place of no other file.

    Raises Locked if another program has it open, and StoreError if there is something at the new path.
    """
    if any(map(os.path.lexists, _list_beside(path))):
        raise Locked(f"{path} is open in another program: rename it when that has ended")
    _check_place(new)
    _move_to(path, new)
    path.unlink(missing_ok=True)


def _check_place(path: Path) -> None:
    """Raise StoreError if there is a file at this path, or what SQLite would take for a part of one."""
    if not path.parent.is_dir():
        raise StoreError(f"the folder {path.parent} does not exist: make it first")
    for found in (path, *_list_beside(path)):
        if os.path.lexists(found):
            raise StoreError(f"{found} holds something already: name a new file with -m")


def _move_to(draft: Path, path: Path) -> None:
    """Give the draft this path. Raises StoreError if there is a file by now."""
    try:
        try:
            os.link(draft, path)
        except FileExistsError:
            raise
        except OSError:  # there are no links here: an empty file takes the place first
            path.open("xb").close()
            try:
                draft.replace(path)
            except BaseException:
                path.unlink()
                raise
    except FileExistsError:
        raise StoreError(f"{path} holds something already: name a new file with -m") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error


@contextmanager
def begin(engine: Engine, path: Path, *, writes: bool = False, wait: bool = True) -> Iterator[SqliteTransaction]:
    """One transaction. If it `writes`, everything inside is committed together or not at all. Raises StoreError.

    If another program is writing, one that `writes` waits up to BUSY_SECONDS, or not at all with `wait` false, and then
    raises Locked.
    """
    try:
        with engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            connection.begin()
            if writes:
                driver.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000) if wait else 0}")
                driver.execute(f"PRAGMA cache_size = {_CACHE}")
                connection.info["wrote"] = True
            driver.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            _check_content(driver, path, connection.info)
            with name_damage(SqliteTransaction(connection, str(path))) as transaction:
                yield transaction
            if writes:
                connection.commit()
    except MemoryError as error:
        raise StoreError(f"{path} is damaged, or there is not enough memory: {RESTORE}") from error
    except (DBAPIError, sqlite3.Error) as error:
        translated = _translate(path, error)
        if translated is None:
            raise
        raise translated from error


def _translate(path: Path, error: DBAPIError | sqlite3.Error) -> StoreError | None:
    """What to say of an error of SQLite that users can cause; None for others, which are bugs."""
    cause = find_cause(error)
    if isinstance(cause, sqlite3.OperationalError):
        words = str(cause)
        if "fts5" in words:
            return StoreError(NO_WORDS)
        if "locked" in words or "busy" in words:
            return Locked(f"{path} is being written by another program: try again when it has finished")
        if "readonly" in words or "unable to open" in words:
            return StoreError(
                f"{path} cannot be opened for writing ({cause}): check the permissions of it and its folder"
            )
        return StoreError(f"{path} could not be read or written ({cause}): check the disk and the permissions")
    if isinstance(cause, sqlite3.DataError):
        return StoreError(
            f"{path} takes no value of more than {LONGEST:,} bytes, and one was to be written or is in it: write "
            f"it in parts, or {RESTORE}"
        )
    # Of a table, this error names the column; without a name it comes from the full-text index.
    if type(cause) is sqlite3.DatabaseError or str(cause) == "constraint failed":
        return StoreError(f"{path} is damaged or not a tome ({cause}): {RESTORE}")
    return None


def _prepare(engine: Engine, path: Path, *, create: bool) -> None:
    with begin(engine, path) as transaction:  # which checks what is in the file
        if transaction.read_value(transaction.format_query):
            return
    if not create:
        raise _make_no_tome_error(path)
    with begin(engine, path, writes=True) as transaction:
        if not transaction.read_value(transaction.format_query):
            transaction.make_tables()


def _check_content(connection: sqlite3.Connection, path: Path, info: dict[Any, Any]) -> None:
    """Raise StoreError if the file is neither blank nor a tome with the statements of its format, and no others.

    A connection goes by the statements that were checked for as long as SQLite's count of their changes, which `info`
    has, stays.
    """
    (count,) = connection.execute("PRAGMA schema_version").fetchone()
    if info.get("checked") == count:
        return
    (application,), (version,), (encoding,) = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version", "encoding")
    )
    if not version and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return
    if application != APPLICATION_ID:
        raise _make_no_tome_error(path)
    check_format(version, path)
    problem = f"it is written in {encoding}" if encoding != "UTF-8" else find_strange_statement(connection)
    if problem:
        raise StoreError(f"{path} is damaged: {problem}; {RESTORE}")
    info["checked"] = count


def _make_no_tome_error(path: Path) -> StoreError:
    return StoreError(f"{path} is an SQLite file but not a tome: name another file with -m")


def is_read_only(path: Path) -> bool:
    """Whether the file exists and either it or its folder cannot be written."""
    return path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _make_address(path: Path, *, alone: bool) -> URL:
    """The address for SQLite. If no log can be written beside the file, it is opened as a file that never changes.

    With `alone`, this process agrees with no other one, and they cannot open the file meanwhile.
    """
    if not is_read_only(path):
        query = {"vfs": "unix-excl", "uri": "true"} if alone else {}
        database = f"file:{quote_address(str(path))}" if alone else str(path)
        return URL.create("sqlite+pysqlite", database=database, query=query)
    log = path.with_name(path.name + "-wal")
    changes = os.access(path.parent, os.W_OK) or (log.exists() and log.stat().st_size > 0)
    query = {"mode": "ro", "uri": "true"} | ({} if changes else {"immutable": "1"})
    return URL.create("sqlite+pysqlite", database=f"file:{quote_address(str(path))}", query=query)


def harden(connection: sqlite3.Connection) -> None:
    """Let a file take no more of this program than a file of ours needs, whoever made it."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _LONGEST_STATEMENT)
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)
    for setting in _SAFE:
        connection.execute(f"PRAGMA {setting}")


def _make_engine(path: Path, *, alone: bool = False) -> Engine:
    engine = create_engine(
        _make_address(path, alone=alone),
        connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
        max_overflow=-1,  # each thread may have its own connection
    )
    read_only = is_read_only(path)

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, record: Any) -> None:
        connection.isolation_level = None  # `begin` sends BEGIN, not the driver
        harden(connection)
        _check_content(connection, path, record.info)  # before anything is written into a file that may be no tome
        if read_only:
            return
        connection.execute(f"PRAGMA page_size = {_PAGE}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # a reply that was paid for survives a power failure
        connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL}")

    @event.listens_for(engine, "checkin")
    def shrink_cache(connection: sqlite3.Connection | None, record: Any) -> None:
        # Without this, a connection that once wrote would also fill its large cache when it reads.
        if connection is not None and record.info.pop("wrote", False):
            connection.execute(f"PRAGMA cache_size = {_LEAN_CACHE}")
            connection.execute("PRAGMA shrink_memory")

    return engine


def _check_files(path: Path) -> None:
    """Raise StoreError if the tome is not a plain file, or if what SQLite writes beside it would show elsewhere."""
    if path.exists() and not path.is_file():
        raise StoreError(f"{path} is not a plain file: name another file with -m")
    for log in _list_beside(Path(os.path.realpath(path))):  # where SQLite writes
        with suppress(FileNotFoundError):
            status = log.lstat()
            if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
                raise StoreError(f"{log} is a link or not a plain file, so {path} is not opened: delete it")
            start = max(0, status.st_size - len(_NAMES_FILE))
            if log.name.endswith("-journal") and _read_bytes(log, start, len(_NAMES_FILE)) == _NAMES_FILE:
                raise StoreError(
                    f"{log} names another file, which SQLite would delete, so {path} is not opened: delete it"
                )


def _read_bytes(path: Path, start: int, count: int) -> bytes:
    """So many bytes of a file, or those that there are; none of a file that is gone. Raises StoreError."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(count)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
