"""Which sentences of the evidence speak to a question: by shared words first, by meaning among the best few."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log

from tomewise.language.extractive.salience import best, coverage, rarity, weigh
from tomewise.language.extractive.words import flat, terms
from tomewise.language.roles import Shown
from tomewise.language.sentences import Sentence, split_sentences
from tomewise.types import Embedder

SHORTLIST = 12  # sentences that are embedded: each costs some milliseconds
READ_AT_MOST = 160_000  # characters of evidence, as many as the window holds
_EMBEDDED = 400  # characters of a sentence that are embedded
_TITLE, _CONTEXT = 0.7, 0.35  # what a word in the title, and one in a neighbouring sentence, counts for
_WHOLE_NAME = 0.1  # for a line that has the whole of every name in the question, not just a surname
_MEANING = 0.5  # what the cosine with the question counts for, beside the words
_RUNNING = frozenset({"passage", "passages", "gists"})  # kinds of text that run on from sentence to sentence
_TELLING = 3  # different terms of a sentence that is not said twice by chance


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence of evidence. `label` is empty for a sentence of a note, which cannot be quoted.

    `running` where the text runs on from sentence to sentence, which sentences picked for a summary or a note do not.
    """

    sentence: Sentence
    label: str
    title: str
    bag: frozenset[str]
    heading: frozenset[str]
    around: frozenset[str]
    running: bool = True


@dataclass(slots=True)
class Ranked:
    """Lines and what they are worth to a question; `similarity` knows only the lines that were embedded.

    `best_by_words` is the highest score that words alone gave.
    """

    lines: list[Line]
    scores: list[float]
    weights: dict[str, float]
    best_by_words: float = 0.0
    similarity: dict[int, float] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)


def lines_of(evidence: Sequence[Shown], notes: Sequence[str] = ()) -> list[Line]:
    """The sentences of all evidence, then of all notes, each with the words of its surroundings.

    Pieces are read in an order of their own (running text first, then by what they say), so that the order in which
    they are shown decides nothing. Summaries and notes that quote repeat what stands elsewhere; a sentence that says
    something is taken once.
    """
    pieces = [(shown.label, shown.title, shown.text, shown.kind in _RUNNING) for shown in evidence]
    pieces.sort(key=lambda piece: (not piece[3], piece[2], piece[1], piece[0]))
    pieces += [("", "", note, False) for note in sorted(notes)]
    too_long = sum(len(text) for _, _, text, _ in pieces) > READ_AT_MOST
    share = READ_AT_MOST // len(pieces) if too_long else READ_AT_MOST
    lines: list[Line] = []
    for number, (label, title, text, running) in enumerate(pieces[:READ_AT_MOST]):
        sentences = split_sentences(text, source=number, limit=share)
        bags = [frozenset(terms(words_of(sentence))) for sentence in sentences]
        heading = frozenset(terms(title[:400]))
        for i, sentence in enumerate(sentences):
            near = bags[max(0, i - 1) : i] + bags[i + 1 : i + 2] if running else []
            around = heading.union(terms(sentence.speaker), *near)
            lines.append(Line(sentence, label, title, bags[i], heading, around, running))
    return _once(lines)


def _once(lines: list[Line]) -> list[Line]:
    """Each sentence of `_TELLING` terms or more where it stands first."""
    seen: set[str] = set()
    kept: list[Line] = []
    for line in lines:
        text = flat(line.sentence.text)
        if len(line.bag) < _TELLING or text not in seen:
            kept.append(line)
            seen.add(text)
    return kept


def words_of(sentence: Sentence) -> str:
    """What is said, without the name of who says it."""
    return sentence.text.removeprefix(f"{sentence.speaker}:") if sentence.speaker else sentence.text


def rank(asked: Sequence[str], lines: list[Line], names: Sequence[str] = ()) -> Ranked:
    """Lines scored by the share of the asked terms they hold, rare terms counting more, in [0, 1.1]."""
    idf = rarity([line.bag for line in lines])
    weights = weigh(asked, idf, log(1 + max(len(lines), 1)))
    named = [bag for bag in (frozenset(terms(name)) for name in names) if len(bag) > 1]
    scores = [_worth(line, weights, named) for line in lines]
    return Ranked(lines, scores, weights, max(scores, default=0.0), order=best(scores, len(scores)))


def _worth(line: Line, weights: dict[str, float], named: Sequence[frozenset[str]]) -> float:
    inside = coverage(weights, line.bag)
    under = coverage(weights, line.bag | line.heading)
    beside = coverage(weights, line.bag | line.around)
    whole = sum(name <= line.bag | line.heading for name in named) / len(named) if named else 0.0
    return inside + _TITLE * (under - inside) + _CONTEXT * (beside - under) + _WHOLE_NAME * whole


def compare(question: str, ranked: Ranked, embedder: Embedder, *, shortlist: int = SHORTLIST) -> None:
    """Mix the cosine with the question into the scores of the best few lines; one call of the embedder.

    Lines outside the shortlist keep their lexical part, so they stay below lines of equal words that were compared.
    """
    candidates = _various(ranked, shortlist)
    if not candidates or not question.strip():
        return
    texts = [question[:_EMBEDDED]]
    for i in candidates:
        line = ranked.lines[i]
        text = flat(line.sentence.text)[:_EMBEDDED]
        texts.append(f"{line.title[:100]}: {text}" if line.title else text)
    vectors = embedder.embed(texts)
    cosines = vectors[1:] @ vectors[0]
    ranked.similarity = {i: float(value) for i, value in zip(candidates, cosines, strict=True)}
    ranked.scores = [
        (1 - _MEANING) * score + _MEANING * max(ranked.similarity.get(i, 0.0), 0.0)
        for i, score in enumerate(ranked.scores)
    ]
    ranked.order = best(ranked.scores, len(ranked.scores))


def _various(ranked: Ranked, count: int) -> list[int]:
    """The best lines, no two of the same words: evidence of several layers repeats itself."""
    seen: set[frozenset[str]] = set()
    chosen: list[int] = []
    for i in ranked.order:
        if len(chosen) == count:
            break
        bag = ranked.lines[i].bag
        if bag and bag not in seen:
            seen.add(bag)
            chosen.append(i)
    return chosen


def in_telling_order(ranked: Ranked, chosen: Iterable[int]) -> list[int]:
    """The chosen lines: pieces of evidence by their best line, and within a piece in its own order."""
    first: dict[int, int] = {}
    for place, i in enumerate(ranked.order):
        first.setdefault(ranked.lines[i].sentence.source, place)
    return sorted(chosen, key=lambda i: (first[ranked.lines[i].sentence.source], i))
