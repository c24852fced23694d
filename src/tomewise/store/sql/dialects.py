"""The databases that keep tomes, and which of them an address belongs to."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tomewise.extras import require_extra
from tomewise.store.address import DatabaseAddress
from tomewise.store.sql.dialect import SqliteDialect

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from tomewise.store.sql.postgres import PostgresDialect

    Dialect: TypeAlias = SqliteDialect | PostgresDialect


def open_dialect(address: Path | DatabaseAddress, *, create: bool, read_only: bool, exact_rows: int) -> Dialect:
    """Open what is at an address; create it if needed. Raises StoreError, Locked, MissingDependency."""
    if isinstance(address, DatabaseAddress):
        return _import_postgres().open(address, create=create, read_only=read_only, exact_rows=exact_rows)
    return SqliteDialect.open(Path(address).absolute(), create=create, read_only=read_only)


def begin_new(address: Path | DatabaseAddress, exact_rows: int) -> AbstractContextManager[tuple[Connection, Dialect]]:
    """One write transaction in a new tome, which is at this address once all is written. Raises StoreError."""
    if isinstance(address, DatabaseAddress):
        return _import_postgres().begin_new(address, exact_rows)
    return SqliteDialect.begin_new(Path(address).absolute())


def find_sizes(address: DatabaseAddress) -> dict[str, int]:
    """The tomes of a database, sorted, each with its bytes. Raises StoreError, MissingDependency."""
    _import_postgres()
    from tomewise.store.sql.postgres_server import find_sizes

    return find_sizes(address)


def _import_postgres() -> type[PostgresDialect]:
    require_extra("postgres", "a tome in PostgreSQL")
    from tomewise.store.sql.postgres import PostgresDialect

    return PostgresDialect
