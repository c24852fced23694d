"""The SQLite file of a tome: opening, checking, and transactions."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any
from urllib.parse import quote as quote_address

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from tomewise.errors import Locked, StoreError
from tomewise.store.sqlite.schema import APPLICATION_ID, LATEST, migrate

BUSY_SECONDS = 3.0
_HEADER = b"SQLite format 3\x00"
_PAGE = 8192  # holds five vectors of 384 numbers, where the usual page holds two and is a quarter empty
_CACHE = -65536  # kilobytes: indexes are written in no order, and must not go to disk and back for each row
_LEAN_CACHE = -2000  # kilobytes, SQLite's own choice: of a connection that reads
_JOURNAL = 64 << 20  # bytes that the write-ahead log keeps on disk after a large transaction


def connect(path: Path, *, create: bool) -> Engine:
    """Open the file as a tome, making or migrating it where needed. Raises StoreError where it is none, Locked."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a tome: name a file, such as -m {path.name}.tome")
    if not path.exists() or path.stat().st_size == 0:
        if not create:
            raise StoreError(
                f"there is no tome at {path}: add something first, with `tome -m {quote(str(path))} add PATH`"
            )
        if not path.parent.is_dir():
            raise StoreError(f"the folder {path.parent} does not exist: make it first")
    else:
        _check_header(path)
    engine = _engine(path)
    try:
        with translated(path):
            _prepare(engine, path, create=create)
    except BaseException:
        engine.dispose()
        raise
    return engine


@contextmanager
def writing(engine: Engine, path: Path, *, wait: bool = True) -> Iterator[Connection]:
    """One write transaction: everything inside is committed together or not at all. Raises Locked.

    While another program writes, this waits BUSY_SECONDS, or not at all.
    """
    with translated(path), engine.connect() as connection:
        connection.execution_options(writes=True, waits=BUSY_SECONDS if wait else 0)
        with connection.begin():
            yield connection


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn the errors of SQLite that users can meet into ours; the others are mistakes of a program."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        if isinstance(cause, sqlite3.OperationalError):
            raise _operational(path, str(cause)) from error
        if type(cause) is sqlite3.DatabaseError:
            raise StoreError(f"{path} is damaged or no tome ({cause}): restore it from a copy, or add anew") from error
        raise


def _operational(path: Path, cause: str) -> StoreError:
    if "locked" in cause or "busy" in cause:
        return Locked(f"{path} is being written by another program: try again when it has finished")
    if "readonly" in cause or "unable to open" in cause:
        return StoreError(f"{path} cannot be opened for writing ({cause}): check the permissions of it and its folder")
    return StoreError(f"{path} could not be used ({cause})")


def _prepare(engine: Engine, path: Path, *, create: bool) -> None:
    with engine.connect() as connection:
        application, version = _marks(connection)
        if version > LATEST and application == APPLICATION_ID:
            raise StoreError(
                f"{path} was written by a newer Tomewise (format {version}, this one reads up to {LATEST}): "
                "upgrade with `pip install -U tomewise`"
            )
        if application != APPLICATION_ID and not (create and _is_blank(connection)):
            raise StoreError(f"{path} is an SQLite file but no tome: name another file with -m")
    if application != APPLICATION_ID or version < LATEST:
        if is_read_only(path):
            raise StoreError(
                f"{path} is of an older Tomewise (format {version}, this one has {LATEST}) and may only be read: "
                "open it once where it can be written"
            )
        with writing(engine, path) as connection:
            migrate(connection)


def is_read_only(path: Path) -> bool:
    """Whether a file that exists may only be read, or stands in a folder where nothing may be written beside it."""
    return path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _address(path: Path) -> URL:
    """How SQLite is to open the file: where no log can be written beside it, as one that nobody changes."""
    if not is_read_only(path):
        return URL.create("sqlite+pysqlite", database=str(path))
    log = path.with_name(path.name + "-wal")
    changes = os.access(path.parent, os.W_OK) or (log.exists() and log.stat().st_size > 0)
    query = {"mode": "ro", "uri": "true"} | ({} if changes else {"immutable": "1"})
    return URL.create("sqlite+pysqlite", database=f"file:{quote_address(str(path))}", query=query)


def _engine(path: Path) -> Engine:
    engine = create_engine(
        _address(path),
        connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
        max_overflow=-1,  # as many readers as there are threads
    )
    read_only = is_read_only(path)

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # SQLAlchemy's "begin" event below says BEGIN, not the driver
        if read_only:
            return
        connection.execute(f"PRAGMA page_size = {_PAGE}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # a reply that was paid for outlives a power cut
        connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        if options.get("writes"):
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {int(options['waits'] * 1000)}")
            connection.exec_driver_sql(f"PRAGMA cache_size = {_CACHE}")
            connection.info["wrote"] = True
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.exec_driver_sql("BEGIN")

    @event.listens_for(engine, "checkin")
    def lean(connection: sqlite3.Connection | None, record: Any) -> None:
        # Else each connection that ever wrote fills its large cache when it reads, too.
        if connection is not None and record.info.pop("wrote", False):
            connection.execute(f"PRAGMA cache_size = {_LEAN_CACHE}")
            connection.execute("PRAGMA shrink_memory")

    return engine


def _check_header(path: Path) -> None:
    try:
        with path.open("rb") as file:
            header = file.read(len(_HEADER))
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    if header != _HEADER:
        raise StoreError(f"{path} is no tome: name another file with -m")


def _marks(connection: Connection) -> tuple[Any, Any]:
    return (
        connection.exec_driver_sql("PRAGMA application_id").scalar_one(),
        connection.exec_driver_sql("PRAGMA user_version").scalar_one(),
    )


def _is_blank(connection: Connection) -> bool:
    return not connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one()
