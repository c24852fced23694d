"""Quote the sentences that are nearest to an answer: what the extractive model shows in place of one.

Words choose a shortlist, and meaning ranks it. What is embedded of a sentence begins with its title and its headings:
that helps most. `bench/quotations.py` measures it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import log
from operator import add

import numpy as np

from tomewise.language.extractive.candidates import READ, Candidate, list_candidates, name_file
from tomewise.language.extractive.confidence import join_words
from tomewise.language.extractive.option_support import MOST_OPTIONS, choose_option
from tomewise.language.extractive.question_words import ParsedQuestion, Want, asks_for_opposite, read_question
from tomewise.language.extractive.salience import coverage, find_best
from tomewise.language.fences import get_letter
from tomewise.language.roles import FAILURE, AnswerIn, AnswerOut, Quotable, Quote, QuoteIn, Shown
from tomewise.text.lexicon import HONORIFICS
from tomewise.text.names import find_mentions, list_names
from tomewise.text.stop_words import STOP
from tomewise.text.words import WORD, list_terms
from tomewise.types import Embedder

PASSAGES = 10  # that are read
SHOWN = 3  # sentences; the first alone is right in three of four cases at most
MOST_EMBEDDED, MOST_REWRITTEN = 24, 40  # sentences that are embedded, and with rewrites of the question
_SENTENCE, _QUESTION, _OPTION = 600, 1000, 200  # characters of each that are embedded
_SHORT = 10  # words
_NEW = 12  # terms beyond those of the question that count at most
_LEAST = 0.43  # the cosine that one of the sentences shown needs
_ADDRESSES = frozenset(term for word in HONORIFICS for term in list_terms(word))
# Words that have a small letter also in titles.
_SMALL = frozenset("a an the and or nor but of in on at to for by from with as".split())
_KINDS: Mapping[Want, str] = {"number": "number", "date": "date", "person": "name", "place": "name"}
_WHY = re.compile(r"\b(?:why|for what reason)\b", re.IGNORECASE)
_BECAUSE = re.compile(r"\b(?:because|since)\b", re.IGNORECASE)


def quote(given: AnswerIn, embedder: Embedder) -> AnswerOut:
    """Whole sentences as answer and as quotations, best first; where it declines, as quotations alone.

    Of a question with options, the first sentence is that on which the chosen option rests, if one does. Other input
    than `QuoteIn` has its evidence for passages, in its order.
    """
    passages = given.passages if isinstance(given, QuoteIn) else list(map(_read_shown, given.evidence))
    rewrites = given.rewrites if isinstance(given, QuoteIn) else ()
    nearest = find_nearest(given.question, given.options, passages, rewrites, embedder)
    quotes = [Quote(label=each.label, quote=each.text) for each in nearest.sentences]
    if not quotes or (nearest.lack and given.may_decline):
        return AnswerOut(answer=FAILURE, supported="none", quotes=quotes, missing=nearest.lack)
    return AnswerOut(
        answer="\n".join(" ".join(each.text.split()) for each in nearest.sentences),
        choice=None if nearest.option is None else get_letter(nearest.option),
        quotes=quotes,
        supported="none" if nearest.lack else "partly",
    )


def _read_shown(shown: Shown) -> Quotable:
    return Quotable(label=shown.label, text=shown.text, title=shown.title, document=shown.document)


@dataclass(frozen=True, slots=True)
class NearestSentences:
    """The sentences, best first, and what the passages lack; that is empty where one of them may answer.

    `option` is the number of the option that rests on the first sentence, None where none does.
    """

    sentences: Sequence[Candidate]
    lack: str
    option: int | None = None


@dataclass(frozen=True, slots=True)
class _Rated:
    """A candidate with what its words are worth before it is embedded (`start`), and beside its cosine (`beside`)."""

    candidate: Candidate
    start: float
    beside: float


def find_nearest(
    question: str,
    options: Sequence[str],
    passages: Sequence[Quotable],
    rewrites: Sequence[tuple[str, float]],
    embedder: Embedder,
) -> NearestSentences:
    """The sentences of the first passages that are nearest to an answer.

    `rewrites` are other wordings of the question, each with what is taken off a cosine with it. The first place is
    given without them, since they would put what is reached through a name above the sentence that has the name. Of a
    question with options it has the sentence on which the chosen option rests; none rests on a sentence where the
    option is wanted that the text does not support.
    """
    parsed = read_question(question)
    rated = list(_rate(parsed, list_candidates(passages[:PASSAGES])))
    if not rated:
        return NearestSentences((), "nothing here can be quoted" if passages else "no evidence was found")
    most = MOST_REWRITTEN if rewrites else MOST_EMBEDDED
    rated = [rated[place] for place in find_best([each.start for each in rated], most)]
    queries = [text[:_QUESTION] for text in (question, *(text for text, _ in rewrites))]
    options = () if asks_for_opposite(parsed) else options[:MOST_OPTIONS]
    stated = [f"{question[:_OPTION]} {option[:_OPTION]}" for option in options]
    starts = [f"{each.candidate.prefix}: " if each.candidate.prefix else "" for each in rated]
    texts = [" ".join(each.candidate.text.split())[:_SENTENCE] for each in rated]
    vectors = embedder.embed([*queries, *stated, *map(add, starts, texts)])
    asked, by_option, of_sentences = np.split(vectors, [len(queries), len(queries) + len(stated)])
    cosines = of_sentences @ asked.T
    raised = (cosines - [0.0, *(drop for _, drop in rewrites)]).max(axis=1)
    beside = np.array([each.beside for each in rated])
    order = find_best((raised + beside).tolist(), SHOWN + 1)
    option, first = None, find_best((cosines[:, 0] + beside).tolist(), 1)[0]
    if options:
        by_option = of_sentences @ by_option.T
        if chosen := choose_option(parsed, options, [each.candidate for each in rated], by_option):
            option, first = chosen
            raised[first] = max(raised[first], by_option[first, option])
    shown = [first, *(place for place in order if place != first)][:SHOWN]
    sentences = [rated[place].candidate for place in shown]
    lack = _find_lack(parsed, passages[:PASSAGES], sentences, float(raised[shown].max()))
    return NearestSentences(sentences, lack, option)


def _rate(question: ParsedQuestion, candidates: Sequence[Candidate]) -> Iterator[_Rated]:
    holders = {term: sum(term in each.bag for each in candidates) for term in question.terms}
    weights = {term: log(1 + (len(candidates) + 1) / (count + 0.5)) for term, count in holders.items()}
    for each in candidates:
        inside = coverage(weights, each.bag)
        prefixed = coverage(weights, each.bag | each.prefix_bag)
        by_prefix, by_context = (
            prefixed - inside,
            coverage(weights, each.bag | each.prefix_bag | each.around) - prefixed,
        )
        kind, near = _rate_kind(question, each.text), 1 / (1 + each.rank)
        asks, is_boilerplate = each.is_question, each.is_boilerplate
        is_short = len(each.text.split()) < _SHORT
        new = min(len(each.bag.difference(question.terms)), _NEW) / _NEW
        start = 0.5 * inside + 0.4 * by_prefix + 0.3 * by_context + 0.3 * near + 0.1 * kind
        beside = 0.3 * inside + 0.25 * by_context + 0.1 * near + 0.15 * kind + 0.1 * new
        yield _Rated(
            each,
            start - 0.15 * asks - 0.3 * is_boilerplate - 0.1 * is_short,
            beside - 0.1 * asks - 0.25 * is_boilerplate - 0.1 * is_short,
        )


def _rate_kind(question: ParsedQuestion, text: str) -> float:
    """1 if the sentence has what the question wants, 0 if not; a half if the question wants nothing of a known form."""
    if _WHY.search(question.text):
        return float(bool(_BECAUSE.search(text)))
    kind = _KINDS.get(question.want)
    if kind is None:
        return 0.5
    mentions = (mention for mention in find_mentions(text) if mention.kind == kind)
    return float(any(not set(question.terms).issuperset(list_terms(mention.text)) for mention in mentions))


def _find_lack(
    question: ParsedQuestion, passages: Sequence[Quotable], sentences: Sequence[Candidate], cosine: float
) -> str:
    if absent := _list_absent_names(question.text, passages):
        return f"nothing here names {join_words(absent)}"
    if cosine >= _LEAST or any(_has_all_words(question, each) for each in sentences):
        return ""
    return "no sentence is near to it"


def _list_absent_names(question: str, passages: Sequence[Quotable]) -> list[str]:
    """The names of the question that no passage has. Forms of address are no part of a name."""
    first, *others = WORD.findall(question) or [""]
    if first.lower() in STOP and all(word[0].isupper() or word in _SMALL for word in others):
        return []  # written as a title: then a capital does not show a name
    texts = (
        text
        for each in passages
        for text in (
            each.text[:READ],
            each.title,
            name_file(each.document),
            *chain.from_iterable(path for _, path in each.headings),
        )
    )
    terms = _ADDRESSES.union(*map(list_terms, texts))
    return [name for name in dict.fromkeys(list_names(question)) if not terms.issuperset(list_terms(name))]


def _has_all_words(question: ParsedQuestion, candidate: Candidate) -> bool:
    terms = set(question.terms) - _ADDRESSES
    return bool(terms) and (candidate.bag | candidate.around).issuperset(terms)
