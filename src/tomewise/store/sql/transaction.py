"""One transaction of a tome, in the words of its database. What all databases do alike is here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import BindParameter, Connection, Select, Table, TextClause, bindparam, text

from tomewise.store.sql.row_values import read_value
from tomewise.store.sql.schema import check_format
from tomewise.types import Condition

_LARGEST = 2**63 - 1  # of the whole numbers of a database
_OPERATORS = {sign: sign for sign in ("=", "<", "<=", ">", ">=")}


class SharedTransaction(ABC):
    """What runs statements: `execute`, `scalars` and `scalar` those of SQLAlchemy, `run` those in the database's words.

    `address` names the tome in messages, and `driver` is the connection of the driver.
    """

    insert: Any
    """The INSERT of the database, since only those of its own have ON CONFLICT."""
    field_values: str
    """The FROM clause with each value of the field `:field` of a document as a row `item`: a list has one row for each
    item. The title is a field too, where the metadata has none of that name."""
    last_keys: str
    """The table of the last key of each table, none of which is used again."""
    used_keys: str
    """The FROM clause of its rows that were used."""
    format_query: str
    """The query for the format of the tome."""

    def __init__(self, connection: Connection, address: str) -> None:
        self.connection = connection
        self.address = address
        self.driver: Any = connection.connection.driver_connection
        self.execute, self.scalars, self.scalar = connection.execute, connection.scalars, connection.scalar
        self.run = connection.exec_driver_sql

    def read_value(self, query: str, *values: Any) -> Any:
        """The first value that a query in the words of the database finds; None if it finds no row."""
        return read_value(self.connection, query, *values)

    def check(self) -> None:
        """Raise StoreError if a newer Tomewise changed the tome."""
        check_format(self.read_value(self.format_query), self.address)

    @abstractmethod
    def read_bare(self, table: Table) -> Iterable[Sequence[Any]]:
        """The rows of a table as they are, whatever is in them."""

    def read_last_keys(self) -> list[tuple[str, int]]:
        """For each table with keys of its own that was used, the last one; sorted."""
        return [(name, last) for name, last in self.run(f"SELECT name, seq FROM {self.used_keys} ORDER BY name")]

    @staticmethod
    @abstractmethod
    def write_test(value: object, operator: str | None) -> str:
        """The test of an `item` by `:value`, which is this value; without operator, that it is unequal.

        A value of another kind is unequal, and neither less nor greater.
        """

    @classmethod
    def passes(cls, condition: Condition) -> TextClause:
        """A test of one field of a document."""
        value = condition.value
        if isinstance(value, int) and abs(value) > _LARGEST:
            value = float(value)
        operator = _OPERATORS.get(condition.operator)  # so that nothing but an operator gets into the statement
        query = f"EXISTS (SELECT 1 {cls.field_values} AND {cls.write_test(value, operator)})"
        values = {"field": condition.field, "value": value}
        bound: list[BindParameter[Any]] = [bindparam(name, each, unique=True) for name, each in values.items()]
        return text(query).bindparams(*bound)

    def upsert(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows, or give those that have the same primary key these values."""
        statement = self.insert(table)
        fresh = {each.name: statement.excluded[each.name] for each in table.c if not each.primary_key}
        keys = [each.name for each in table.primary_key]
        # In one order everywhere, so that two transactions that write the same rows do not wait for each other.
        ordered = sorted(rows, key=lambda row: [row[key] for key in keys])
        self.execute(statement.on_conflict_do_update(index_elements=keys, set_=fresh), ordered)

    def insert_new(self, table: Table, query: Select[Any]) -> None:
        """Insert the rows of a query, except for those that are there."""
        self.execute(self.insert(table).from_select(list(query.selected_columns), query).on_conflict_do_nothing())
