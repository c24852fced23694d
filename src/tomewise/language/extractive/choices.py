"""Choosing among options: the one that the sentences about the question support best."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tomewise.language.extractive.question_words import ParsedQuestion
from tomewise.language.extractive.relevance import Ranked
from tomewise.language.extractive.salience import best, coverage, rarity, weigh
from tomewise.language.extractive.words import flat, terms
from tomewise.types import Embedder

_COMPARED = 12  # sentences compared with every option by meaning
# Beside words, by options made of MuSiQue's answers and QMSum's, and the odd-numbered questions on the sample story.
_MEANING = 3.0
_NAME = 4  # different terms of an option that may be a name; the words of a statement stand in many places
_STATED = 0.5
# There, and on the even-numbered ones, three quarters of the choices with such a lead are right, two fifths of others.
_CLEAR = 0.25
_OPTIONS = 60  # options that are compared
_EXCEPT = re.compile(r"\b(?:except|NOT|least likely|incorrect|untrue|false)\b")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The position of an option, the line that supports it, and by how much it leads before the next."""

    option: int
    line: int
    lead: float

    @property
    def clear(self) -> bool:
        """Whether the choice may be ventured where it could be declined."""
        return self.lead >= _CLEAR


def choose(question: ParsedQuestion, options: Sequence[str], ranked: Ranked, embedder: Embedder) -> Chosen:
    """The option that has most support; ties go to the first."""
    offered = list(options[:_OPTIONS])
    words, lines = _by_words(question, offered, ranked)
    meaning = _by_meaning(question, offered, ranked, embedder)
    names = all(len(set(terms(option))) <= _NAME for option in offered)
    share = 1.0 if names else _STATED
    sign = -1 if _EXCEPT.search(question.text) else 1
    scores = [sign * (share * word + _MEANING * near) for word, near in zip(words, meaning, strict=True)]
    order = best(scores, len(scores))
    lead = scores[order[0]] - scores[order[1]] if len(order) > 1 else 0.0
    return Chosen(order[0], lines[order[0]], lead)


def _by_words(question: ParsedQuestion, options: Sequence[str], ranked: Ranked) -> tuple[list[float], list[int]]:
    """For each option the best product of relevance and share of its own words, and the line where that is."""
    bags = [set(terms(option[:2000])) - set(question.terms) or set(terms(option[:2000])) for option in options]
    common = set.intersection(*bags) if len(bags) > 1 else set()
    scores, lines = [], []
    idf = rarity([line.bag for line in ranked.lines])
    for bag in bags:
        own = weigh(sorted(bag - common) or sorted(bag), idf, 3.0)
        most, where = 0.0, ranked.order[0]
        for i in ranked.order[:60]:
            line = ranked.lines[i]
            inside = coverage(own, line.bag)
            support = (0.25 + ranked.scores[i]) * (inside + 0.4 * (coverage(own, line.bag | line.around) - inside))
            if support > most:
                most, where = support, i
        scores.append(most)
        lines.append(where)
    return scores, lines


def _by_meaning(question: ParsedQuestion, options: Sequence[str], ranked: Ranked, embedder: Embedder) -> list[float]:
    """How close "question option" comes to the best lines (mean of two cosines) and to one of them with its neighbours.

    What a story tells is seldom told in one sentence.
    """
    closest = ranked.order[:_COMPARED]
    texts = [f"{question.text[:200]} {option[:200]}" for option in options]
    texts += [flat(ranked.lines[i].sentence.text)[:400] for i in closest]
    texts += [_surroundings(ranked, i) for i in closest]
    vectors = embedder.embed(texts)
    near = vectors[: len(options)] @ vectors[len(options) :].T
    found = []
    for row in near.tolist():
        alone, amid = sorted(row[: len(closest)], reverse=True)[:2], row[len(closest) :]
        found.append(sum(alone) / len(alone) + max(amid))
    return found


def _surroundings(ranked: Ranked, place: int) -> str:
    """A line with the one before and the one after it, where the text runs on."""
    line = ranked.lines[place]
    some = ranked.lines[max(0, place - 1) : place + 2] if line.running else [line]
    return " ".join(flat(one.sentence.text) for one in some if one.sentence.source == line.sentence.source)[:600]
