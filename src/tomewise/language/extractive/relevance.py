"""Rank the sentences of the evidence for a question: by shared words, and the best few also by meaning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log

from tomewise.language.extractive.salience import coverage, find_best, rarity, vary, weigh
from tomewise.language.extractive.summarising import count_tokens
from tomewise.language.roles import Shown
from tomewise.text.sentences import Sentence, split_sentences
from tomewise.text.words import flatten, list_terms, make_bag
from tomewise.types import Embedder

RELEVANT = 0.15  # the least score of a sentence that helps with a question
_REPEATED = 0.8  # the share of a sentence's words from which on another sentence says the same
SHORTLIST = 12  # sentences that are embedded; each takes some milliseconds
READ_AT_MOST = 160_000  # characters of evidence that are read, as many as fit the window
_EMBEDDED = 400  # characters of a sentence that are embedded
_TITLE, _CONTEXT = 0.7, 0.35  # the weight of a word in the title, and of one in a neighbouring sentence
_WHOLE_NAME = 0.1  # added for a line with every name of the question in full, not only the surnames
_MEANING = 0.5  # the weight of the cosine with the question; the words have the rest
_RUNNING = frozenset({"passage", "gist"})  # kinds of running text, whose sentences follow one another
_TELLING = 3  # different terms from which a repeated sentence is not a coincidence


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence of evidence. `label` is empty for a sentence of a note, which cannot be quoted.

    `running` is True for a sentence of running text. Sentences picked for a summary or a note are none.
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
    """Lines with their scores for a question. `similarity` has only the lines that were embedded.

    `best_by_words` is the highest score from words alone.
    """

    lines: list[Line]
    scores: list[float]
    weights: dict[str, float]
    best_by_words: float = 0.0
    similarity: dict[int, float] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)


def read_lines(evidence: Sequence[Shown], notes: Sequence[str] = ()) -> list[Line]:
    """The sentences of all evidence, then of all notes, each with the words of its surroundings.

    Pieces are sorted first (running text before other text, then by text), so that the order of the evidence does not
    change the result. Summaries and notes often quote other evidence: a repeated sentence of several terms is left out.
    """
    pieces = [(shown.label, shown.title, shown.text, shown.kind in _RUNNING) for shown in evidence]
    pieces.sort(key=lambda piece: (not piece[3], piece[2], piece[1], piece[0]))
    pieces += [("", "", note, False) for note in sorted(notes)]
    too_long = sum(len(text) for _, _, text, _ in pieces) > READ_AT_MOST
    share = READ_AT_MOST // len(pieces) if too_long else READ_AT_MOST
    lines: list[Line] = []
    for number, (label, title, text, running) in enumerate(pieces[:READ_AT_MOST]):
        sentences = split_sentences(text, source=number, limit=share)
        bags = [make_bag(drop_speaker(sentence)) for sentence in sentences]
        heading = make_bag(title[:400])
        for i, sentence in enumerate(sentences):
            near = bags[max(0, i - 1) : i] + bags[i + 1 : i + 2] if running else []
            around = heading.union(list_terms(sentence.speaker), *near)
            lines.append(Line(sentence, label, title, bags[i], heading, around, running))
    return _drop_repeats(lines)


def _drop_repeats(lines: list[Line]) -> list[Line]:
    """The lines without repeated sentences. Sentences of fewer than `_TELLING` terms may repeat."""
    seen: set[str] = set()
    distinct: list[Line] = []
    for line in lines:
        text = flatten(line.sentence.text)
        if len(line.bag) < _TELLING or text not in seen:
            distinct.append(line)
            seen.add(text)
    return distinct


def drop_speaker(sentence: Sentence) -> str:
    """The sentence without the name of its speaker."""
    return sentence.text.removeprefix(f"{sentence.speaker}:") if sentence.speaker else sentence.text


def rank(query_terms: Sequence[str], lines: list[Line], names: Sequence[str] = ()) -> Ranked:
    """Lines with scores in [0, 1.1]: the share of the query's terms that each has, where rare terms count more."""
    idf = rarity([line.bag for line in lines])
    weights = weigh(query_terms, idf, log(1 + max(len(lines), 1)))
    long_names = [bag for bag in (make_bag(name) for name in names) if len(bag) > 1]
    scores = [_score(line, weights, long_names) for line in lines]
    return Ranked(lines, scores, weights, max(scores, default=0.0), order=find_best(scores, len(scores)))


def _score(line: Line, weights: dict[str, float], names: Sequence[frozenset[str]]) -> float:
    inside = coverage(weights, line.bag)
    with_title = coverage(weights, line.bag | line.heading)
    with_context = coverage(weights, line.bag | line.around)
    whole = sum(name <= line.bag | line.heading for name in names) / len(names) if names else 0.0
    return inside + _TITLE * (with_title - inside) + _CONTEXT * (with_context - with_title) + _WHOLE_NAME * whole


def compare(question: str, ranked: Ranked, embedder: Embedder, *, shortlist: int = SHORTLIST) -> None:
    """Add the cosine with the question to the scores of the best few lines, with one call of the embedder.

    Lines outside the shortlist get only the part for words, so they rank below embedded lines with equal words.
    """
    candidates = _choose_distinct(ranked, shortlist)
    if not candidates or not question.strip():
        return
    texts = [question[:_EMBEDDED]]
    for i in candidates:
        line = ranked.lines[i]
        text = flatten(line.sentence.text)[:_EMBEDDED]
        texts.append(f"{line.title[:100]}: {text}" if line.title else text)
    vectors = embedder.embed(texts)
    cosines = vectors[1:] @ vectors[0]
    ranked.similarity = {i: float(value) for i, value in zip(candidates, cosines, strict=True)}
    ranked.scores = [
        (1 - _MEANING) * score + _MEANING * max(ranked.similarity.get(i, 0.0), 0.0)
        for i, score in enumerate(ranked.scores)
    ]
    ranked.order = find_best(ranked.scores, len(ranked.scores))


def _choose_distinct(ranked: Ranked, count: int) -> list[int]:
    """The best lines, no two with the same words, since evidence of several layers repeats itself."""
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


def join_lines(lines: Iterable[Line]) -> str:
    """The sentences as one text, each once."""
    return " ".join(dict.fromkeys(flatten(line.sentence.text) for line in lines))


def is_known(bag: frozenset[str], known: Iterable[frozenset[str]]) -> bool:
    """Whether one known sentence has almost all words of this one."""
    return any(len(bag & sentence) >= _REPEATED * len(bag) for sentence in known)


def choose_varied(ranked: Ranked, among: Sequence[int], count: int, *, room: int | None = None) -> list[int]:
    """Good lines that differ from one another, in the order of choice: `count` at most, of `room` tokens together."""
    lengths = [0 if room is None else count_tokens(ranked.lines[i].sentence.text) for i in among]
    scores = [min(ranked.scores[i], 1.0) for i in among]
    bags = [ranked.lines[i].bag for i in among]
    return [among[i] for i in vary(scores, bags, lengths=lengths, room=room or 0, count=count)]


def sort_as_told(ranked: Ranked, chosen: Iterable[int]) -> list[int]:
    """The chosen lines: pieces of evidence in the order of their best lines, each with its lines in text order."""
    first: dict[int, int] = {}
    for position, i in enumerate(ranked.order):
        first.setdefault(ranked.lines[i].sentence.source, position)
    return sorted(chosen, key=lambda i: (first[ranked.lines[i].sentence.source], i))
