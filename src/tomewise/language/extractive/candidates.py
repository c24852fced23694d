"""Cut passages into the sentences that may be quoted in place of an answer, each with what stands around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tomewise.language.roles import Quotable
from tomewise.text.quotable import find_sentences
from tomewise.text.words import make_bag

READ = 20_000  # characters of a passage that are read
_PREFIX = 120  # characters of title and headings
_MAIL = re.compile(r"\s*(?:From|To|Cc|Bcc|Date|Sent|Subject|Reply-To|Message-ID|Content-Type):\s", re.IGNORECASE)
# A caption, a line of markup, or a line of badges: unlike a row of a table, `|name|` has no spaces inside the bars.
_MARKUP = re.compile(
    r"\s*(?:\[[^\]]*\]\s*$|\.\. |:\w+: |<[^>]+>|\[?!\[|\|[^|\s](?:[^|\n]*[^|\s])?\|(?:_|\s|$)|https?://\S+\s*$)"
)


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
    is_question: bool
    is_boilerplate: bool


def list_candidates(passages: Sequence[Quotable]) -> list[Candidate]:
    """The sentences of passages that come best first; one that several passages have stands once.

    Headings are candidates only where there is nothing else.
    """
    for with_headings in (False, True):
        candidates: dict[str, Candidate] = {}
        for rank, passage in enumerate(passages):
            for candidate in _read_passage(passage, rank, with_headings=with_headings):
                candidates.setdefault(" ".join(candidate.text.split()), candidate)
        if candidates:
            break
    return list(candidates.values())


def name_file(document: str) -> str:
    """The name of a document's file in words, without its folders and its ending."""
    return PurePosixPath(document).stem.replace("_", " ")


def _read_passage(passage: Quotable, rank: int, *, with_headings: bool) -> Iterator[Candidate]:
    text = passage.text[:READ]
    file = make_bag(name_file(passage.document))
    spans = list(find_sentences(text, with_headings=with_headings))
    bags = list(map(make_bag, (text[start:end] for start, end in spans)))
    for number, (start, end) in enumerate(spans):
        sentence = text[start:end]
        headings: Sequence[str] = next((path for at, path in reversed(passage.headings) if at <= start), ())
        named = dict.fromkeys(filter(None, (passage.title, *headings[:1], *headings[-1:])))
        prefix = ", ".join(named)[:_PREFIX]
        near = bags[max(0, number - 1) : number] + bags[number + 1 : number + 2]
        yield Candidate(
            label=passage.label,
            text=sentence,
            rank=rank,
            prefix=prefix,
            bag=bags[number],
            prefix_bag=make_bag(prefix),
            around=file.union(*near),
            is_question=sentence.rstrip("\"'”’)] ").endswith("?"),
            is_boilerplate=bool(_MAIL.match(sentence) or _MARKUP.match(sentence)),
        )
