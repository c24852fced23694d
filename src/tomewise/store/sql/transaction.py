"""One transaction of a tome, in the words of its database. What all databases do alike is here."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Table

from tomewise.store.sql.row_values import read_value
from tomewise.store.sql.schema import TABLES, check_format
from tomewise.types import Condition

_LARGEST = 2**63 - 1  # of the whole numbers of a database
_OPERATORS = {sign: sign for sign in ("=", "<", "<=", ">", ">=")}


@lru_cache(1000)
def _read_columns(statement: str) -> list[tuple[str, Callable[[Any, Any], Any]]]:
    """The name of each column that a statement selects, and what decodes its values."""
    columns: list[tuple[str, Callable[[Any, Any], Any]]] = []
    for each in re.split(r",\s+", statement.partition("\nFROM")[0].removeprefix("SELECT ")):
        table, _, name = each.partition(" ")[0].replace('"', "").partition(".")
        kind: Any = TABLES.tables[table].c[name].type if table in TABLES.tables else None
        decode = kind.process_result_value if kind is not None else lambda value, _: value
        columns.append((each.rpartition(" ")[2].rpartition(".")[2].strip('"'), decode))
    return columns


class SharedTransaction(ABC):
    """What runs statements in one connection: `execute` those of SQLAlchemy, `run` those in the words of the database.

    All other methods take statements in the SQL that databases share: `:name` is a value, `IN :keys` a list of whole
    numbers, and `IN` with any other name a list of texts. What `fetch` and `fetch_rows` select ends before a line that
    begins with FROM. A value of `table.column` is decoded by the type of that column, and any other stays as it is.
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
        self.execute, self.run = connection.execute, connection.exec_driver_sql

    @abstractmethod
    def ask(self, statement: str, **values: Any) -> Any:
        """The cursor of a statement: its rows as they are, and `rowcount`."""

    def fetch(self, statement: str, **values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a statement. Raises Misfit."""
        decoders = [decode for _, decode in _read_columns(statement)]
        for row in self.ask(statement, **values):
            yield tuple([decode(value, None) for decode, value in zip(decoders, row, strict=True)])

    def fetch_rows(self, statement: str, **values: Any) -> Iterator[dict[str, Any]]:
        """As `fetch`, by the names of the columns."""
        names = [name for name, _ in _read_columns(statement)]
        return (dict(zip(names, row, strict=True)) for row in self.fetch(statement, **values))

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

    def write_condition(self, condition: Condition, place: int) -> tuple[str, dict[str, Any]]:
        """A test of one field of a document, and its values, whose names end with `place`."""
        value = condition.value
        if isinstance(value, int) and abs(value) > _LARGEST:
            value = float(value)
        operator = _OPERATORS.get(condition.operator)  # so that nothing but an operator gets into the statement
        test = f"EXISTS (SELECT 1 {self.field_values} AND {self.write_test(value, operator)})"
        test = test.replace(":field", f":field{place}").replace(":value", f":value{place}")
        return test, {f"field{place}": condition.field, f"value{place}": value}

    def upsert(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows, or give those that have the same primary key these values."""
        statement = self.insert(table)
        fresh = {each.name: statement.excluded[each.name] for each in table.c if not each.primary_key}
        keys = [each.name for each in table.primary_key]
        # In one order everywhere, so that two transactions that write the same rows do not wait for each other.
        ordered = sorted(rows, key=lambda row: [row[key] for key in keys])
        self.execute(statement.on_conflict_do_update(index_elements=keys, set_=fresh), ordered)
