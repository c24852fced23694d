"""What both databases do alike with rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, Table


class SharedRows:
    """`insert` is the INSERT of the database, since only those of its own have ON CONFLICT."""

    insert: Any

    @classmethod
    def upsert(cls, connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows, or give those that have the same primary key these values."""
        statement = cls.insert(table)
        fresh = {each.name: statement.excluded[each.name] for each in table.c if not each.primary_key}
        keys = [each.name for each in table.primary_key]
        # In one order everywhere, so that two transactions that write the same rows do not wait for each other.
        ordered = sorted(rows, key=lambda row: [row[key] for key in keys])
        connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=fresh), ordered)

    @classmethod
    def insert_new(cls, connection: Connection, table: Table, query: Select[Any]) -> None:
        """Insert the rows of a query, except for those that are there."""
        connection.execute(cls.insert(table).from_select(list(query.selected_columns), query).on_conflict_do_nothing())
