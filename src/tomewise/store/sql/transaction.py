"""One transaction of a tome, in the words of its database. What all databases do alike is here."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, text

from tomewise.store.sql.row_values import read_value
from tomewise.store.sql.schema import TABLES, Table, check_format
from tomewise.types import Condition

_LARGEST = 2**63 - 1  # of the whole numbers of a database
_OPERATORS = {sign: sign for sign in ("=", "<", "<=", ">", ">=")}


@lru_cache(1000)
def _read_columns(statement: str) -> list[tuple[str, Callable[[Any], Any]]]:
    """The name of each column that a statement selects, and what decodes its values."""
    columns: list[tuple[str, Callable[[Any], Any]]] = []
    selected, found, _ = statement.partition("\nFROM")
    if not found:
        raise ValueError(f"what this selects does not end before a line with FROM: {statement}")
    for each in re.split(r",\s+", selected.removeprefix("SELECT ")):
        table, _, name = each.partition(" ")[0].replace('"', "").partition(".")
        decode = TABLES[table].columns[name].decode if table in TABLES else lambda value: value
        columns.append((each.rpartition(" ")[2].rpartition(".")[2].strip('"'), decode))
    return columns


class SharedTransaction(ABC):
    """What runs statements in one connection: `run` those in the words of the database.

    All other methods take statements in the SQL that databases share: `:name` is a value, `IN :keys` a list of whole
    numbers, and `IN` with any other name a list of texts. What `fetch` and `fetch_rows` select ends before a line that
    begins with FROM. A value of `table.column` is decoded by the type of that column, and any other stays as it is.
    `address` names the tome in messages, and `driver` is the connection of the driver.
    """

    field_values: str
    """The FROM clause with each value of the field `:field` of a document as a row `item`: a list has one row for each
    item. The title is a field too, where the metadata has none of that name."""
    text_field: str
    """The expression for one text of a JSON object, with places for a column and the name of the field; empty without
    this field."""
    size: str
    """The expression for how many bytes a text takes, with a place for a column."""
    last_keys: str
    """The table of the last key of each table, none of which is used again."""
    format_query: str
    """The query for the format of the tome."""

    def __init__(self, connection: Connection, address: str) -> None:
        self.connection = connection
        self.address = address
        self.driver: Any = connection.connection.driver_connection
        self.run = connection.exec_driver_sql

    @abstractmethod
    def ask(self, statement: str, **values: Any) -> Any:
        """The cursor of a statement: its rows as they are, and `rowcount`."""

    def fetch(self, statement: str, **values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a statement. Raises Misfit."""
        decoders = [decode for _, decode in _read_columns(statement)]
        for row in self.ask(statement, **values):
            yield tuple([decode(value) for decode, value in zip(decoders, row, strict=True)])

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
    def read_rows(self, table: Table, order: str = "") -> Iterable[Sequence[Any]]:
        """All rows of a table as they are, whatever is in them; `order` is an ORDER BY clause."""

    def read_last_keys(self) -> list[tuple[str, int]]:
        """For each table with keys of its own that was used, the last one; sorted."""
        query = f"SELECT name, seq FROM {self.last_keys} WHERE seq > 0 ORDER BY name"
        return [(name, last) for name, last in self.run(query)]

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

    def upsert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows, or give those that have the same primary key these values."""
        names, keys = list(TABLES[table].columns), TABLES[table].keys
        fresh = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
        statement = (
            f"INSERT INTO {table} ({', '.join(names)}) VALUES (:{', :'.join(names)}) "
            f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {fresh}"
        )
        # In one order everywhere, so that two transactions that write the same rows do not wait for each other.
        self.repeat(statement, sorted(rows, key=lambda row: [row[key] for key in keys]))

    def repeat(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run a statement once for each of these rows of values."""
        self.connection.execute(text(statement), rows)
