"""Full-text search: BM25 over stemmed words with SQLite's FTS5, for all scripts."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import Connection

from tomewise.store.sqlite.scope import select_passages
from tomewise.types import Scope

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Scripts written without spaces (Thai to Khmer, kana, Han) are indexed character by character, because FTS5 would treat
# a whole run as one word.
_UNSPACED = re.compile(
    r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff])"
)
_WORD = re.compile(r"[^\W_]+")
_COMMON = frozenset(
    "a an and are as at be been but by did do does for from had has have he her his how i if in is it its me my not of "
    "on or our she so than that the their them then there these they this to was we were what when where which who "
    "whom whose why will with would you your".split()
)
_HOLDERS = (
    "SELECT count(*), group_concat(CASE WHEN rowid IN (SELECT value FROM json_each(?)) THEN rowid END) "
    "FROM lexical WHERE lexical MATCH ?"
)
_SEARCH = (
    "SELECT rowid, -bm25(lexical) AS score FROM lexical WHERE lexical MATCH ? {is_within} "
    "ORDER BY score DESC, rowid LIMIT ?"
)


def add_spaces(text: str) -> str:
    """The text in the form that is indexed: spaces around each character of a script written without spaces."""
    return _UNSPACED.sub(r" \1 ", unicodedata.normalize("NFC", text))


def index(connection: Connection, rows: Sequence[tuple[int, str]]) -> None:
    """Index texts under node keys."""
    if rows:
        connection.exec_driver_sql(
            "INSERT INTO lexical (rowid, text) VALUES (?, ?)", [(key, add_spaces(text)) for key, text in rows]
        )


def forget(connection: Connection, rows: Sequence[tuple[int, str]]) -> None:
    """Remove texts from the index. The index does not store texts, so `rows` must be exactly what was indexed."""
    if rows:
        connection.exec_driver_sql(
            "INSERT INTO lexical (lexical, rowid, text) VALUES ('delete', ?, ?)",
            [(key, add_spaces(text)) for key, text in rows],
        )


def search(connection: Connection, query: str, limit: int, within: Scope | None = None) -> list[tuple[int, float]]:
    """The best node keys with their BM25 scores (higher is better). A text needs to contain only one of the words.

    Common words count only if the query has no other words. Only passages within the scope are found, if there is one.
    """
    words = list(dict.fromkeys(word.lower() for word in _WORD.findall(add_spaces(query))))
    terms = [word for word in words if word not in _COMMON] or words
    if not terms:
        return []
    match = " OR ".join(f'"{word}"' for word in terms[:64])
    test, values = ("", []) if within is None else select_passages(connection, within)
    # With the plus, SQLite tests the keys that match; without it, it would search once for each key within.
    is_within = f"AND +rowid IN ({test})" if test else ""
    found = connection.exec_driver_sql(_SEARCH.format(is_within=is_within), (match, *values, limit))
    return [(int(key), float(score)) for key, score in found]


def find_holders(
    connection: Connection, words: Iterable[str], among: NDArray[np.int64]
) -> list[tuple[int, NDArray[np.int64]]]:
    """For each word the number of texts that hold it, and those of `among` that do, ascending.

    A run of a script without spaces is held where its characters are side by side.
    """
    keys = json.dumps(among.tolist())
    found = []
    for word in words:
        parts = " ".join(_WORD.findall(add_spaces(word)))
        count, holders = (
            connection.exec_driver_sql(_HOLDERS, (keys, f'"{parts}"')).one() if parts else (0, None)  # '""' is an error
        )
        found.append((int(count), np.sort(np.array(holders.split(",") if holders else [], np.int64))))
    return found
