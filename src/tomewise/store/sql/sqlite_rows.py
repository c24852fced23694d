"""Expressions, rows and words as SQLite has them: what statements of all databases say otherwise here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import repeat
from typing import Any

import numpy as np
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Label,
    LargeBinary,
    Select,
    Table,
    bindparam,
    case,
    cast,
    column,
    desc,
    func,
    literal_column,
    select,
    table,
    text,
)
from sqlalchemy.dialects.sqlite import dialect as language
from sqlalchemy.dialects.sqlite import insert

from tomewise.errors import ReadingError
from tomewise.store.sql.blocks import EDGE, Block, join_blocks
from tomewise.store.sql.mirror import Keys, Rows
from tomewise.store.sql.row_values import LONGEST, Misfit, decode_plain, read_value
from tomewise.store.sql.schema import TABLES, edges
from tomewise.store.sql.shared_rows import SharedRows
from tomewise.types import Document

_LONGEST_TEXT = LONGEST - (1 << 20)  # bytes of a document; the other columns of its row have bounds far below the rest
MANY_PASSAGES = 20_000  # whose index takes 50 ms, and 10 MB of writing, to be merged
_BLOCK = 4096  # rows that are read at a time

_TITLED = """CASE documents.title WHEN '' THEN documents.metadata
ELSE json_insert(documents.metadata, '$.title', documents.title) END"""

# JSON keeps true apart from 1.
_VALUES = f"""FROM json_each({_TITLED}) AS field, json_each(CASE field.type WHEN 'array' THEN field.value
WHEN 'true' THEN '[true]' WHEN 'false' THEN '[false]' ELSE json_array(field.value) END) AS item
WHERE field.key = :field"""

_EDGES = "INSERT OR IGNORE INTO edges (space, a, b, weight) VALUES (?, ?, ?, ?)"
# CROSS JOIN: the pairs come first, each with one look-up in the index. SQLite cannot know how few they are.
_PAIRS = """
SELECT edges.key, pair.key FROM json_each(?) AS pair
CROSS JOIN edges INDEXED BY edges_forward ON edges.space = ? AND edges.a = json_extract(pair.value, '$[0]')
  AND edges.b = json_extract(pair.value, '$[1]')
