"""Questions to begin with: from the headings, titles and names of a tome, without a call of a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, zip_longest
from typing import Literal

from tomewise.language.fences import oneline
from tomewise.store.contract import Store
from tomewise.text.names import find_mentions
from tomewise.types import Noun, Passage

_DOCUMENTS = 8  # that are looked at, spread over the tome
_CHARACTERS = 60_000  # of each
_FEWEST = 2  # passages in which a name occurs
_MOST_NAMES = 12
_HEADING = re.compile(r"(?!(?:chapter|section|part|page|contents|index|introduction)\b)\W*\w.{3,70}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SuggestedQuestion(Noun):
    """A question to begin with, and what it was made from: names, a heading or a title."""

    question: str
    source: Literal["names", "heading", "title"]


def suggest_questions(store: Store, limit: int) -> list[SuggestedQuestion]:
    """Up to `limit` questions: about names, headings and titles in turn; equal tomes give equal questions."""
    records = store.documents()
    step = max(1, len(records) // _DOCUMENTS)
    chosen = records[::step][:_DOCUMENTS]
    passages = [list(store.passages(documents=[each.id], between=(0, _CHARACTERS)).values()) for each in chosen]
    titles = [each.title for each in chosen if each.title] if len(records) > 1 else []
    sources = (
        (SuggestedQuestion(question, "names") for question in _ask_names(list(chain(*passages)))),
        (SuggestedQuestion(f"What does “{each}” say?", "heading") for each in _find_headings(passages)),
        (SuggestedQuestion(f"What is “{oneline(each)[:80]}” about?", "title") for each in dict.fromkeys(titles)),
    )
    mixed = (question for turn in zip_longest(*sources) for question in turn if question is not None)
    return list({each.question: each for each in mixed}.values())[:limit]


def _find_headings(passages: list[list[Passage]]) -> Iterator[str]:
    """The innermost headings of the documents in turn, without numbers alone."""
    found = [dict.fromkeys(each.place.chapter[-1] for each in own if each.place.chapter) for own in passages]
    for heading in chain(*zip_longest(*found)):
        if heading and _HEADING.fullmatch(heading) and any(sign.isalpha() for sign in heading):
            yield oneline(heading)


def _ask_names(passages: list[Passage]) -> Iterator[str]:
    """Questions about the names in most passages, and about two of them that occur together most often."""
    seen = [{m.text for m in find_mentions(each.text) if m.kind == "name" and len(m.text) > 2} for each in passages]
    counts = Counter(name for names in seen for name in names)
    frequent = sorted((name for name in counts if counts[name] >= _FEWEST), key=lambda name: (-counts[name], name))
    names = frequent[:_MOST_NAMES]
    pairs = Counter(pair for found in seen for pair in combinations(sorted(found.intersection(names)), 2))
    for pair in sorted(pairs, key=lambda pair: (-pairs[pair], pair)):
        if not set(pair[0].split()) & set(pair[1].split()):  # two names of one person share a word
            yield f"How are {pair[0]} and {pair[1]} connected?"
            break
    for name in names:
        yield f"What do the texts say about {name}?"
