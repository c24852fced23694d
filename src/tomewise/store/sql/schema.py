"""The tables of a tome: the statements that make them in an SQLite file, and the columns that these declare.

`PRAGMA application_id` marks a file as a tome, `PRAGMA user_version` says its format. The statements are the one
declaration of the tables: SQLite says which columns they have, and `postgres_server` derives those of PostgreSQL.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import Any
from uuid import uuid4

import numpy as np
from sqlalchemy import Connection

from tomewise.errors import StoreError
from tomewise.store.sql.row_values import Misfit, decode_object, decode_plain

APPLICATION_ID = 0x746F6D65  # "tome"
FORMAT = 8  # of a tome; no other one is read before the first release
TABLE_STATEMENTS = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- The folder is the one that was given to `add`; empty if none was.
CREATE TABLE documents (key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
  source TEXT NOT NULL, digest TEXT NOT NULL, characters INTEGER NOT NULL, text TEXT NOT NULL,
  metadata TEXT NOT NULL DEFAULT '{}', folder TEXT NOT NULL DEFAULT '');
-- Every text of every layer; passages alone have a document, by its key, and a place in it. A key is never used again,
-- so a value cached under a key stays correct.
CREATE TABLE nodes (key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, layer TEXT NOT NULL,
  level INTEGER NOT NULL, position INTEGER NOT NULL, document INTEGER, start INTEGER, "end" INTEGER,
  text TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX nodes_layer ON nodes (layer);
CREATE INDEX nodes_document ON nodes (document) WHERE document IS NOT NULL;
-- Pairs of node keys, grouped by space: what a node was made from, the ends of a fact, synonyms.
CREATE TABLE edges (key INTEGER PRIMARY KEY AUTOINCREMENT, space TEXT NOT NULL, a INTEGER NOT NULL,
  b INTEGER NOT NULL, weight REAL NOT NULL);
CREATE UNIQUE INDEX edges_forward ON edges (a, space, b);
CREATE INDEX edges_backward ON edges (b, space);
CREATE INDEX edges_space ON edges (space);
CREATE TABLE vectors (space TEXT NOT NULL, key INTEGER NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (space, key));
CREATE INDEX vectors_key ON vectors (key);
-- A random number for each space of vectors or edges, new with every change. Cached arrays are checked against it.
-- `documents` has such a number too, for the ids, sources, folders and metadata of the documents.
CREATE TABLE spaces (space TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
-- Which nodes a layer has processed, and why it could not process others; the reason is empty for what it processed.
CREATE TABLE intake (layer TEXT NOT NULL, node INTEGER NOT NULL, failure TEXT NOT NULL,
  PRIMARY KEY (layer, node)) WITHOUT ROWID;
CREATE INDEX intake_node ON intake (node);
-- Ids of nodes that were removed after a layer had taken them in, until the next build of that layer.
CREATE TABLE removals (layer TEXT NOT NULL, node TEXT NOT NULL, PRIMARY KEY (layer, node)) WITHOUT ROWID;
CREATE TABLE builds (layer TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
-- `since` is the mark under which the call was repeated; empty for most.
CREATE TABLE calls (key TEXT PRIMARY KEY, role TEXT NOT NULL, model TEXT NOT NULL, reply TEXT NOT NULL,
  since TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE TABLE traces (key INTEGER PRIMARY KEY AUTOINCREMENT, asked TEXT NOT NULL, question TEXT NOT NULL,
  record TEXT NOT NULL);
-- What is known of a series of questions: the turns, and the working memory.
CREATE TABLE sessions (name TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
"""
_WORDS = """
CREATE VIRTUAL TABLE lexical USING fts5(text, content='', tokenize='porter unicode61 remove_diacritics 2');
"""
_OBJECTS = "metadata", "data", "record"  # the columns of texts that are JSON objects, in any table
OBJECT = "OBJECT"  # their kind
_TYPES: Mapping[str, tuple[type, ...]] = {
    "TEXT": (str,),
    "INTEGER": (int,),
    "REAL": (int, float),
    "BLOB": (bytes,),
}
# The fields that layers read again, by table, each with its type and that of its items.
_FIELDS: Mapping[str, Mapping[str, tuple[type, type]]] = {
    "builds": {
        **dict.fromkeys(("model", "again"), (str, object)),
        **dict.fromkeys(("levels", "taken", "seen"), (int, object)),
        **dict.fromkeys(("replies", "dirt"), (dict, int)),
        "flags": (dict, dict),
        "writes": (list, str),
        "together": (list, int),
        **dict.fromkeys(("network", "published"), (dict, object)),
    },
    "nodes": {
        **dict.fromkeys(("head", "relation", "tail", "description", "name", "type", "entity"), (str, object)),
        **dict.fromkeys(("document", "notes"), (str, object)),
        "keywords": (list, str),
        "place": (dict, object),
        "marks": (list, list),
    },
}
_COLUMNS = """
SELECT m.name, c.name, c.type, c."notnull", c.pk FROM sqlite_master m, pragma_table_info(m.name) c
WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'
"""
# What `ANALYZE` makes is left out.
_DECLARED = """
SELECT type, name, tbl_name, CAST(coalesce(sql, '') AS TEXT) FROM sqlite_master
WHERE coalesce(sql, '') NOT IN ('CREATE TABLE sqlite_stat1(tbl,idx,stat)',
  'CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)')
"""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. Its kind is its type in SQLite, or that its texts are JSON objects."""

    table: str
    kind: str
    is_optional: bool

    def decode(self, value: Any) -> Any:
        """The value of a row, a JSON object as its fields. Raises Misfit for one that this column cannot hold."""
        if self.kind == OBJECT:
            return self._decode_object(value)
        if type(value) not in _TYPES[self.kind] and not (value is None and self.is_optional):
            raise Misfit(self.table)
        if type(value) is bytes:  # a vector
            with decode_plain(self.table):
                numbers = np.frombuffer(value, np.float32)
            if not np.isfinite(numbers).all():
                raise Misfit(self.table)
        if type(value) is float and not isfinite(value):
            raise Misfit(self.table)
        return value

    def _decode_object(self, value: Any) -> dict[str, Any]:
        fields, known = decode_object(value, self.table), _FIELDS.get(self.table, {})
        for name in fields.keys() & known.keys():
            field, (kind, item_kind) = fields[name], known[name]
            items = field.values() if isinstance(field, dict) else field if isinstance(field, list) else ()
            if not isinstance(field, kind) or not all(isinstance(item, item_kind) for item in items):
                raise Misfit(self.table)
        return fields


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns by name, and the names of those that are its primary key."""

    name: str
    columns: dict[str, Column]
    keys: list[str]

    def decode(self, row: Sequence[Any]) -> dict[str, Any]:
        """The values of a row of all columns, by their names. Raises Misfit."""
        return {name: column.decode(value) for (name, column), value in zip(self.columns.items(), row, strict=True)}


