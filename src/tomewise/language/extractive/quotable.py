"""Cut passages into the sentences that may be quoted in place of an answer, each with what stands around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tomewise.language.extractive.words import flatten, list_terms
from tomewise.language.roles import Quotable
from tomewise.language.sentences import split_sentences

READ = 20_000  # characters of a passage that are read
_PREFIX = 120  # characters of title and headings
_LEAST = 3  # characters: a shorter sentence cannot be cited
_HEADING_WORDS = 12  # a line of its own with no more words and no full stop is a heading
_LINE = re.compile(r"[^\n]*\n?")
_MARKED_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_UNDERLINE = re.compile(r"\s*([=~^\"*#+-])\1{2,}\s*$")
_ITEM = re.compile(r"\s*(?:[-*+•–]|\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)])\s+(?=\S)")
_ROW = re.compile(r"\s*\|.*\|\s*$")
_RULE = re.compile(r"[\s|:=_*~+.-]*$")
_FIELD = re.compile(r"\s*[^\W\d_][\w /.’'-]{0,30}:\s+\S")
_MAIL = re.compile(r"\s*(?:From|To|Cc|Bcc|Date|Sent|Subject|Reply-To|Message-ID|Content-Type):\s", re.IGNORECASE)
# A caption, a line of markup, or a line of badges.
_MARKUP = re.compile(r"\s*(?:\[[^\]]*\]\s*$|\.\. |:\w+: |<[^>]+>|\[?!\[|\|[^|]+\||https?://\S+\s*$)")
_END = re.compile(r"[.!?…:;。！？][\"'”’)\]]*\s*$")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may be quoted.

    `rank` is that of its passage, from 0. `prefix` are the title and the outermost and the innermost heading. `bag` are
    the terms of the sentence, `prefix_bag` those of the prefix, `around` those of its neighbours and the file's name.
    """

    label: str
    text: str
    rank: int
    prefix: str
    bag: frozenset[str]
    prefix_bag: frozenset[str]
    around: frozenset[str]
    is_boilerplate: bool

    @property
    def is_question(self) -> bool:
        """Whether it asks itself."""
        return self.text.rstrip("\"'”’)] ").endswith("?")


def list_candidates(passages: Sequence[Quotable]) -> list[Candidate]:
    """The sentences of passages that come best first; one that several passages have stands once."""
    candidates: dict[str, Candidate] = {}
    for rank, passage in enumerate(passages):
        for candidate in _read_passage(passage, rank):
            candidates.setdefault(flatten(candidate.text), candidate)
    return list(candidates.values())


def _read_passage(passage: Quotable, rank: int) -> Iterator[Candidate]:
    text = passage.text[:READ]
    file = frozenset(list_terms(PurePosixPath(passage.document).stem.replace("_", " ")))
    spans = list(find_sentences(text))
    bags = [frozenset(list_terms(text[start:end])) for start, end in spans]
    for number, (start, end) in enumerate(spans):
        prefix = _write_prefix(passage, start)
        near = bags[max(0, number - 1) : number] + bags[number + 1 : number + 2]
        yield Candidate(
            label=passage.label,
            text=text[start:end],
            rank=rank,
            prefix=prefix,
            bag=bags[number],
            prefix_bag=frozenset(list_terms(prefix)),
            around=file.union(*near),
            is_boilerplate=bool(_MAIL.match(text[start:end]) or _MARKUP.match(text[start:end])),
        )


def _write_prefix(passage: Quotable, start: int) -> str:
    """The title, and the outermost and the innermost heading above this place, each once."""
    headings: Sequence[str] = next((path for at, path in reversed(passage.headings) if at <= start), ())
    return ", ".join(dict.fromkeys(filter(None, (passage.title, *headings[:1], *headings[-1:]))))[:_PREFIX]


def find_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where the sentences of a text begin and end, in order.

    Headings and rules are none. Each item of a list, row of a table and line of `name: value` is cut from the others,
    and the mark of an item is not part of its sentence.
    """
    for start, end, is_item in _find_blocks(text):
        block = text[start:end]
        if not is_item and _is_heading(block):
            continue
        for sentence in split_sentences(block):
            if len(sentence.text) >= _LEAST and any(map(str.isalnum, sentence.text)):
                yield start + sentence.start, start + sentence.end


def _find_blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """The pieces of a text that are split into sentences one by one, and whether each is an item of a list."""
    begun: int | None = None
    is_item = False
    lines = [(found.start(), found[0]) for found in _LINE.finditer(text) if found[0]]
    for number, (at, line) in enumerate(lines):
        underlined = number + 1 < len(lines) and _UNDERLINE.match(lines[number + 1][1])
        item = _ITEM.match(line)
        alone = bool(_MARKED_HEADING.match(line) or _ROW.match(line) or underlined) or _is_field(lines, number)
        if begun is not None and (item or alone or _RULE.match(line)):
            yield begun, at, is_item
            begun = None
        if _RULE.match(line) or _MARKED_HEADING.match(line) or underlined:
            continue
        if alone:
            yield at, at + len(line), False
        elif begun is None:
            begun, is_item = (at + item.end(), True) if item else (at, False)
    if begun is not None:
        yield begun, len(text), is_item


def _is_field(lines: Sequence[tuple[int, str]], number: int) -> bool:
    """Whether a line and one beside it have the form `name: value`, as in the head of a mail or of minutes."""
    if not _FIELD.match(lines[number][1]) or _END.search(lines[number][1]):
        return False
    beside = [lines[near][1] for near in (number - 1, number + 1) if 0 <= near < len(lines)]
    return any(map(_FIELD.match, beside))


def _is_heading(block: str) -> bool:
    """Whether a block is a short line that is neither a sentence nor a field."""
    line = block.strip()
    if "\n" in line or _ROW.match(line) or _FIELD.match(line) or _END.search(line):
        return False
    return len(line.split()) <= _HEADING_WORDS and not any(mark in line for mark in ";=|")
