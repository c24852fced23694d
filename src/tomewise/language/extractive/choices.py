"""Choose among options: take the option that the sentences about the question support best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tomewise.language.extractive.option_support import MOST_OPTIONS, measure_words
from tomewise.language.extractive.question_words import ParsedQuestion, asks_for_opposite
from tomewise.language.extractive.relevance import Ranked
from tomewise.language.extractive.salience import find_best, rarity
from tomewise.text.words import flatten, list_terms
from tomewise.types import Embedder

_COMPARED = 12  # sentences that are compared with every option by meaning
# The weight of meaning beside words. Fitted on options made of MuSiQue's and QMSum's answers, and on the odd-numbered
# questions about the sample story.
_MEANING = 3.0
_NAME = 4  # most different terms of an option that may be a name; longer options are statements
_STATED = 0.5  # the weight of words for statements, whose words are in many lines
# On these questions and the even-numbered ones, 3/4 of the choices with such a lead are right, and 2/5 of the others.
_CLEAR = 0.25
_READ = 60  # sentences whose words are compared


@dataclass(frozen=True, slots=True)
class Chosen:
    """The position of an option, the line that supports it, and its lead over the next option."""

    option: int
    line: int
    lead: float

    @property
    def clear(self) -> bool:
        """Whether the lead is large enough to trust the choice."""
        return self.lead >= _CLEAR


def choose(question: ParsedQuestion, options: Sequence[str], ranked: Ranked, embedder: Embedder) -> Chosen:
    """The option with the most support; of equal options, the first."""
    compared = list(options[:MOST_OPTIONS])
    words, lines = _score_by_words(question, compared, ranked)
    meaning = _score_by_meaning(question, compared, ranked, embedder)
    are_names = all(len(set(list_terms(option))) <= _NAME for option in compared)
    share = 1.0 if are_names else _STATED
    sign = -1 if asks_for_opposite(question) else 1
    scores = [sign * (share * word + _MEANING * near) for word, near in zip(words, meaning, strict=True)]
    order = find_best(scores, len(scores))
    lead = scores[order[0]] - scores[order[1]] if len(order) > 1 else 0.0
    return Chosen(order[0], lines[order[0]], lead)


def _score_by_words(question: ParsedQuestion, options: Sequence[str], ranked: Ranked) -> tuple[list[float], list[int]]:
    """For each option the best product of a line's relevance and its share of the option's words, and that line."""
    best = ranked.order[:_READ]
    lines = [ranked.lines[place] for place in best]
    inside, near = measure_words(question, options, lines, rarity([line.bag for line in ranked.lines]))
    relevance = 0.25 + np.array([ranked.scores[place] for place in best])
    support = relevance[:, None] * (0.6 * inside + 0.4 * near)
    return support.max(axis=0).tolist(), [best[row] for row in support.argmax(axis=0)]


def _score_by_meaning(
    question: ParsedQuestion, options: Sequence[str], ranked: Ranked, embedder: Embedder
) -> list[float]:
    """How similar "question option" is to the best lines: the mean of the two best cosines with single lines, plus the
    best cosine with a line and its neighbours, since stories need several sentences for one fact.
    """
    closest = ranked.order[:_COMPARED]
    texts = [f"{question.text[:200]} {option[:200]}" for option in options]
    texts += [flatten(ranked.lines[i].sentence.text)[:400] for i in closest]
    texts += [_join_neighbours(ranked, i) for i in closest]
    vectors = embedder.embed(texts)
    near = vectors[: len(options)] @ vectors[len(options) :].T
    similarities = []
    for row in near.tolist():
        alone, with_neighbours = sorted(row[: len(closest)], reverse=True)[:2], row[len(closest) :]
        similarities.append(sum(alone) / len(alone) + max(with_neighbours))
    return similarities


def _join_neighbours(ranked: Ranked, number: int) -> str:
    """A line with its neighbours if it stands in running text; else the line alone."""
    line = ranked.lines[number]
    near = ranked.lines[max(0, number - 1) : number + 2] if line.running else [line]
    return " ".join(flatten(each.sentence.text) for each in near if each.sentence.source == line.sentence.source)[:600]
