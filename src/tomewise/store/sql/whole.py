"""All rows of a tome as JSON lines, and back: what a tome holds moves to another file, keys and replies included.

The first line names the format of the tome; each further line is a row of one table, tables and rows in one order, so
that equal tomes give equal lines. The identity of the file, the numbers of its spaces and its full-text index belong to
one file alone: they are left out, and made again. Lines may come from anyone. So they are checked as a tome is.
"""

from __future__ import annotations

import json
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from sqlalchemy.exc import DBAPIError

from tomewise.errors import StoreError
from tomewise.store.export import write_line
from tomewise.store.sql.damage import find_damage
from tomewise.store.sql.dialects import Transaction
from tomewise.store.sql.node_rows import INDEXED, list_indexed_texts
from tomewise.store.sql.row_values import Misfit, decode_object, encode_json, find_cause
from tomewise.store.sql.schema import FORMAT, OBJECT, TABLES, Column, check_format

_HEADER = "tomewise"  # the key of the first line
_SEQUENCES = "sqlite_sequence"  # the last keys, none of which is used again
_NEEDED = "embedder", "dimensions", "passage_tokens", "overlap"  # the settings of a tome with documents
_FIELDS = "fields"  # the setting with the fields of documents by path
_BATCH = 1_000  # rows written at a time
_PASSAGES = f"{INDEXED} WHERE nodes.key >= :first ORDER BY nodes.key LIMIT :most"
_SPACES, _OWN = "spaces", ("meta", "identity")  # the table, and the setting, that belong to one file alone
_USED_SPACES = """SELECT DISTINCT 'vectors/' || space FROM vectors UNION SELECT DISTINCT 'edges/' || space FROM edges
UNION SELECT 'documents' FROM documents"""


def write_lines(transaction: Transaction) -> Iterator[str]:
    """All rows of an open tome. Raises Misfit for a damaged one."""
    yield json.dumps({_HEADER: FORMAT})
    for table in TABLES.values():
        for row in transaction.read_rows(table, f"ORDER BY {', '.join(table.keys)}"):
            values = table.decode(row)
            if table.name != _SPACES and (table.name, values.get("key")) != _OWN:
                yield _write_row(table.name, values)
    for name, last in transaction.read_last_keys():
        yield _write_row(_SEQUENCES, {"name": name, "seq": last})


def _write_row(table: str, row: Mapping[str, Any]) -> str:
    values = {name: b64encode(value).decode() if isinstance(value, bytes) else value for name, value in row.items()}
    return write_line({"table": table, **values})


def fill(transaction: Transaction, lines: Iterable[bytes]) -> None:
    """Make a tome of a blank file, inside a write transaction. Raises StoreError for lines that make no sound tome."""
    numbered = enumerate(lines, start=1)
    _check_header(next(numbered, (1, b""))[1])
    transaction.make_tables()
    for table, group in groupby(_read_rows(numbered), key=lambda found: found[1]):
        _insert(transaction, table, group)
    _renew_spaces(transaction)
    problem = find_damage(transaction)
    if not problem and (setting := _find_wrong_setting(transaction)):
        problem = f"the table meta has no usable {setting!r}: export the tome again"
    if problem:
        raise StoreError(f"it is damaged: {problem}")
    _index_passages(transaction)


def _find_wrong_setting(transaction: Transaction) -> str:
    """Which setting is not one that documents can be read and added with; empty if all are."""
    settings = dict(transaction.fetch("SELECT meta.key, meta.value\nFROM meta"))
    missing = [name for name in _NEEDED if not settings.get(name)]
    if missing and transaction.read_value("SELECT key FROM documents LIMIT 1") is not None:
        return missing[0]
    try:
        stated = decode_object(settings.get(_FIELDS) or "{}", "meta").values()
        values = [value for fields in stated for value in fields.values()]
    except (Misfit, AttributeError):
        return _FIELDS
    items = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return "" if all(isinstance(item, str | int | float) for item in items) else _FIELDS


def _check_header(line: bytes) -> None:
    header = _decode(line, 1)
    version = header.get(_HEADER)
    if type(version) is not int or version < 1 or len(header) > 1:
        raise StoreError("its first line does not name the format of a tome: name what `tome export --all` wrote")
    check_format(version, "it")


def _decode(line: bytes, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"its line {number} is not JSON ({error}): export the tome again") from None
    if not isinstance(row, dict):
        raise StoreError(f"its line {number} is not a row of a table: export the tome again")
    return row


def _read_rows(numbered: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """The number of the line, the table and the values of each row. Raises StoreError for one that no table has."""
    kinds: dict[str, Mapping[str, Column | None]] = {name: table.columns for name, table in TABLES.items()}
    kinds[_SEQUENCES] = {"name": None, "seq": None}
    del kinds[_SPACES]
    for number, line in numbered:
        row = _decode(line, number)
        table = row.pop("table", None)
        if (
            not isinstance(table, str)
            or table not in kinds
            or row.keys() != kinds[table].keys()
            or (table, row.get("key")) == _OWN
        ):
            raise StoreError(f"its line {number} is not a row of a table of a tome: export the tome again")
        try:
            yield number, table, {name: _read_value(value, kinds[table][name], name) for name, value in row.items()}
        except (ValueError, TypeError, RecursionError) as error:
            raise StoreError(f"its line {number} holds a wrong value ({error}): export the tome again") from None


def _read_value(value: Any, column: Column | None, name: str) -> Any:
    kind = column.kind if column is not None else ""
    if kind == "BLOB":
        return b64decode(value, validate=True)
    if kind == OBJECT and isinstance(value, dict):
        return encode_json(value)
    if kind == OBJECT or isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise TypeError(f"{type(value).__name__} as its {name}")
    return value


def _insert(transaction: Transaction, table: str, rows: Iterable[tuple[int, str, dict[str, Any]]]) -> None:
    for _, batch in groupby(enumerate(rows), key=lambda pair: pair[0] // _BATCH):
        found = [row for _, row in batch]
        names = list(found[0][2])
        values = [tuple(row[name] for name in names) for _, _, row in found]
        try:
            if table == _SEQUENCES:
                transaction.set_last_keys([(row["name"], row["seq"]) for _, _, row in found])
            else:
                transaction.insert_rows(table, values, names)
        except (DBAPIError, ValueError, OverflowError) as error:
            where, reason = f"the lines {found[0][0]} to {found[-1][0]}", find_cause(error)
            raise StoreError(f"{where} hold a row that cannot be written ({reason}): export the tome again") from None


def _renew_spaces(transaction: Transaction) -> None:
    found = transaction.run(_USED_SPACES).all()
    if found:
        transaction.upsert(_SPACES, [{"space": space, "version": secrets.randbits(62) + 1} for (space,) in found])


def _index_passages(transaction: Transaction) -> None:
    first = -(1 << 63)
    while passages := list_indexed_texts(transaction.fetch(_PASSAGES, first=first, most=_BATCH)):
        transaction.index_words(passages)
        first = passages[-1][0] + 1
