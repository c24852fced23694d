"""The tables of a tome, and the statements that make them in an SQLite file.

`PRAGMA application_id` marks a file as a tome, `PRAGMA user_version` says its format. `TABLES` describes the tables for
both databases.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from hashlib import sha256
from typing import Any

from sqlalchemy import Column, Connection, MetaData, Table

from tomewise.errors import StoreError
from tomewise.store.sql.row_values import RowObject, RowValue, RowVector

APPLICATION_ID = 0x746F6D65  # "tome"

TABLES = MetaData()
_TEXT, _WHOLE = "a text", "a whole number"  # the kinds of most columns

# The fields that layers read again, each with its type and that of its items.
_BUILD = (
    *((name, str, str) for name in ("model", "again")),
    *((name, int, int) for name in ("levels", "taken", "seen")),
    *((name, dict, int) for name in ("replies", "fallbacks", "dirt")),
    *(("writes", list, str), ("together", list, int), ("network", dict, object)),
)
_NODE = (
    *((name, str, str) for name in ("head", "relation", "tail", "description", "name", "type", "entity", "document")),
    *((name, str, str) for name in ("notes", "drift")),
    *(("keywords", list, str), ("place", dict, object), ("marks", list, list)),
)


def _make_table(name: str, kinds: Mapping[str, str | RowValue], *, keys: int = 1) -> Table:
    """A table with columns of these kinds, the first of which are its primary key."""
    columns: list[Column[Any]] = []
    for place, (each, kind) in enumerate(kinds.items()):
        value = RowValue(kind) if isinstance(kind, str) else kind
        value.table = name
        columns.append(Column(each, value, primary_key=place < keys))
    return Table(name, TABLES, *columns)


meta = _make_table("meta", {"key": _TEXT, "value": _TEXT})

documents = _make_table(
    "documents",
    {
        "key": _WHOLE,
        "id": _TEXT,
        "title": _TEXT,
        "source": _TEXT,
        "digest": _TEXT,
        "characters": _WHOLE,
        "text": _TEXT,
        "metadata": RowObject(),
        "folder": _TEXT,  # that was given to `add`; empty if none was
    },
)

# Every text of every layer. A key is never used again, so a value cached under a key stays correct.
nodes = _make_table(
    "nodes",
    {
        "key": _WHOLE,
        "id": _TEXT,
        "layer": _TEXT,
        "level": _WHOLE,
        "position": _WHOLE,
        "document": RowValue(_WHOLE, is_optional=True),  # key of the document; passages only
        "start": RowValue(_WHOLE, is_optional=True),
        "end": RowValue(_WHOLE, is_optional=True),
        "text": _TEXT,
        "data": RowObject(_NODE),
    },
)

# Pairs of node keys, grouped by space: what a node was made from, the ends of a fact, synonyms.
edges = _make_table("edges", {"key": _WHOLE, "space": _TEXT, "a": _WHOLE, "b": _WHOLE, "weight": "a number"})

vectors = _make_table("vectors", {"space": _TEXT, "key": _WHOLE, "vector": RowVector()}, keys=2)

# A random number for each space of vectors or edges, new with every change. Cached arrays are checked against it.
# `documents` has such a number too, for the ids, sources, folders and metadata of the documents.
spaces = _make_table("spaces", {"space": _TEXT, "version": _WHOLE})

# Which nodes a layer has processed, and why it could not process others; the reason is empty for what it processed.
intake = _make_table("intake", {"layer": _TEXT, "node": _WHOLE, "failure": _TEXT}, keys=2)

# Ids of nodes that were removed after a layer had taken them in, until the next build of that layer.
removals = _make_table("removals", {"layer": _TEXT, "node": _TEXT}, keys=2)

builds = _make_table("builds", {"layer": _TEXT, "record": RowObject(_BUILD)})

# `since` is the mark under which the call was repeated; empty for most.
calls = _make_table("calls", {"key": _TEXT, "role": _TEXT, "model": _TEXT, "reply": _TEXT, "since": _TEXT})

traces = _make_table("traces", {"key": _WHOLE, "asked": _TEXT, "question": _TEXT, "record": RowObject()})

# What is known of a series of questions: the turns, and the working memory.
sessions = _make_table("sessions", {"name": _TEXT, "record": RowObject()})

FORMAT = 6  # of a tome; no other one is read before the first release
_STATEMENTS = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
  source TEXT NOT NULL, digest TEXT NOT NULL, characters INTEGER NOT NULL, text TEXT NOT NULL,
  metadata TEXT NOT NULL DEFAULT '{}', folder TEXT NOT NULL DEFAULT '');
CREATE TABLE nodes (key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, layer TEXT NOT NULL,
  level INTEGER NOT NULL, position INTEGER NOT NULL, document INTEGER, start INTEGER, "end" INTEGER,
  text TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX nodes_layer ON nodes (layer);
CREATE INDEX nodes_document ON nodes (document) WHERE document IS NOT NULL;
CREATE TABLE edges (key INTEGER PRIMARY KEY AUTOINCREMENT, space TEXT NOT NULL, a INTEGER NOT NULL,
  b INTEGER NOT NULL, weight REAL NOT NULL);
CREATE UNIQUE INDEX edges_forward ON edges (a, space, b);
CREATE INDEX edges_backward ON edges (b, space);
CREATE INDEX edges_space ON edges (space);
CREATE TABLE vectors (space TEXT NOT NULL, key INTEGER NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (space, key));
CREATE INDEX vectors_key ON vectors (key);
CREATE TABLE spaces (space TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE intake (layer TEXT NOT NULL, node INTEGER NOT NULL, failure TEXT NOT NULL,
  PRIMARY KEY (layer, node)) WITHOUT ROWID;
CREATE INDEX intake_node ON intake (node);
CREATE TABLE removals (layer TEXT NOT NULL, node TEXT NOT NULL, PRIMARY KEY (layer, node)) WITHOUT ROWID;
CREATE TABLE builds (layer TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE calls (key TEXT PRIMARY KEY, role TEXT NOT NULL, model TEXT NOT NULL, reply TEXT NOT NULL,
  since TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE TABLE traces (key INTEGER PRIMARY KEY AUTOINCREMENT, asked TEXT NOT NULL, question TEXT NOT NULL,
  record TEXT NOT NULL);
CREATE TABLE sessions (name TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE lexical USING fts5(text, content='', tokenize='porter unicode61 remove_diacritics 2');
"""
# Of what a file has after these statements, so that no opening has to run them to know that.
_DIGEST = "ffa3bedab00c9b4ac387da9b4a5d0d47e2425597aa90ffcf2cee9e88ad195723"
# What `ANALYZE` makes is left out.
_DECLARED = """
SELECT type, name, tbl_name, CAST(coalesce(sql, '') AS TEXT) FROM sqlite_master
WHERE coalesce(sql, '') NOT IN ('CREATE TABLE sqlite_stat1(tbl,idx,stat)',
  'CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)')
"""


def make_tables(connection: Connection) -> None:
    """Make the tables in a blank file, inside a write transaction."""
    run_statements(connection, _STATEMENTS)
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT}")


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
    found = _list_statements(connection)
    if sha256(repr(sorted(found, key=repr)).encode()).hexdigest() == _DIGEST:
        return ""
    with closing(sqlite3.connect(":memory:")) as blank:
        blank.executescript(_STATEMENTS)
        known = _list_statements(blank)
    for kind, name, *_ in sorted(found - known, key=repr):
        return f"its {kind} {name!a} is not one of a tome"
    for kind, name, *_ in sorted(known - found):
        return f"it has no {kind} {name!a}"
    return ""


def _list_statements(connection: sqlite3.Connection) -> set[tuple[str, str, str, str]]:
    """The kind, name, table and statement of all that a file declares; blanks, case and kinds of quotes are one."""
    return {
        (kind, name, table, re.sub(r"\s+", " ", statement, flags=re.ASCII).replace("'", '"').lower())
        for kind, name, table, statement in connection.execute(_DECLARED)
    }
