"""How far the evidence supports an answer, and what it lacks."""

from __future__ import annotations

from tomewise.language.extractive.long_answers import wants_outline
from tomewise.language.extractive.question_words import ParsedQuestion, is_about_all
from tomewise.language.extractive.relevance import Ranked
from tomewise.language.extractive.words import WORD, terms
from tomewise.types import Support

# The least confidence with which an answer is given where it may be declined. `bench/declining.py` fits each one: the
# highest that keeps 95 % of the right answers to the odd-numbered questions. Each then declines more than 85 %
# of the questions that the evidence cannot answer, on the odd-numbered and on the even-numbered ones.
OUTLINE = 0.14  # an answer of several sentences
OPTION = 0.19
SHORT = 0.26  # a name, a date, a number, a yes, one or two sentences
_FULL = 2.0  # times the least confidence: from here on the evidence supports an answer fully
_NAMED = 4  # of what is missing, as many words are named


def confidence(question: ParsedQuestion, ranked: Ranked) -> float:
    """In [0, 1.1]: the share of the question that one sentence holds in its place, times the highest cosine.

    Words alone mislead where another text uses the same words, meaning alone where it tells of similar things. Evidence
    always has something to say to a question about all of it.
    """
    if is_about_all(question):
        return 1.0
    return ranked.best_by_words * max(0.0, *ranked.similarity.values()) if ranked.similarity else 0.0


def least_confidence(question: ParsedQuestion, ranked: Ranked, *, has_options: bool) -> float:
    """What the confidence must reach for this kind of answer."""
    if has_options:
        return OPTION
    return OUTLINE if wants_outline(question, ranked) else SHORT


def support(question: ParsedQuestion, ranked: Ranked, *, has_options: bool) -> Support:
    """How far the evidence holds an answer. A short answer needs every name of the question in the evidence."""
    value, least = confidence(question, ranked), least_confidence(question, ranked, has_options=has_options)
    if value < least or (least == SHORT and _absent_names(question, _terms_held(ranked))):
        return "none"
    return "full" if value >= _FULL * least else "partly"


def missing(question: ParsedQuestion, ranked: Ranked) -> str:
    """A phrase that says what the evidence lacks: a name, else a word, else a sentence that holds them together."""
    held = _terms_held(ranked)
    if names := _absent_names(question, held):
        return f"nothing here names {_join(names)}"
    asked = _words(question)
    if absent := [word for word in asked if not held.issuperset(terms(word))]:
        return f"nothing here mentions {_join(absent)}"
    return f"nothing here says enough about {_join(asked)}" if asked else "nothing here answers this"


def _terms_held(ranked: Ranked) -> frozenset[str]:
    return frozenset().union(*(line.bag | line.around for line in ranked.lines))


def _absent_names(question: ParsedQuestion, held: frozenset[str]) -> list[str]:
    return [name for name in question.names if not held.issuperset(terms(name))]


def _words(question: ParsedQuestion) -> list[str]:
    """The names and the other words that the question is about, as written, each once, in order."""
    kept: dict[str, str] = {}
    for word in WORD.findall(question.text):
        for term in terms(word):
            if term in question.terms:
                kept.setdefault(term, word)
    return list(dict.fromkeys(kept.values()))


def _join(words: list[str]) -> str:
    *others, last = words[:_NAMED]
    return f"{', '.join(others)} or {last}" if others else last
