"""What both databases do alike with expressions and rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import BindParameter, Connection, Select, Table, TextClause, bindparam, text

from tomewise.types import Condition

_LARGEST = 2**63 - 1  # of the whole numbers of a database
_OPERATORS = {sign: sign for sign in ("=", "<", "<=", ">", ">=")}


class SharedRows(ABC):
    """`insert` is the INSERT of the database, since only those of its own have ON CONFLICT.

    `field_values` is the FROM clause with each value of the field `:field` of a document as a row `item`: a list has
    one row for each item. The title is a field too, where the metadata has none of that name.
    """

    insert: Any
    field_values: str

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