"""
_WORDS = table("lexical", column("rowid"))
_SCORE: Label[float] = literal_column("-bm25(lexical)").label("score")
_SEARCH = (
    select(_WORDS.c.rowid, _SCORE)
    .where(text("lexical MATCH :match"))
    .order_by(desc("score"), _WORDS.c.rowid)
    .limit(bindparam("most"))
)
# With the plus, SQLite tests the keys that match; without it, it would search once for each key within.
_SEARCH_WITHIN = _SEARCH.where(
    literal_column("+rowid").in_(select(func.json_each(bindparam("within")).table_valued("value").c.value))
)
_HOLDERS = (
    "SELECT count(*), group_concat(CASE WHEN rowid IN (SELECT value FROM json_each(?)) THEN rowid END) "
    "FROM lexical WHERE lexical MATCH ?"
)


class SqliteRows(SharedRows):
    """What a dialect does with expressions, rows and words; see `PostgresRows` for the same of another."""

    field_values = _VALUES

    # ------------------------------------------------------------ expressions

    @staticmethod
    def field(fields: ColumnElement[Any], name: str) -> ColumnElement[Any]:
        """One text of a JSON object; empty for an object without this field, and for no object."""
        text = func.coalesce(func.json_extract(fields, f"$.{name}", type_=None), "")
        return case((func.json_valid(fields) == 1, text), else_="")

    @staticmethod
    def count_bytes(text: ColumnElement[str]) -> ColumnElement[int]:
        """How many bytes a text takes."""
        return func.length(cast(text, LargeBinary))

    @staticmethod
    def write_test(value: object, operator: str | None) -> str:
        """See `SharedRows`."""
        if isinstance(value, bool):
            kinds = "('true', 'false')"
        else:
            kinds = "('text')" if isinstance(value, str) else "('integer', 'real')"
        test = f"item.type IN {kinds} AND item.value {operator or '='} :value"
        return test if operator else f"NOT ({test})"

    # ------------------------------------------------------------ rows

    @staticmethod
    def fetch(connection: Connection, query: Select[Any], **values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a query that a module keeps, with these values; a list is for `bind_list`. Raises Misfit.

        They come from the driver: SQLAlchemy needs many times as long for a small query as the database does.
        """
        _, _, decoders = _compile(query)
        for row in _run(connection, query, values):
            yield tuple([decode(value, None) for decode, value in zip(decoders, row, strict=True)])

    @staticmethod
    def fetch_bare(connection: Connection, query: Select[Any], **values: Any) -> Iterator[Any]:
        """As `fetch`, but no value is checked, and the rows are read one by one."""
        return iter(_run(connection, query, values))

    @staticmethod
    def check_document(document: Document) -> None:
        """Raise ReadingError for a document with more text than a row has room for."""
        if len(document.text) > _LONGEST_TEXT // 4 and (size := len(document.text.encode())) > _LONGEST_TEXT:
            raise ReadingError(
                f"{document.id!r} has {size:,} bytes of text, and a tome takes {_LONGEST_TEXT:,} at most: split it"
            )

    insert = staticmethod(insert)

    @staticmethod
    def find_new_keys(connection: Connection, table: Table, count: int) -> list[int]:
        """Ascending keys for so many rows, which no row ever had."""
        last = _read_last_key(connection, table.name)
        return list(range(last + 1, last + 1 + count))

    @staticmethod
    def insert_rows(
        connection: Connection, table: str, rows: Sequence[tuple[Any, ...]], names: Sequence[str] = ()
    ) -> None:
        """Insert many rows, with all columns or with these. Raises DBAPIError for a value that no column can have."""
        if rows:
            names = names or TABLES.tables[table].c.keys()
            listed = ", ".join(f'"{name}"' for name in names)
            query = f'INSERT INTO "{table}" ({listed}) VALUES ({", ".join("?" * len(names))})'
            connection.exec_driver_sql(query, list(rows))

    @staticmethod
    def insert_vectors(connection: Connection, space: str, keys: Keys, rows: Rows) -> None:
        """Insert vectors (n, d) of float32 under these keys."""
        values = [(space, key, row.tobytes()) for key, row in zip(keys.tolist(), rows, strict=True)]
        SqliteRows.insert_rows(connection, "vectors", values)

    @staticmethod
    def insert_missing_edges(connection: Connection, space: str, a: Keys, b: Keys, weights: Rows) -> tuple[Keys, Rows]:
        """Insert the edges between these nodes that are missing; of equal ones the first counts. Returns these."""
        last = _read_last_key(connection, edges.name)
        rows = list(zip(repeat(space, len(a)), a.tolist(), b.tolist(), weights.tolist(), strict=True))
        connection.exec_driver_sql(_EDGES, rows)
        return join_blocks(SqliteRows.load_edges(connection, space, last), EDGE, np.float64)

    @staticmethod
    def find_edges(connection: Connection, space: str, pairs: Keys) -> tuple[Keys, Keys]:
        """The keys of the edges between these pairs of node keys (n, 2), and for each of them the row of its pair.

        A pair without an edge is left out.
        """
        values = json.dumps(np.asarray(pairs, np.int64).reshape(-1, 2).tolist())
        found = connection.exec_driver_sql(_PAIRS, (values, space)).all()
        table = np.array([tuple(row) for row in found], np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    @staticmethod
    def set_weights(connection: Connection, keys: Keys, weights: Rows) -> None:
        """Give the edges under these keys other weights."""
        rows = list(zip(weights.tolist(), keys.tolist(), strict=True))
        if rows:
            connection.exec_driver_sql("UPDATE edges SET weight = ? WHERE key = ?", rows)

    @staticmethod
    def load_edges(connection: Connection, space: str, last: int = 0) -> Iterator[Block]:
        """The edges of a space with keys above `last` in blocks: keys, and rows of a, b and weight. Raises Misfit."""
        query = "SELECT key, a, b, weight FROM edges WHERE space = ? AND key > ? ORDER BY key"
        for rows in _read_blocks(connection, query, (space, last)):
            with decode_plain("edges"):
                table = np.fromiter(rows, np.dtype((np.float64, 1 + EDGE)), len(rows))
            yield table[:, 0].astype(np.int64), table[:, 1:]

    @staticmethod
    def load_vectors(connection: Connection, space: str, width: int) -> Iterator[Block]:
        """The vectors of a space in blocks: keys, and rows of float32. Raises Misfit for one of another width."""
        query = "SELECT key, vector FROM vectors WHERE space = ? ORDER BY key"
        for rows in _read_blocks(connection, query, (space,)):
            keys, values = zip(*rows, strict=True)
            if not all(type(key) is int for key in keys) or not all(type(value) is bytes for value in values):
                raise Misfit("vectors", "a row without a key or a vector")
            if any(len(value) != 4 * width for value in values):
                raise Misfit("vectors", f"a vector that has not {width} numbers")
            yield np.array(keys, np.int64), np.frombuffer(b"".join(values), np.float32).reshape(-1, width)

    @staticmethod
    def load_changes(connection: Connection, space: str, version: int, width: int) -> None:
        """Nothing is known of earlier versions."""

    @staticmethod
    def read_names(connection: Connection, names: Column[str]) -> list[str]:
        """All values of a column, sorted. What is not text is left out: nobody can ask for it."""
        query = f"SELECT CAST({names.name} AS BLOB) FROM {names.table} WHERE typeof({names.name}) = 'text' ORDER BY 1"
        found = [name for (name,) in connection.exec_driver_sql(query)]
        return [text for name in found if (text := name.decode(errors="replace")).encode() == name]

    # ------------------------------------------------------------ words

    @staticmethod
    def index_words(connection: Connection, rows: Sequence[tuple[int, str]]) -> None:
        """Index texts under node keys."""
        if rows:
            connection.exec_driver_sql("INSERT INTO lexical (rowid, text) VALUES (?, ?)", list(rows))

    @staticmethod
    def forget_words(connection: Connection, rows: Sequence[tuple[int, str]]) -> None:
        """Remove texts from the index. It does not store texts, so `rows` must be exactly what was indexed."""
        if rows:
            query = "INSERT INTO lexical (lexical, rowid, text) VALUES ('delete', ?, ?)"
            connection.exec_driver_sql(query, list(rows))
            connection.info["forgot"] = True

    @staticmethod
    def pop_forgotten(connection: Connection) -> bool:
        """Whether this transaction removed texts from the index, which has their words until it is merged."""
        return bool(connection.info.pop("forgot", False))

    @staticmethod
    def has_many_words(connection: Connection) -> bool:
        """Whether merging the index takes so long that not every removal may do it."""
        query = f"SELECT count(*) FROM (SELECT 1 FROM lexical_docsize LIMIT {MANY_PASSAGES + 1})"
        return int(read_value(connection, query)) > MANY_PASSAGES

    @staticmethod
    def merge_words(connection: Connection) -> None:
        """Merge the index, in time linear in its size: then it has no word of what was removed."""
        connection.exec_driver_sql("INSERT INTO lexical (lexical) VALUES ('optimize')")

    @staticmethod
    def search_words(
        connection: Connection, words: Sequence[str], limit: int, within: Keys | None
    ) -> list[tuple[int, float]]:
        """The best node keys, all or those within, that hold one of the words, with BM25 scores; higher is better."""
        query, keys = (_SEARCH, None) if within is None else (_SEARCH_WITHIN, within.tolist())
        match = " OR ".join(f'"{word}"' for word in words)
        found = SqliteRows.fetch(connection, query, match=match, most=limit, within=keys)
        with decode_plain("lexical"):
            return [(int(key), float(score)) for key, score in found]

    @staticmethod
    def find_holders(connection: Connection, phrase: str, among: Keys) -> tuple[int, Keys]:
        """The number of texts that hold these words side by side, and those of `among` that do, ascending."""
        keys = json.dumps(among.tolist())
        count, holders = connection.exec_driver_sql(_HOLDERS, (keys, f'"{phrase}"')).one()
        return int(count), np.sort(np.array(holders.split(",") if holders else [], np.int64))


def _read_last_key(connection: Connection, table: str) -> int:
    # The sequence does not go back after deletions, so a key is never used twice.
    query = f"SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0), coalesce(max(key), 0) FROM {table}"
    last, used = connection.exec_driver_sql(query, (table,)).one()
    if type(last) is not int or last < used:
        raise Misfit(table, "no last key in the table sqlite_sequence")
    return last


@cache
def _compile(query: Select[Any]) -> tuple[str, list[tuple[str, Any]], list[Callable[[Any, Any], Any]]]:
    """A query as text, the name and value of each of its parameters, and what decodes each column."""
    compiled: Any = query.compile(dialect=language(paramstyle="qmark"), compile_kwargs={"render_postcompile": True})
    values = compiled.params
    types: list[Any] = [each.type for each in query.selected_columns]
    decoders = [getattr(each, "process_result_value", _keep_value) for each in types]
    return str(compiled), [(name, values[name]) for name in compiled.positiontup or ()], decoders


def _keep_value(value: Any, _: Any) -> Any:
    return value


def _run(connection: Connection, query: Select[Any], values: Mapping[str, Any]) -> Any:
    statement, parameters, _ = _compile(query)
    encoded = {name: json.dumps(each, default=int) if type(each) is list else each for name, each in values.items()}
    if not connection.in_transaction():
        connection.begin()
    driver: Any = connection.connection.driver_connection
    return driver.execute(statement, [encoded.get(name, value) for name, value in parameters])


def _read_blocks(connection: Connection, query: str, values: tuple[Any, ...]) -> Iterator[list[Any]]:
    # Rows of the driver: for a million rows, those of SQLAlchemy take ten times as long.
    cursor: Any = connection.exec_driver_sql(query, values).cursor
    while rows := cursor.fetchmany(_BLOCK):
        yield rows