def _read_tables() -> dict[str, Table]:
    tables: dict[str, Table] = {}
    with _open_blank(TABLE_STATEMENTS) as blank:
        for table, name, kind, is_needed, place in blank.execute(_COLUMNS):
            found = tables.setdefault(table, Table(table, {}, []))
            kind = OBJECT if name in _OBJECTS else kind
            found.columns[name] = Column(table, kind, is_optional=not (is_needed or place))
            if place:  # in the key: each table names its columns in the order of the key
                found.keys.append(name)
    return tables


@contextmanager
def _open_blank(statements: str) -> Iterator[sqlite3.Connection]:
    """A database in memory that declares what these statements do."""
    with closing(sqlite3.connect(":memory:")) as blank:
        blank.executescript(statements)
        yield blank


@cache
def _list_known() -> set[tuple[str, str, str, str]]:
    with _open_blank(TABLE_STATEMENTS + _WORDS) as blank:
        return _list_statements(blank)


def _list_statements(connection: sqlite3.Connection) -> set[tuple[str, str, str, str]]:
    """The kind, name, table and statement of all that a file declares; blanks, case and kinds of quotes are one."""
    return {
        (kind, name, table, re.sub(r"\s+", " ", statement, flags=re.ASCII).replace("'", '"').lower())
        for kind, name, table, statement in connection.execute(_DECLARED)
    }


TABLES = _read_tables()


def make_tables(connection: Connection) -> None:
    """Make the tables in a blank file, inside a write transaction, and give it its identity."""
    run_statements(connection, TABLE_STATEMENTS + _WORDS)
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT}")
    connection.exec_driver_sql("INSERT INTO meta (key, value) VALUES ('identity', ?)", (uuid4().hex,))


def run_statements(connection: Connection, script: str) -> None:
    """Run statements that each end a line."""
    for statement in script.split(";\n"):
        if statement.strip():
            connection.exec_driver_sql(statement)


def check_format(version: int, name: object) -> None:
    """Raise StoreError if a tome, which `name` names, has another format than this one."""
    if version != FORMAT:
        kind, remedy = ("a newer", "upgrade with `pip install -U tomewise`")
        if version < FORMAT:
            kind, remedy = ("an earlier", "add its documents to a new tome")
        raise StoreError(f"{name} was written by {kind} Tomewise (format {version}, this one has {FORMAT}): {remedy}")


def find_strange_statement(connection: sqlite3.Connection) -> str:
    """What a file declares otherwise than a tome does, such as "its view 'v' ..."; empty if nothing.

    Checks, computed columns, indexes, views, triggers and virtual tables of a stranger would run with any statement.
    """
    found, known = _list_statements(connection), _list_known()
    for kind, name, *_ in sorted(found - known, key=repr):
        return f"its {kind} {name!a} is not one of a tome"
    for kind, name, *_ in sorted(known - found):
        return f"it has no {kind} {name!a}"
    return ""
