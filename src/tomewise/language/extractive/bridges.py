"""Two steps at once: a line that lacks the question's names but holds a name that stands beside them elsewhere."""

from __future__ import annotations

from tomewise.language.extractive.names import mentions
from tomewise.language.extractive.question_words import ParsedQuestion
from tomewise.language.extractive.relevance import Ranked
from tomewise.language.extractive.salience import best, coverage
from tomewise.language.extractive.words import terms

_FROM, _TO = 10, 120  # lines that bridges start from, and lines they may lead to
_CARRIED = 0.7  # what a question's word counts for where a bridge leads, beside 1 where it stands


def bridge(question: ParsedQuestion, ranked: Ranked) -> dict[int, frozenset[str]]:
    """Raise the scores of lines that a name joins to lines with other words of the question.

    "When did the country where Baure lies ..." : the line about Baure names Niger, and a line about Niger inherits
    "Baure". Returns the terms of the names that led to each line raised; they are steps, not answers.
    """
    asked = frozenset(question.terms)
    named = _names(question, ranked, asked)
    raised: dict[int, frozenset[str]] = {}
    for i in ranked.order[:_TO]:
        line = ranked.lines[i]
        here = line.bag | line.around
        own = coverage(ranked.weights, line.bag)
        gain, led = 0.0, frozenset[str]()
        for name, (source, carried) in named.items():
            if source != line.sentence.source and name <= here:
                more = coverage(ranked.weights, line.bag | carried) - own
                if more * own > gain:
                    gain, led = more * own, name
        if gain > 0:
            # Both halves must be there: what the line says itself times what it inherits.
            ranked.scores[i] += _CARRIED * gain / max(own, 1e-9) * min(1.0, 2 * own)
            raised[i] = led
    ranked.order = best(ranked.scores, len(ranked.scores))
    return raised


def _names(
    question: ParsedQuestion, ranked: Ranked, asked: frozenset[str]
) -> dict[frozenset[str], tuple[int, frozenset[str]]]:
    """Names beside words of the question that the question does not say: where, and which of its words they carry."""
    named: dict[frozenset[str], tuple[int, frozenset[str]]] = {}
    for i in ranked.order[:_FROM]:
        line = ranked.lines[i]
        held = asked & (line.bag | line.around)
        for name in [m.text for m in mentions(line.sentence.text) if m.kind in ("name", "title")] + [line.title[:100]]:
            bag = frozenset(terms(name))
            if bag and held and not bag & asked:
                known = named.get(bag)
                if known is None or coverage(ranked.weights, held) > coverage(ranked.weights, known[1]):
                    named[bag] = (line.sentence.source, held)
    return named
