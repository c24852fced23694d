"""Answering from evidence: a name, a date, a sentence or a summary, with the words it rests on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tomewise.language.extractive.asking import Asked, read_question
from tomewise.language.extractive.bridges import bridge
from tomewise.language.extractive.confidence import confident
from tomewise.language.extractive.options import choose
from tomewise.language.extractive.outlines import outline, spoken
from tomewise.language.extractive.relevance import Ranked, compare, lines_of, rank
from tomewise.language.extractive.salience import vary
from tomewise.language.extractive.spans import candidates
from tomewise.language.extractive.words import flat
from tomewise.language.fences import letter
from tomewise.language.roles import FAILURE, AnswerIn, AnswerOut, Quote
from tomewise.types import Embedder

_TALK = frozenset({"reason", "clause", "name", "yes-no"})
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|nowhere|neither|nor|without|refused|denied|failed)\b|n['’]t\b",
    re.IGNORECASE,
)


def answer(given: AnswerIn, embedder: Embedder) -> AnswerOut:
    """The best answer the evidence holds; `*` where the question may be declined and the evidence is too thin."""
    question = read_question(given.question, given.instructions)
    ranked = rank(question.terms, lines_of(given.evidence, given.notes), question.names)
    if not ranked.lines:
        return _without_evidence(given)
    compare(question.text, ranked, embedder)
    if given.options:
        chosen = choose(question, given.options, ranked, embedder)
        if given.may_decline and not chosen.clear:
            return AnswerOut(answer=FAILURE)
        option = given.options[chosen.option]
        return AnswerOut(answer=option, choice=letter(chosen.option), quotes=_quotes(ranked, [chosen.line]))
    if given.may_decline and not confident(ranked):
        return AnswerOut(answer=FAILURE)
    text, lines = _free(question, ranked, given.instructions)
    return AnswerOut(answer=text, quotes=_quotes(ranked, lines))


def _without_evidence(given: AnswerIn) -> AnswerOut:
    if given.options and not given.may_decline:
        return AnswerOut(answer=given.options[0], choice="A")
    return AnswerOut(answer=FAILURE)


def _quotes(ranked: Ranked, lines: Sequence[int]) -> list[Quote]:
    chosen = [ranked.lines[i] for i in lines]
    return [Quote(label=line.label, quote=line.sentence.text) for line in chosen if line.label][:8]


def _free(question: Asked, ranked: Ranked, instructions: str) -> tuple[str, list[int]]:
    """The answer and the lines it rests on."""
    if question.want == "summary" or (question.want in _TALK and spoken(ranked)):
        return outline(question, ranked, instructions)
    if question.want == "yes-no":
        return _yes_or_no(question, ranked)
    steps = bridge(question, ranked)
    found = candidates(question, ranked, steps)
    if found:
        return found[0].text, [_quotable(ranked, found[0].line)]
    return _sentences(ranked, 2 if question.want == "reason" else 1)


def _quotable(ranked: Ranked, line: int) -> int:
    """The line itself, or for a sentence of a note the evidence that has most of its words."""
    if ranked.lines[line].label:
        return line
    bag = ranked.lines[line].bag
    labelled = [i for i in ranked.order if ranked.lines[i].label]
    return max(labelled, key=lambda i: len(bag & ranked.lines[i].bag), default=line)


def _sentences(ranked: Ranked, count: int) -> tuple[str, list[int]]:
    top = ranked.order[:24]
    lines = vary(
        [min(ranked.scores[i], 1.0) for i in top],
        [ranked.lines[i].bag for i in top],
        lengths=[1] * len(top),
        room=count,
        count=count,
    )
    chosen = sorted(top[i] for i in lines) or ranked.order[:1]
    return " ".join(flat(ranked.lines[i].sentence.text) for i in chosen), chosen


def _yes_or_no(question: Asked, ranked: Ranked) -> tuple[str, list[int]]:
    """Yes, where the closest sentence and the question both deny or both do not."""
    line = ranked.order[0]
    denies = bool(_NEGATION.search(ranked.lines[line].sentence.text)) != bool(_NEGATION.search(question.text))
    return ("No" if denies else "Yes"), [_quotable(ranked, line)]
