"""Cut texts into sentences, each with what stands around it, and pick those that are nearest to a question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log
from pathlib import PurePosixPath

from tomewise.language.extractive.question_words import read_question
from tomewise.language.extractive.salience import coverage, find_best, vary
from tomewise.language.extractive.summarising import count_tokens
from tomewise.language.roles import Quotable, Shown
from tomewise.text.quotable import find_sentences
from tomewise.text.words import flatten, make_bag
from tomewise.types import Embedder

READ = 20_000  # characters of a passage that are read
_READ_IN_ALL = 10 * READ  # of which each of more passages has an equal share
_PREFIX = 120  # characters of title and headings
_MAIL = re.compile(r"\s*(?:From|To|Cc|Bcc|Date|Sent|Subject|Reply-To|Message-ID|Content-Type):\s", re.IGNORECASE)
# A caption, a line of markup, or a line of badges: unlike a row of a table, `|name|` has no spaces inside the bars.
_MARKUP = re.compile(
    r"\s*(?:\[[^\]]*\]\s*$|\.\. |:\w+: |<[^>]+>|\[?!\[|\|[^|\s](?:[^|\n]*[^|\s])?\|(?:_|\s|$)|https?://\S+\s*$)"
)
_REPEATED = 0.8  # the share of a sentence's words from which on another sentence says the same
_COMPARED, _EMBEDDED = 60, 12  # sentences with most words of a question: that are read again, and that are embedded
_SENTENCE, _QUESTION = 400, 400  # characters of each that are embedded
_LEAST, _OF_BEST = 0.15, 0.6  # the least score of a sentence that helps, and its least share of the best one's
_PREFIXED, _AROUND = 0.7, 0.35  # the weight of a word in the prefix, and of one in a neighbouring sentence


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


def list_candidates(passages: Sequence[Quotable | Shown]) -> list[Candidate]:
    """The sentences of passages in their order; one that several passages have stands once.

    Headings are candidates only where there is nothing else.
    """
    for with_headings in (False, True):
        candidates: dict[str, Candidate] = {}
        for rank, passage in enumerate(passages):
            limit = min(READ, _READ_IN_ALL // len(passages))
            for candidate in _read_passage(passage, rank, limit, with_headings=with_headings):
                candidates.setdefault(flatten(candidate.text), candidate)
        if candidates:
            break
    return list(candidates.values())


def name_file(document: str) -> str:
    """The name of a document's file in words, without its folders and its ending."""
    return PurePosixPath(document).stem.replace("_", " ")


def _read_passage(passage: Quotable | Shown, rank: int, limit: int, *, with_headings: bool) -> Iterator[Candidate]:
    text = passage.text[:limit]
    file = make_bag(name_file(passage.document))
    marks = passage.headings if isinstance(passage, Quotable) else ()
    spans = list(find_sentences(text, with_headings=with_headings))
    bags = list(map(make_bag, (text[start:end] for start, end in spans)))
    for number, (start, end) in enumerate(spans):
        sentence = text[start:end]
        headings: Sequence[str] = next((path for at, path in reversed(marks) if at <= start), ())
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


def measure_shares(terms: Sequence[str], candidates: Sequence[Candidate]) -> Iterator[tuple[float, float, float]]:
    """For each candidate the share of the terms that is in it, what its prefix adds, and what is around adds.

    Rare terms count more.
    """
    holders = {term: sum(term in each.bag for each in candidates) for term in terms}
    weights = {term: log(1 + (len(candidates) + 1) / (count + 0.5)) for term, count in holders.items()}
    for each in candidates:
        inside = coverage(weights, each.bag)
        prefixed = coverage(weights, each.bag | each.prefix_bag)
        yield inside, prefixed - inside, coverage(weights, each.bag | each.prefix_bag | each.around) - prefixed


def write_prefixed(candidate: Candidate, longest: int) -> str:
    """What is embedded of a sentence: its prefix, then its words."""
    return (f"{candidate.prefix}: " if candidate.prefix else "") + flatten(candidate.text)[:longest]


@dataclass(frozen=True, slots=True)
class Picked:
    """A sentence with its place among the candidates, and its score in [0, 1]."""

    place: int
    candidate: Candidate
    score: float


def pick(
    question: str,
    candidates: Sequence[Candidate],
    count: int,
    embedder: Embedder | None = None,
    *,
    known: Iterable[str] = (),
    room: int = 0,
) -> list[Picked]:
    """Up to `count` sentences that help with a question and differ from one another, the best first.

    With an embedder, meaning counts as much as words. None says what a `known` sentence says. With `room`, all have so
    many tokens together.
    """
    parsed = read_question(question)
    shares = measure_shares(parsed.terms, candidates)
    words = [inside + _PREFIXED * prefixed + _AROUND * around for inside, prefixed, around in shares]
    bags = list(map(make_bag, known))
    best = [
        place
        for place in find_best(words, _COMPARED)
        if (bag := candidates[place].bag) and not any(len(bag & each) >= _REPEATED * len(bag) for each in bags)
    ]
    scores = [words[place] for place in best]
    if embedder is not None and best and question.strip():
        best = best[:_EMBEDDED]
        texts = [write_prefixed(candidates[place], _SENTENCE) for place in best]
        vectors = embedder.embed([question[:_QUESTION], *texts])
        cosines = vectors[1:] @ vectors[0]
        scores = [(words[place] + max(float(cosine), 0.0)) / 2 for place, cosine in zip(best, cosines, strict=True)]
    least = max(_LEAST, _OF_BEST * max(scores, default=0.0))
    varied = vary(
        [score if score >= least else 0.0 for score in scores],
        [candidates[place].bag for place in best],
        lengths=[count_tokens(candidates[place].text) if room else 0 for place in best],
        room=room,
        count=count,
    )
    return [Picked(best[i], candidates[best[i]], scores[i]) for i in varied]


def join(picked: Iterable[Picked]) -> str:
    """The sentences as one text, in the order of the texts."""
    return " ".join(flatten(each.candidate.text) for each in sorted(picked, key=lambda each: each.place))
