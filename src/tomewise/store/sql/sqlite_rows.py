"""A transaction in SQLite: expressions, rows and words that statements of all databases say otherwise here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from sqlalchemy.exc import DBAPIError, OperationalError

from tomewise.errors import ReadingError
from tomewise.store.sql.mirror import EDGE, Block, Keys, Rows, join_blocks
from tomewise.store.sql.row_values import LONGEST, RESTORE, Misfit, decode_plain
from tomewise.store.sql.schema import TABLES, Table, make_tables
from tomewise.store.sql.transaction import SharedTransaction
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
_LIST = re.compile(r"IN :(\w+)")
_SEARCH = """
SELECT rowid, -bm25(lexical) AS score FROM lexical WHERE lexical MATCH :match {} ORDER BY score DESC, rowid LIMIT :most
"""
# With the plus, SQLite tests the keys that match; without it, it would search once for each key within.
_WITHIN = "AND +rowid IN :keys"
_HOLDERS = (
    "SELECT count(*), group_concat(CASE WHEN rowid IN (SELECT value FROM json_each(?)) THEN rowid END) "
    "FROM lexical WHERE lexical MATCH ?"
)


class SqliteTransaction(SharedTransaction):
    """See `PostgresTransaction` for the same of another database."""

    field_values = _VALUES
    text_field = "CASE WHEN json_valid({0}) THEN coalesce(json_extract({0}, '$.{1}'), '') ELSE '' END"
    size = "length(CAST({} AS BLOB))"
    last_keys = "sqlite_sequence"
    format_query = "PRAGMA user_version"
    holds_gone_words = False
    """Whether this transaction removed texts from the index of words, which has their words until it is merged."""

    # ------------------------------------------------------------ the file

    def make_tables(self) -> None:
        """Make the tables in a blank file."""
        make_tables(self.connection)

    def find_damaged_index(self) -> str:
        """What is wrong with the file and with its full-text index, in SQLite's own words; empty if nothing is."""
        try:
            problem = str(self.read_value("PRAGMA quick_check(1)"))
            if problem != "ok":
                return f"{problem}; {RESTORE}"
            self.run("INSERT INTO lexical (lexical) VALUES ('integrity-check')")
        except OperationalError:
            return ""  # the file may only be read, or another program writes it
        except DBAPIError as error:
            return f"the table lexical, the full-text index, does not fit in itself ({error.orig}); {RESTORE}"
        return ""

    def read_rows(self, table: Table, order: str = "") -> Iterator[Sequence[Any]]:
        """See `SharedTransaction`. A text that is not UTF-8 comes as bytes: the driver would raise an error."""
        listed = ", ".join(f'"{name}"' for name in table.columns)
        self.driver.text_factory = _decode_text
        try:
            yield from self.driver.execute(f"SELECT {listed} FROM {table.name} {order}")
        finally:
            self.driver.text_factory = str

    def set_last_keys(self, rows: Sequence[tuple[str, int]]) -> None:
        """Replace the last keys of all tables."""
        self.run("DELETE FROM sqlite_sequence")
        if rows:
            self.run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", list(rows))

    # ------------------------------------------------------------ expressions

    @staticmethod
    def write_test(value: object, operator: str | None) -> str:
        """See `SharedTransaction`."""
        if isinstance(value, bool):
            kinds = "('true', 'false')"
        else:
            kinds = "('text')" if isinstance(value, str) else "('integer', 'real')"
        test = f"item.type IN {kinds} AND item.value {operator or '='} :value"
        return test if operator else f"NOT ({test})"

    # ------------------------------------------------------------ rows

    def ask(self, statement: str, **values: Any) -> Any:
        """See `SharedTransaction`. The driver runs it: SQLAlchemy needs many times as long as a small query takes."""
        encoded = {name: json.dumps(each, default=int) if type(each) is list else each for name, each in values.items()}
        return self.driver.execute(_LIST.sub(r"IN (SELECT value FROM json_each(:\1))", statement), encoded)

    @staticmethod
    def check_document(document: Document) -> None:
        """Raise ReadingError for a document with more text than a row has room for."""
        if len(document.text) > _LONGEST_TEXT // 4 and (size := len(document.text.encode())) > _LONGEST_TEXT:
            raise ReadingError(
                f"{document.id!r} has {size:,} bytes of text, and a tome takes {_LONGEST_TEXT:,} at most: split it"
            )

    def find_new_keys(self, table: str, count: int) -> list[int]:
        """Ascending keys for so many rows, which no row ever had."""
        # The sequence does not go back after deletions, so a key is never used twice.
        last, used = self.run(
            f"SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0), coalesce(max(key), 0) FROM {table}",
            (table,),
        ).one()
        if type(last) is not int or last < used:
            raise Misfit(table)
        return list(range(last + 1, last + 1 + count))

    def insert_rows(self, table: str, rows: Sequence[tuple[Any, ...]], names: Sequence[str] = ()) -> None:
        """Insert many rows, with all columns or with these. Raises DBAPIError for a value that no column can have."""
        if rows:
            names = names or list(TABLES[table].columns)
            listed = ", ".join(f'"{name}"' for name in names)
            self.run(f'INSERT INTO "{table}" ({listed}) VALUES ({", ".join("?" * len(names))})', list(rows))

    def insert_vectors(self, space: str, keys: Keys, rows: Rows) -> None:
        """Insert vectors (n, d) of float32 under these keys."""
        self.insert_rows("vectors", [(space, key, row.tobytes()) for key, row in zip(keys.tolist(), rows, strict=True)])

    def insert_missing_edges(self, space: str, a: Keys, b: Keys, weights: Rows) -> Block:
        """Insert the edges between these nodes that are missing; of equal ones the first counts. Returns these."""
        (first,) = self.find_new_keys("edges", 1)
        self.run(_EDGES, list(zip(repeat(space, len(a)), a.tolist(), b.tolist(), weights.tolist(), strict=True)))
        return join_blocks(self.load_edges(space, first - 1), EDGE, np.float64)

    def find_edges(self, space: str, pairs: Keys) -> tuple[Keys, Keys]:
        """The keys of the edges between these pairs of node keys (n, 2), and for each of them the row of its pair.

        A pair without an edge is left out.
        """
        found = self.run(_PAIRS, (json.dumps(np.asarray(pairs, np.int64).reshape(-1, 2).tolist()), space)).all()
        table = np.array([tuple(row) for row in found], np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def set_weights(self, keys: Keys, weights: Rows) -> None:
        """Give the edges under these keys other weights."""
        if len(keys):
            rows = list(zip(weights.tolist(), keys.tolist(), strict=True))
            self.run("UPDATE edges SET weight = ? WHERE key = ?", rows)

    def load_edges(self, space: str, last: int = 0) -> Iterator[Block]:
        """The edges of a space with keys above `last` in blocks: keys, and rows of a, b and weight. Raises Misfit."""
        query = "SELECT key, a, b, weight FROM edges WHERE space = ? AND key > ? ORDER BY key"
        for rows in self._read_blocks(query, space, last):
            with decode_plain("edges"):
                table = np.fromiter(rows, np.dtype((np.float64, 1 + EDGE)), len(rows))
            yield table[:, 0].astype(np.int64), table[:, 1:]

    def load_vectors(self, space: str, width: int) -> Iterator[Block]:
        """The vectors of a space in blocks: keys, and rows of float32. Raises Misfit for one of another width."""
        for rows in self._read_blocks("SELECT key, vector FROM vectors WHERE space = ? ORDER BY key", space):
            if not all(type(key) is int and type(value) is bytes and len(value) == 4 * width for key, value in rows):
                raise Misfit("vectors")
            keys, values = zip(*rows, strict=True)
            yield np.array(keys, np.int64), np.frombuffer(b"".join(values), np.float32).reshape(-1, width)

    def load_changes(self, space: str, version: int, width: int) -> None:
        """Nothing is known of earlier versions."""

    def _read_blocks(self, query: str, *values: Any) -> Iterator[list[Any]]:
        # Rows of the driver: for a million rows, those of SQLAlchemy take ten times as long.
        cursor: Any = self.run(query, values).cursor
        while rows := cursor.fetchmany(_BLOCK):
            yield rows

    def read_names(self, table: str, column: str) -> list[str]:
        """All values of a column, sorted. What is not text is left out: nobody can ask for it."""
        query = f"SELECT CAST({column} AS BLOB) FROM {table} WHERE typeof({column}) = 'text' ORDER BY 1"
        return [name for (content,) in self.run(query) if isinstance(name := _decode_text(content), str)]

    # ------------------------------------------------------------ words

    def index_words(self, rows: Sequence[tuple[int, str]]) -> None:
        """Index texts under node keys."""
        if rows:
            self.run("INSERT INTO lexical (rowid, text) VALUES (?, ?)", list(rows))

    def forget_words(self, rows: Sequence[tuple[int, str]]) -> None:
        """Remove texts from the index. It does not store texts, so `rows` must be exactly what was indexed."""
        if rows:
            self.run("INSERT INTO lexical (lexical, rowid, text) VALUES ('delete', ?, ?)", list(rows))
            self.holds_gone_words = True

    def has_many_words(self) -> bool:
        """Whether merging the index takes so long that not every removal may do it."""
        query = f"SELECT count(*) FROM (SELECT 1 FROM lexical_docsize LIMIT {MANY_PASSAGES + 1})"
        return int(self.read_value(query)) > MANY_PASSAGES

    def merge_words(self) -> None:
        """Merge the index, in time linear in its size: then it has no word of what was removed."""
        self.run("INSERT INTO lexical (lexical) VALUES ('optimize')")

    def search_words(self, words: Sequence[str], limit: int, within: Keys | None) -> list[tuple[int, float]]:
        """The best node keys, all or those within, that hold one of the words, with BM25 scores; higher is better."""
        query = _SEARCH.format("" if within is None else _WITHIN)
        match = " OR ".join(f'"{word}"' for word in words)
        values = {} if within is None else {"keys": within.tolist()}
        with decode_plain("lexical"):
            return [(int(key), float(score)) for key, score in self.ask(query, match=match, most=limit, **values)]

    def find_holders(self, phrase: str, among: Keys) -> tuple[int, Keys]:
        """The number of texts that hold these words side by side, and those of `among` that do, ascending."""
        count, holders = self.run(_HOLDERS, (json.dumps(among.tolist()), f'"{phrase}"')).one()
        return int(count), np.sort(np.array(holders.split(",") if holders else [], np.int64))


def _decode_text(content: bytes) -> str | bytes:
    """The text that these bytes are; the bytes where they are not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content
