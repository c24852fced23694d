"""Quote the sentences that are nearest to an answer: what the extractive model shows in place of one.

Words choose a shortlist, and meaning ranks it. What is embedded of a sentence begins with its title and its headings:
that helps most. `bench/quotations.py` measures it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from tomewise.language.extractive.near_sentences import (
    READ,
    Candidate,
    list_candidates,
    measure_shares,
    name_file,
    write_prefixed,
)
from tomewise.language.extractive.question_words import ParsedQuestion, Want, asks_for_opposite, read_question
from tomewise.language.extractive.salience import coverage, find_best, rarity
from tomewise.language.fences import get_letter
from tomewise.language.roles import FAILURE, AnswerIn, AnswerOut, Quotable, Quote, QuoteIn, Shown
from tomewise.text.lexicon import HONORIFICS
from tomewise.text.names import find_mentions, list_names
from tomewise.text.stop_words import STOP
from tomewise.text.words import WORD, flatten, list_terms
from tomewise.types import Embedder

PASSAGES = 10  # that are read
SHOWN = 3  # sentences; the first alone is right in three of four cases at most
MOST_EMBEDDED, MOST_REWRITTEN = 24, 40  # sentences that are embedded, and with rewrites of the question
_MOST_OPTIONS = 60  # that are compared
_SENTENCE, _QUESTION, _OPTION = 600, 1000, 200  # characters of each that are embedded
_OPTION_READ = 2000  # characters of an option whose words are compared
_UNSEEN = 3.0  # the weight of a word of an option that is in no sentence
_CARRIED = 0.5  # the share of an option's own words that the sentence beside it has at least
_SHORT = 10  # words
_NEW = 12  # terms beyond those of the question that count at most
_LEAST = 0.43  # the cosine that one of the sentences shown needs
_NAMED = 4  # missing words that are named at most
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
    passages: Sequence[Quotable | Shown] = given.passages if isinstance(given, QuoteIn) else given.evidence
    rewrites = given.rewrites if isinstance(given, QuoteIn) else ()
    nearest = find_nearest(given.question, given.options, passages[:PASSAGES], rewrites, embedder)
    shown = nearest.sentences[:SHOWN]
    quotes = [Quote(label=each.label, quote=each.text) for each in shown]
    if not quotes or (nearest.lack and given.may_decline):
        return AnswerOut(answer=FAILURE, supported="none", quotes=quotes, missing=nearest.lack)
    return AnswerOut(
        answer="\n".join(flatten(each.text) for each in shown),
        choice=None if nearest.option is None else get_letter(nearest.option),
        quotes=quotes,
        supported="none" if nearest.lack else "partly",
    )


@dataclass(frozen=True, slots=True)
class NearestSentences:
    """The sentences, best first, and what the passages lack; that is empty where one of them may answer.

    `likeliest` is the number of the likeliest option, and so is `option` if it rests on the first sentence; else None.
    """

    sentences: Sequence[Candidate]
    lack: str
    likeliest: int = 0
    option: int | None = None


def find_nearest(
    question: str,
    options: Sequence[str],
    passages: Sequence[Quotable | Shown],
    rewrites: Sequence[tuple[str, float]],
    embedder: Embedder,
) -> NearestSentences:
    """The sentences of passages that are nearest to an answer.

    `rewrites` are other wordings of the question, each with what is taken off a cosine with it. The first place is
    given without them, since they would put what is reached through a name above the sentence that has the name. Of a
    question with options it has the sentence on which the chosen option rests; none rests on a sentence where the
    option is wanted that the text does not support.
    """
    parsed = read_question(question)
    candidates = list_candidates(passages)
    if not candidates:
        return NearestSentences((), "nothing here can be quoted" if passages else "no evidence was found")
    starts, besides = _rate(parsed, candidates)
    read = find_best(starts, MOST_REWRITTEN if rewrites else MOST_EMBEDDED)
    candidates, beside = [candidates[place] for place in read], np.array([besides[place] for place in read])
    queries = [text[:_QUESTION] for text in (question, *(text for text, _ in rewrites))]
    options = options[:_MOST_OPTIONS]
    stated = [f"{question[:_OPTION]} {option[:_OPTION]}" for option in options]
    vectors = embedder.embed([*queries, *stated, *(write_prefixed(each, _SENTENCE) for each in candidates)])
    asked, by_option, of_sentences = np.split(vectors, [len(queries), len(queries) + len(stated)])
    cosines = of_sentences @ asked.T
    raised = (cosines - [0.0, *(drop for _, drop in rewrites)]).max(axis=1)
    order = find_best((raised + beside).tolist(), len(read))
    first = find_best((cosines[:, 0] + beside).tolist(), 1)[0]
    likeliest, option = 0, None
    if options:
        by_option = of_sentences @ by_option.T
        support, is_carrier = _measure_support(parsed, options, candidates, by_option)
        total = np.sort(support, axis=0)[-2:].mean(axis=0)
        is_opposite = asks_for_opposite(parsed)
        likeliest = int((-total if is_opposite else total).argmax())
        if is_carrier[:, likeliest].any() and not is_opposite:
            option, first = likeliest, int(np.where(is_carrier, support, -np.inf)[:, likeliest].argmax())
            raised[first] = max(raised[first], by_option[first, option])
    order = [first, *(place for place in order if place != first)]
    sentences = [candidates[place] for place in order]
    lack = _find_lack(parsed, passages, sentences[:SHOWN], float(raised[order[:SHOWN]].max()))
    return NearestSentences(sentences, lack, likeliest, option)


def _rate(question: ParsedQuestion, candidates: Sequence[Candidate]) -> tuple[list[float], list[float]]:
    """What the words of each candidate are worth before it is embedded, and beside its cosine."""
    starts, besides = [], []
    shares = measure_shares(question.terms, candidates)
    for each, (inside, by_prefix, by_context) in zip(candidates, shares, strict=True):
        kind, near = _rate_kind(question, each.text), 1 / (1 + each.rank)
        is_short = len(each.text.split()) < _SHORT
        new = min(len(each.bag.difference(question.terms)), _NEW) / _NEW
        start = 0.5 * inside + 0.4 * by_prefix + 0.3 * by_context + 0.3 * near + 0.1 * kind
        beside = 0.3 * inside + 0.25 * by_context + 0.1 * near + 0.15 * kind + 0.1 * new
        starts.append(start - 0.15 * each.is_question - 0.3 * each.is_boilerplate - 0.1 * is_short)
        besides.append(beside - 0.1 * each.is_question - 0.25 * each.is_boilerplate - 0.1 * is_short)
    return starts, besides


def _rate_kind(question: ParsedQuestion, text: str) -> float:
    """1 if the sentence has what the question wants, 0 if not; a half if the question wants nothing of a known form."""
    if _WHY.search(question.text):
        return float(bool(_BECAUSE.search(text)))
    kind = _KINDS.get(question.want)
    if kind is None:
        return 0.5
    mentions = (mention for mention in find_mentions(text) if mention.kind == kind)
    return float(any(not set(question.terms).issuperset(list_terms(mention.text)) for mention in mentions))


def _measure_support(
    question: ParsedQuestion, options: Sequence[str], candidates: Sequence[Candidate], cosines: NDArray[np.float32]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """How much each sentence supports each option, and whether it has enough of its words: both (sentences, options).

    `cosines` of that shape are those of each sentence with the question and the option.
    """
    idf = rarity([each.bag for each in candidates])
    bags = [set(list_terms(option[:_OPTION_READ])) for option in options]
    bags = [bag - set(question.terms) or bag for bag in bags]
    common = set.intersection(*bags) if len(bags) > 1 else set()
    weights = [{term: idf.get(term, _UNSEEN) for term in sorted(bag - common or bag)} for bag in bags]
    inside = np.array([[coverage(own, each.bag) for own in weights] for each in candidates])
    near = np.array([[coverage(own, each.bag | each.around) for own in weights] for each in candidates])
    return 0.6 * inside + 0.4 * near + cosines, inside >= _CARRIED


def _find_lack(
    question: ParsedQuestion, passages: Sequence[Quotable | Shown], sentences: Sequence[Candidate], cosine: float
) -> str:
    if not any(map(str.isalnum, question.text)):
        return "the question has no word"
    if absent := _list_absent_names(question.text, passages)[:_NAMED]:
        return f"nothing here names {' or '.join(filter(None, (', '.join(absent[:-1]), absent[-1])))}"
    if cosine >= _LEAST or any(has_all_words(question, each) for each in sentences):
        return ""
    return "no sentence is near to it"


def _list_absent_names(question: str, passages: Sequence[Quotable | Shown]) -> list[str]:
    """The names of the question that no passage has. Forms of address are no part of a name."""
    first, *others = WORD.findall(question) or [""]
    if first.lower() in STOP and all(word[0].isupper() or word in _SMALL for word in others):
        return []  # written as a title: then a capital does not show a name
    texts = [text for each in passages for text in (each.text[:READ], each.title, name_file(each.document))]
    for each in passages:
        if isinstance(each, Quotable):
            texts += chain.from_iterable(path for _, path in each.headings)
    terms = _ADDRESSES.union(*map(list_terms, texts))
    return [name for name in dict.fromkeys(list_names(question)) if not terms.issuperset(list_terms(name))]


def has_all_words(question: ParsedQuestion, candidate: Candidate) -> bool:
    """Whether a sentence and what is around it have every word that tells what the question is about."""
    terms = set(question.terms) - _ADDRESSES
    return bool(terms) and (candidate.bag | candidate.around).issuperset(terms)
