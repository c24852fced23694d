"""Answer from evidence with a name, a date, a sentence or a summary, and quote the evidence for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tomewise.language.extractive.choices import Chosen, choose
from tomewise.language.extractive.confidence import describe_lack, judge_support
from tomewise.language.extractive.long_answers import outline, wants_outline
from tomewise.language.extractive.question_words import ParsedQuestion, read_question
from tomewise.language.extractive.relevance import Ranked, choose_varied, compare, rank, read_lines
from tomewise.language.extractive.salience import coverage, find_best
from tomewise.language.extractive.short_answers import NAMED, find_candidates
from tomewise.language.fences import get_letter
from tomewise.language.roles import FAILURE, AnswerIn, AnswerOut, Quote
from tomewise.text.names import list_names
from tomewise.text.words import flatten, make_bag
from tomewise.types import Claim, Embedder

_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|nowhere|neither|nor|without|refused|denied|failed)\b|n['’]t\b",
    re.IGNORECASE,
)
_FROM, _TO = 10, 120  # the number of lines where linking names are looked for, and of lines whose scores they may raise
_CARRIED = 0.7  # weight of a question's word in a line that shares a linking name; in a line that has the word it is 1


@dataclass(frozen=True, slots=True)
class _Written:
    """An answer, the lines that support it, and whether it is of the kind that the question wants."""

    text: str
    lines: list[int]
    fits: bool = True


def answer(given: AnswerIn, embedder: Embedder) -> AnswerOut:
    """The best answer in the evidence; `*` if the question may be declined and the evidence has no answer."""
    question = read_question(given.question, given.instructions)
    ranked = rank(question.terms, read_lines(given.evidence, given.notes), question.names)
    if not ranked.lines:
        return _answer_without_evidence(given)
    compare(question.text, ranked, embedder)
    support = judge_support(question, ranked, has_options=bool(given.options))
    if given.may_decline and support == "none":
        return _decline(describe_lack(question, ranked))
    if given.options:
        return _answer_with_options(given, choose(question, given.options, ranked, embedder), ranked, support)
    written = _write(question, ranked, given.instructions)
    if given.may_decline and not written.fits:
        return _decline(f"nothing here gives the {question.want} asked for")
    supported = _limit_support(support, written.fits)
    return AnswerOut(answer=written.text, quotes=_make_quotes(ranked, written.lines), supported=supported)


def _answer_without_evidence(given: AnswerIn) -> AnswerOut:
    if given.options and not given.may_decline:
        return AnswerOut(answer=given.options[0], choice="A", supported="none")
    return _decline("no evidence was found")


def _decline(lack: str) -> AnswerOut:
    return AnswerOut(answer=FAILURE, supported="none", missing=lack)


def _answer_with_options(given: AnswerIn, chosen: Chosen, ranked: Ranked, support: Claim) -> AnswerOut:
    return AnswerOut(
        answer=given.options[chosen.option],
        choice=get_letter(chosen.option),
        quotes=_make_quotes(ranked, [chosen.line]),
        supported=_limit_support(support, chosen.clear),
    )


def _limit_support(support: Claim, clear: bool) -> Claim:
    """At most "partly" if the answer itself is in doubt, even if the evidence fits the question well."""
    return "partly" if support == "full" and not clear else support


def _make_quotes(ranked: Ranked, lines: Sequence[int]) -> list[Quote]:
    chosen = [ranked.lines[i] for i in lines]
    return [Quote(label=line.label, quote=line.sentence.text) for line in chosen if line.label][:8]


def _write(question: ParsedQuestion, ranked: Ranked, instructions: str) -> _Written:
    if wants_outline(question, ranked):
        return _Written(*outline(question, ranked, instructions))
    if question.want == "yes-no":
        return _Written(*_say_yes_or_no(question, ranked))
    candidates = find_candidates(question, ranked, raise_linked_lines(question, ranked))
    if candidates:
        best = candidates[0]
        return _Written(best.text, [_find_quotable(ranked, best.line)], best.fits)
    return _Written(*_pick_sentences(ranked, 2 if question.want == "reason" else 1), question.want not in NAMED)


def _find_quotable(ranked: Ranked, line: int) -> int:
    """The line itself. For a sentence of a note, the line of evidence that shares most words with it."""
    if ranked.lines[line].label:
        return line
    bag = ranked.lines[line].bag
    labelled = [i for i in ranked.order if ranked.lines[i].label]
    return max(labelled, key=lambda i: len(bag & ranked.lines[i].bag), default=line)


def _pick_sentences(ranked: Ranked, count: int) -> tuple[str, list[int]]:
    chosen = sorted(choose_varied(ranked, ranked.order[:24], count)) or ranked.order[:1]
    return " ".join(flatten(ranked.lines[i].sentence.text) for i in chosen), chosen


def _say_yes_or_no(question: ParsedQuestion, ranked: Ranked) -> tuple[str, list[int]]:
    """Yes if both the closest sentence and the question are negated, or neither is."""
    line = ranked.order[0]
    denies = bool(_NEGATION.search(ranked.lines[line].sentence.text)) != bool(_NEGATION.search(question.text))
    return ("No" if denies else "Yes"), [_find_quotable(ranked, line)]


def raise_linked_lines(question: ParsedQuestion, ranked: Ranked) -> dict[int, frozenset[str]]:
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
        covered = coverage(ranked.weights, line.bag)
        gain, link = 0.0, frozenset[str]()
        for name, (source, carried) in names.items():
            if source != line.sentence.source and name <= here:
                more = coverage(ranked.weights, line.bag | carried) - covered
                if more * covered > gain:
                    gain, link = more * covered, name
        if gain > 0:
            # A product, since the line needs both: words that it has and inherited words.
            ranked.scores[i] += _CARRIED * gain / max(covered, 1e-9) * min(1.0, 2 * covered)
            raised[i] = link
    ranked.order = find_best(ranked.scores, len(ranked.scores))
    return raised


def _find_names(question_terms: frozenset[str], ranked: Ranked) -> dict[frozenset[str], tuple[int, frozenset[str]]]:
    """Names in lines with words of the question, but not in it: each with its source and these words."""
    names: dict[frozenset[str], tuple[int, frozenset[str]]] = {}
    for i in ranked.order[:_FROM]:
        line = ranked.lines[i]
        carried = question_terms & (line.bag | line.around)
        for name in (*list_names(line.sentence.text), line.title[:100]):
            bag = make_bag(name)
            if bag and carried and not bag & question_terms:
                known = names.get(bag)
                if known is None or coverage(ranked.weights, carried) > coverage(ranked.weights, known[1]):
                    names[bag] = (line.sentence.source, carried)
    return names
