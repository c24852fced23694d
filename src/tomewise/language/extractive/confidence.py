"""Judge how far the evidence supports an answer, and what the evidence lacks."""

from __future__ import annotations

from tomewise.language.extractive.long_answers import wants_outline
from tomewise.language.extractive.question_words import ParsedQuestion, find_words, is_about_all
from tomewise.language.extractive.relevance import Ranked
from tomewise.text.words import list_terms
from tomewise.types import Claim

# The least confidence that an answer needs if the question may be declined. `bench/declining.py` fits each threshold:
# the highest one that keeps 95 % of the right answers to the odd-numbered questions. Each then declines more than 85 %
# of the questions that the evidence cannot answer, among the odd-numbered and among the even-numbered ones.
OUTLINE = 0.14  # an answer of several sentences
OPTION = 0.19
SHORT = 0.26  # a name, a date, a number, a yes, one or two sentences
_FULL = 2.0  # from this multiple of the least confidence on, the evidence supports an answer fully
_NAMED = 4  # missing words that are named at most


def measure_confidence(question: ParsedQuestion, ranked: Ranked) -> float:
    """A number in [0, 1.1]: the largest share of the question in one sentence and its surroundings, times the highest
    cosine. It is 1 for a question about all of the evidence.

    Words alone mislead if another text uses the same words. Meaning alone misleads if a text is about similar things.
    """
    if is_about_all(question):
        return 1.0
    return ranked.best_by_words * max(0.0, *ranked.similarity.values()) if ranked.similarity else 0.0


def find_least_confidence(question: ParsedQuestion, ranked: Ranked, *, has_options: bool) -> float:
    """The least confidence that this kind of answer needs."""
    if has_options:
        return OPTION
    return OUTLINE if wants_outline(question, ranked) else SHORT


def judge_claim(question: ParsedQuestion, ranked: Ranked, *, has_options: bool) -> Claim:
    """How far the evidence supports an answer. For a short answer it must have every name of the question."""
    value, least = (
        measure_confidence(question, ranked),
        find_least_confidence(question, ranked, has_options=has_options),
    )
    if value < least or (least == SHORT and _find_absent_names(question, _collect_terms(ranked))):
        return "none"
    return "full" if value >= _FULL * least else "partly"


def _find_absent_names(question: ParsedQuestion, evidence_terms: frozenset[str]) -> list[str]:
    return [name for name in question.names if not evidence_terms.issuperset(list_terms(name))]


def _collect_terms(ranked: Ranked) -> frozenset[str]:
    return frozenset().union(*(line.bag | line.around for line in ranked.lines))


def describe_lack(question: ParsedQuestion, ranked: Ranked) -> str:
    """A phrase that says what the evidence lacks: a name, else a word, else a sentence with all words."""
    evidence_terms = _collect_terms(ranked)
    if names := _find_absent_names(question, evidence_terms):
        return f"nothing here names {join_words(names)}"
    words = list(dict.fromkeys(find_words(question).values()))
    if absent := [word for word in words if not evidence_terms.issuperset(list_terms(word))]:
        return f"nothing here mentions {join_words(absent)}"
    return f"nothing here says enough about {join_words(words)}" if words else "nothing here answers this"


def join_words(words: list[str]) -> str:
    """The first of these words, with `or` before the last."""
    *first_words, last = words[:_NAMED]
    return f"{', '.join(first_words)} or {last}" if first_words else last
