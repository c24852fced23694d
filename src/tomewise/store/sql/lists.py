"""Lists of keys and of names as one parameter of a statement, however many they are, in each database's words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import BigInteger, BindParameter, Dialect, Select, Text, TypeDecorator, bindparam, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine


class _List(TypeDecorator[Any]):
    """A list of whole numbers or of texts: an array of PostgreSQL, JSON for SQLite."""

    impl = Text
    cache_ok = True

    def __init__(self, *, of_texts: bool) -> None:
        super().__init__()
        self.of_texts = of_texts

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(Text())
        return dialect.type_descriptor(ARRAY(Text() if self.of_texts else BigInteger()))

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        if value is None:
            return None
        items = [each if self.of_texts else int(each) for each in value]
        return json.dumps(items) if dialect.name == "sqlite" else items


class _unfold(FunctionElement[Any]):  # noqa: N801 (a function of SQL)
    """The items of a list as rows."""

    inherit_cache = True


@compiles(_unfold, "sqlite")
def _write_for_sqlite(element: Any, compiler: Any, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


@compiles(_unfold, "postgresql")
def _write_for_postgres(element: Any, compiler: Any, **options: Any) -> str:
    return f"unnest({compiler.process(element.clauses, **options)})"


def list_keys(keys: Iterable[Any]) -> Select[Any]:
    """These keys for an IN clause."""
    return _select(bindparam(None, list(keys), _List(of_texts=False), unique=True))


def list_names(names: Iterable[str]) -> Select[Any]:
    """These texts for an IN clause."""
    return _select(bindparam(None, list(names), _List(of_texts=True), unique=True))


def bind_keys(name: str) -> Select[Any]:
    """Keys for an IN clause of a query that is kept, and gets them under this name."""
    return _select(bindparam(name, type_=_List(of_texts=False)))


def bind_names(name: str) -> Select[Any]:
    """Texts for an IN clause of a query that is kept, and gets them under this name."""
    return _select(bindparam(name, type_=_List(of_texts=True)))


def _select(items: BindParameter[Any]) -> Select[Any]:
    # The alias is the name of the column too: so PostgreSQL calls the one column of a function.
    return select(_unfold(items).table_valued("value", name="value").c.value)
