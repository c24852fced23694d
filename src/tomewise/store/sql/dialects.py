"""The databases that keep tomes, and which of them an address belongs to."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tomewise.extras import require_extra
from tomewise.store.address import DatabaseAddress
from tomewise.store.sql.database import begin_new
from tomewise.store.sql.dialect import SqliteDialect
from tomewise.store.sql.sqlite_rows import SqliteTransaction

if TYPE_CHECKING:
    from tomewise.store.sql.postgres import PostgresDialect
    from tomewise.store.sql.postgres_rows import PostgresTransaction

Dialect: TypeAlias = "SqliteDialect | PostgresDialect"
Transaction: TypeAlias = "SqliteTransaction | PostgresTransaction"


def open_dialect(address: Path | DatabaseAddress, *, create: bool, read_only: bool, exact_rows: int) -> Dialect:
    """Open what is at an address; create it if needed. Raises StoreError, Locked, MissingDependency."""
    if isinstance(address, DatabaseAddress):
        return _import_postgres().open(address, create=create, read_only=read_only, exact_rows=exact_rows)
    return SqliteDialect.open(Path(address).absolute(), create=create and not read_only)


def begin_new_tome(address: Path | DatabaseAddress, exact_rows: int) -> AbstractContextManager[Transaction]:
    """One write transaction in a new tome, which is at this address once all is written. Raises StoreError."""
    if isinstance(address, DatabaseAddress):
        return _import_postgres().begin_new(address, exact_rows)
    return begin_new(Path(address).absolute())


def find_sizes(address: DatabaseAddress) -> dict[str, int]:
    """The tomes of a database, sorted, each with its bytes. Raises StoreError, MissingDependency."""
    _import_postgres()
    from tomewise.store.sql.postgres_server import find_sizes

    return find_sizes(address)


def _import_postgres() -> type[PostgresDialect]:
    require_extra("postgres", "a tome in PostgreSQL")
    from tomewise.store.sql.postgres import PostgresDialect

    return PostgresDialect
