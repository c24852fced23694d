"""Texts and queries as full-text search takes them, for all scripts."""

from __future__ import annotations

import re
import unicodedata

# Scripts written without spaces (Thai to Khmer, kana, Han) are indexed character by character, because an index would
# treat a whole run as one word.
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


def add_spaces(text: str) -> str:
    """The text in the form that is indexed: spaces around each character of a script written without spaces."""
    return _UNSPACED.sub(r" \1 ", unicodedata.normalize("NFC", text))


def find_terms(query: str) -> list[str]:
    """The words of a query to look for, at most 64. Common words count only if the query has no other words."""
    words = list(dict.fromkeys(word.lower() for word in _WORD.findall(add_spaces(query))))
    return ([word for word in words if word not in _COMMON] or words)[:64]


def make_phrase(word: str) -> str:
    """A word as the index holds it: a run of a script without spaces is its characters side by side."""
    return " ".join(_WORD.findall(add_spaces(word)))
