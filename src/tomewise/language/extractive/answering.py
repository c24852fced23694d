"""Answer from evidence with a name, a date, an option, a sentence or a summary, and quote the evidence for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tomewise.language.extractive.confidence import describe_lack, judge_claim
from tomewise.language.extractive.long_answers import outline, wants_outline
from tomewise.language.extractive.option_support import MOST_OPTIONS, measure_words
from tomewise.language.extractive.question_words import ParsedQuestion, asks_for_opposite, read_question
from tomewise.language.extractive.relevance import Ranked, choose_varied, compare, rank, read_lines
from tomewise.language.extractive.salience import coverage, find_best, rarity
from tomewise.language.extractive.short_answers import NAMED, find_candidates
from tomewise.language.fences import get_letter
from tomewise.language.roles import FAILURE, AnswerIn, AnswerOut, Quote
from tomewise.text.names import list_names
from tomewise.text.words import flatten, list_terms, make_bag
from tomewise.types import Claim, Embedder

_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|nowhere|neither|nor|without|refused|denied|failed)\b|n['’]t\b",
    re.IGNORECASE,
)
_FROM, _TO = 10, 120  # the number of lines where linking names are looked for, and of lines whose scores they may raise
_CARRIED = 0.7  # weight of a question's word in a line that shares a linking name; in a line that has the word it is 1
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
class _Written:
    """An answer, the lines that support it, and whether it is of the kind that the question wants."""

    text: str
    lines: list[int]
    fits: bool = True


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


def answer(given: AnswerIn, embedder: Embedder) -> AnswerOut:
    """The best answer in the evidence; `*` if the question may be declined and the evidence has no answer."""
    question = read_question(given.question, given.instructions)
    ranked = rank(question.terms, read_lines(given.evidence, given.notes), question.names)
    if not ranked.lines:
        return _answer_without_evidence(given)
    compare(question.text, ranked, embedder)
    claim = judge_claim(question, ranked, has_options=bool(given.options))
    if given.may_decline and claim == "none":
        return _decline(describe_lack(question, ranked))
    if given.options:
        return _answer_with_options(given, choose(question, given.options, ranked, embedder), ranked, claim)
    written = _write(question, ranked, given.instructions)
    if given.may_decline and not written.fits:
        return _decline(f"nothing here gives the {question.want} asked for")
    supported = _limit_claim(claim, written.fits)
    return AnswerOut(answer=written.text, quotes=_make_quotes(ranked, written.lines), supported=supported)


def _answer_without_evidence(given: AnswerIn) -> AnswerOut:
    if given.options and not given.may_decline:
        return AnswerOut(answer=given.options[0], choice="A", supported="none")
    return _decline("no evidence was found")


def _decline(lack: str) -> AnswerOut:
    return AnswerOut(answer=FAILURE, supported="none", missing=lack)


def _answer_with_options(given: AnswerIn, chosen: Chosen, ranked: Ranked, claim: Claim) -> AnswerOut:
    return AnswerOut(
        answer=given.options[chosen.option],
        choice=get_letter(chosen.option),
        quotes=_make_quotes(ranked, [chosen.line]),
        supported=_limit_claim(claim, chosen.clear),
    )


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


def _limit_claim(claim: Claim, clear: bool) -> Claim:
    """At most "partly" if the answer itself is in doubt, even if the evidence fits the question well."""
    return "partly" if claim == "full" and not clear else claim


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
