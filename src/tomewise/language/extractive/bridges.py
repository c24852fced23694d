"""Answer questions of two steps: find lines linked to the question's names by another name.

The line itself lacks the question's names. It has a name that stands beside them in another line.
"""

from __future__ import annotations

from tomewise.language.extractive.names import mentions
from tomewise.language.extractive.question_words import ParsedQuestion
from tomewise.language.extractive.relevance import Ranked
from tomewise.language.extractive.salience import best, coverage
from tomewise.language.extractive.words import terms

_FROM, _TO = 10, 120  # the number of lines where bridges may start, and of lines where they may end
_CARRIED = 0.7  # weight of a question's word in a line that a bridge leads to; in a line that has the word it is 1


def bridge(question: ParsedQuestion, ranked: Ranked) -> dict[int, frozenset[str]]:
    """Raise the scores of lines that share a name with lines that have other words of the question.

    "When did the country where Baure lies ..." : the line about Baure names Niger, so a line about Niger inherits
    "Baure". Returns for each raised line the terms of the linking name: such names are steps, not answers.
    """
    question_terms = frozenset(question.terms)
    names = _find_names(question_terms, ranked)
    raised: dict[int, frozenset[str]] = {}
    for i in ranked.order[:_TO]:
        line = ranked.lines[i]
        here = line.bag | line.around
        own = coverage(ranked.weights, line.bag)
        gain, link = 0.0, frozenset[str]()
        for name, (source, carried) in names.items():
            if source != line.sentence.source and name <= here:
                more = coverage(ranked.weights, line.bag | carried) - own
                if more * own > gain:
                    gain, link = more * own, name
        if gain > 0:
            # A product, since the line needs both: words of its own and inherited words.
            ranked.scores[i] += _CARRIED * gain / max(own, 1e-9) * min(1.0, 2 * own)
            raised[i] = link
    ranked.order = best(ranked.scores, len(ranked.scores))
    return raised


def _find_names(question_terms: frozenset[str], ranked: Ranked) -> dict[frozenset[str], tuple[int, frozenset[str]]]:
    """Names that stand beside words of the question but are not in it: where, and which of its words they carry."""
    names: dict[frozenset[str], tuple[int, frozenset[str]]] = {}
    for i in ranked.order[:_FROM]:
        line = ranked.lines[i]
        carried = question_terms & (line.bag | line.around)
        for name in [m.text for m in mentions(line.sentence.text) if m.kind in ("name", "title")] + [line.title[:100]]:
            bag = frozenset(terms(name))
            if bag and carried and not bag & question_terms:
                known = names.get(bag)
                if known is None or coverage(ranked.weights, carried) > coverage(ranked.weights, known[1]):
                    names[bag] = (line.sentence.source, carried)
    return names
