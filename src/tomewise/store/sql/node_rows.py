"""Passages and nodes from the rows of the table `nodes`; texts and words for full-text search, for all scripts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tomewise.store.sql.row_values import Fields, Misfit
from tomewise.types import Node, Passage, Place
from tomewise.types.place import read_marks, read_plain_data

_NOWHERE = Place()
# Scripts written without spaces (Thai to Khmer, kana, Han) are indexed character by character, because an index would
# treat a whole run as one word.
_UNSPACED = re.compile(
    r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff])"
)
_WORD = re.compile(r"[^\W_]+")
# A term that may be a code: letters and figures, also with signs between them.
_TERM = re.compile(r"[^\W_]+(?:[-–./:_#][^\W_]+)*")
_LONGEST = 32  # characters of a code
# Letters and figures that are not a code: a day, a decade, an hour, an amount, also before a word ("19th-century").
_AMOUNT = re.compile(
    r"\d+(?:[.:]\d+)?(?i:st|nd|rd|th|e|er|s|h|am|pm|[kcmµn]?[mgl]|k|[kmgt]i?b|[kmgt]?hz|k?w|x)?"
    r"(?:/[a-z]|(?:[-–][a-z]{3,})*)"
)
# A number behind a word that stands before it in a code too: "ppr 9087". Of years there are too many.
_NUMBERED = re.compile(r"(?<!\w)([^\W\d_]{1,6}) (?!(?:1\d|20)\d\d(?!\d))(\d{4,12})(?!\w)")
_QUOTED = re.compile('[“„"«]([^“”„"«»\n]{2,100})[”“"»]')
_COMMON = frozenset(
    "a an and are as at be been but by did do does for from had has have he her his how i if in is it its me my not of "
    "on or our she so than that the their them then there these they this to was we were what when where which who "
    "whom whose why will with would you your".split()
)
# What `list_indexed_texts` needs of the passages.
INDEXED = """SELECT nodes.key, documents.title, nodes.data, nodes.text
FROM nodes JOIN documents ON documents.key = nodes.document"""


def make_passage(row: dict[str, Any]) -> Passage:
    """The passage of a row, from which `data` is taken. Raises Misfit for one without a place in its document."""
    if row["start"] is None or row["end"] is None:
        raise Misfit("nodes")
    return Passage(**_read_passage_data(row.pop("data")), **row)


def make_node(row: dict[str, Any]) -> Node:
    """The node of a row, without its sources."""
    return Node(**{**row, "data": Fields(row["data"], row["id"])}, sources=())


def _join_indexed_text(title: str, data: Mapping[str, Any], text: str) -> str:
    """The text under which full-text search finds a passage: title, headings and speaker, then its own text.

    It depends on nothing but the rows of the passage and of its document, since the index forgets a passage only if it
    gets the same text again (see `Transaction.forget_words`). Headings that are part of the text are not repeated.
    """
    place: Place = _read_passage_data(data).get("place", _NOWHERE)
    headings = [words for words in (*place.chapter, place.speaker) if words and words != title and words not in text]
    joined = [code for code in map(_join, _list_codes(text)) if code]
    return add_spaces("\n".join([*([title] if title else []), *headings, text, *joined]))


def list_indexed_texts(rows: Iterable[Sequence[Any]]) -> list[tuple[int, str]]:
    """The key and the indexed text of each passage that the query INDEXED finds."""
    return [(key, _join_indexed_text(title, data, text)) for key, title, data, text in rows]


def _read_passage_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a passage from its column `data`. Raises Misfit."""
    try:
        return {"place": read_plain_data(data.get("place", {})), "marks": read_marks(data.get("marks", ()))}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Misfit("nodes") from None


def add_spaces(text: str) -> str:
    """The text in the form that is indexed: spaces around each character of a script written without spaces."""
    return _UNSPACED.sub(r" \1 ", unicodedata.normalize("NFKC", text))


def find_terms(query: str) -> list[str]:
    """The words of a query to look for, at most 64. Common words count only if the query has no other words."""
    words = list(dict.fromkeys(word.lower() for word in _WORD.findall(add_spaces(query))))
    return ([word for word in words if word not in _COMMON] or words)[:64]


def find_exact(query: str) -> list[list[str]]:
    """What a query names to the letter, as the index holds it: its codes, with and without their signs, at most 8; and
    what stands between quotation marks."""
    text = unicodedata.normalize("NFKC", query)
    codes = [*_list_codes(text), *(" ".join(each) for each in _NUMBERED.findall(text))]
    quoted = [each for each in _QUOTED.findall(text) if set(each.lower().split()) - _COMMON]
    forms = [[make_phrase(code), _join(code)] for code in codes] + [[make_phrase(each)] for each in quoted]
    return [[form.lower() for form in each if form] for each in forms if each[0]][:8]


def _list_codes(text: str) -> list[str]:
    """The terms that mix letters and figures, each once."""
    found = dict.fromkeys(term for term in _TERM.findall(text) if len(term) <= _LONGEST)
    return [
        each
        for each in found
        if any(map(str.isdigit, each)) and any(map(str.isalpha, each)) and not _AMOUNT.fullmatch(each)
    ]


def _join(code: str) -> str:
    """A code without its signs; empty if it has none."""
    joined = "".join(_WORD.findall(code))
    return "" if joined == code else joined


def make_phrase(word: str) -> str:
    """A word as the index holds it: a run of a script without spaces is its characters side by side."""
    return " ".join(_WORD.findall(add_spaces(word)))
