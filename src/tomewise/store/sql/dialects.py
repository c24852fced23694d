"""The databases that keep tomes, and which of them an address belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tomewise.extras import require_extra
from tomewise.store.address import DatabaseAddress, TomeAddress
from tomewise.store.sql.dialect import SqliteDialect
from tomewise.store.sql.sqlite_rows import SqliteTransaction

if TYPE_CHECKING:
    from tomewise.store.sql.postgres import PostgresDialect
    from tomewise.store.sql.postgres_rows import PostgresTransaction

_EXTRA = "postgres", "a tome in PostgreSQL"
Dialect: TypeAlias = "SqliteDialect | PostgresDialect"
Transaction: TypeAlias = "SqliteTransaction | PostgresTransaction"


def find_dialect(address: TomeAddress) -> type[Dialect]:
    """What keeps a tome at an address. Raises MissingDependency."""
    if not isinstance(address, DatabaseAddress):
        return SqliteDialect
    require_extra(*_EXTRA)
    from tomewise.store.sql.postgres import PostgresDialect

    return PostgresDialect


def find_sizes(address: DatabaseAddress) -> dict[str, int]:
    """The tomes of a database, sorted, each with its bytes. Raises StoreError, MissingDependency."""
    require_extra(*_EXTRA)
    from tomewise.store.sql.postgres_server import find_sizes

    return find_sizes(address)
