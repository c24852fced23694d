"""Tell the lines that are records from those of a sentence that goes on: rows, messages, items of a statement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, zip_longest

ROW = re.compile(r"\A\s*\|.*\|\s*\Z")  # of a grid
_MONTH = r"(?:Jan|Feb|Ma|Mä|Apr|Jun|Jul|Aug|Sep|O[ck]t|Nov|De[cz])[^\W\d_]{0,8}"
_DAY = rf"\d{{1,4}}[-./]\d{{1,2}}[-./]\d{{1,4}}|\d{{1,2}}:\d\d|\d{{1,2}}\.? {_MONTH}\b|{_MONTH} \d{{1,2}}\b"
# A line that opens with a date or a time: a message, or an entry of a journal, a log or an account.
STAMPED = re.compile(rf"\A\s*[\u200e\u200f]?[\[(<]?(?:{_DAY})")
_KINDS = (
    STAMPED,
    ROW,
    re.compile(r"\A[^:;\n]{1,100}: [^;\n]*; [^:;\n]{1,100}: "),  # a row that names its columns
    re.compile(r"\A\s*+\S[^\t\n]*\t\s*\S"),
    re.compile(r"\A\s*+\S++(?: \S++)*+ {3,}\S"),  # columns
    re.compile(r"\A.*\d[.,]\d\d\W{0,2}\Z"),  # an amount at the end
)

_FEWEST = 4  # lines for each one with a stamp


def find_records(lines: Sequence[str]) -> list[re.Pattern[str] | None]:
    """What makes a record of each line, if the next or the last line before or behind it is of the same kind."""
    filled = [number for number, line in enumerate(lines) if line.strip()]
    kinds = [{kind for kind in _KINDS if kind.match(lines[number][:1_000])} for number in filled]
    stamped = sum(STAMPED in each for each in kinds)
    stamps = {STAMPED} if stamped > 1 and _FEWEST * stamped >= len(filled) else set()  # a message may have many lines
    found: list[re.Pattern[str] | None] = [None] * len(lines)
    for at, number in enumerate(filled):
        beside = set().union(*kinds[max(0, at - 1) : at], *kinds[at + 1 : at + 2], stamps)
        found[number] = next((kind for kind in _KINDS if kind in kinds[at] & beside), None)
    return found


def has_records(text: str) -> bool:
    """Whether most of the lines of a text are records, so that it is cut at the ends of lines alone."""
    lines = text.split("\n")
    return 2 * sum(kind is not None for kind in find_records(lines)) > len(lines) > 1


def fold_lines(text: str) -> str:
    """The text with one blank for each run of white space, and the line breaks between records."""
    lines = [line for line in text.split("\n") if line.strip()]
    records = [kind is not None for kind in find_records(lines)]
    lines = [" ".join(line.split()) for line in lines]
    gaps = ["\n" if any(records[at : at + 2]) else " " for at in range(len(lines) - 1)]
    return "".join(chain.from_iterable(zip_longest(lines, gaps, fillvalue="")))
