"""Answering from evidence: a name, a date, a sentence or a summary, with the words it rests on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tomewise.language.extractive.bridges import bridge
from tomewise.language.extractive.choices import Chosen, choose
from tomewise.language.extractive.confidence import missing, support
from tomewise.language.extractive.long_answers import outline, wants_outline
from tomewise.language.extractive.question_words import ParsedQuestion, read_question
from tomewise.language.extractive.relevance import Ranked, compare, lines_of, rank
from tomewise.language.extractive.salience import vary
from tomewise.language.extractive.short_answers import NAMED, candidates
from tomewise.language.extractive.words import flat
from tomewise.language.fences import letter
from tomewise.language.roles import FAILURE, AnswerIn, AnswerOut, Quote
from tomewise.types import Embedder, Support

_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|nowhere|neither|nor|without|refused|denied|failed)\b|n['’]t\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Written:
    """An answer, the lines it rests on, and whether it is of the kind that the question wants."""

    text: str
    lines: list[int]
    fits: bool = True


def answer(given: AnswerIn, embedder: Embedder) -> AnswerOut:
    """The best answer the evidence holds; `*` where the question may be declined and the evidence does not hold it."""
    question = read_question(given.question, given.instructions)
    ranked = rank(question.terms, lines_of(given.evidence, given.notes), question.names)
    if not ranked.lines:
        return _without_evidence(given)
    compare(question.text, ranked, embedder)
    held = support(question, ranked, has_options=bool(given.options))
    if given.may_decline and held == "none":
        return _declined(missing(question, ranked))
    if given.options:
        return _with_options(given, choose(question, given.options, ranked, embedder), ranked, held)
    written = _write(question, ranked, given.instructions)
    if given.may_decline and not written.fits:
        return _declined(f"nothing here gives the {question.want} asked for")
    return AnswerOut(answer=written.text, quotes=_quotes(ranked, written.lines), supported=_limit(held, written.fits))


def _without_evidence(given: AnswerIn) -> AnswerOut:
    if given.options and not given.may_decline:
        return AnswerOut(answer=given.options[0], choice="A", supported="none")
    return _declined("there is no evidence")


def _declined(lack: str) -> AnswerOut:
    return AnswerOut(answer=FAILURE, supported="none", missing=lack)


def _with_options(given: AnswerIn, chosen: Chosen, ranked: Ranked, held: Support) -> AnswerOut:
    return AnswerOut(
        answer=given.options[chosen.option],
        choice=letter(chosen.option),
        quotes=_quotes(ranked, [chosen.line]),
        supported=_limit(held, chosen.clear),
    )


def _limit(held: Support, clear: bool) -> Support:
    """At most "partly" where the answer itself is in doubt, however well the evidence fits the question."""
    return "partly" if held == "full" and not clear else held


def _quotes(ranked: Ranked, lines: Sequence[int]) -> list[Quote]:
    chosen = [ranked.lines[i] for i in lines]
    return [Quote(label=line.label, quote=line.sentence.text) for line in chosen if line.label][:8]


def _write(question: ParsedQuestion, ranked: Ranked, instructions: str) -> _Written:
    if wants_outline(question, ranked):
        return _Written(*outline(question, ranked, instructions))
    if question.want == "yes-no":
        return _Written(*_yes_or_no(question, ranked))
    found = candidates(question, ranked, bridge(question, ranked))
    if found:
        return _Written(found[0].text, [_quotable(ranked, found[0].line)], found[0].fits)
    return _Written(*_sentences(ranked, 2 if question.want == "reason" else 1), question.want not in NAMED)


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


def _yes_or_no(question: ParsedQuestion, ranked: Ranked) -> tuple[str, list[int]]:
    """Yes, where the closest sentence and the question both deny or both do not."""
    line = ranked.order[0]
    denies = bool(_NEGATION.search(ranked.lines[line].sentence.text)) != bool(_NEGATION.search(question.text))
    return ("No" if denies else "Yes"), [_quotable(ranked, line)]
