"""Short answers: the name, place, date or number in the sentences that are relevant to the question."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tomewise.language.extractive.question_words import ParsedQuestion, Want
from tomewise.language.extractive.relevance import Ranked
from tomewise.text.lexicon import COUNTRIES, SAYING, STATES
from tomewise.text.names import Mention, find_gender, find_mentions, find_sort, find_word_before
from tomewise.text.words import WORD, list_terms, make_bag

_SENTENCES = 12  # sentences that are searched for answers
_KINDS: dict[Want, tuple[str, ...]] = {
    "person": ("name",),
    "place": ("name",),
    "date": ("date",),
    "number": ("number", "date"),
    "name": ("name", "title", "date"),
}
NAMED = frozenset(_KINDS)  # the kinds of question whose answer is a name, a date or a number
_FITTING = 0.5  # the least fit of a mention that is of the wanted kind
_CLOSE = 0.7  # share of the highest score; a line below it is about something else
_HEAD = {
    noun: re.compile(rf"\b(?:what|which)(?: is the| was the)? {noun}\b", re.IGNORECASE) for noun in ("country", "state")
}
# "Indian", "Spanish", "Chinese": names of peoples, not of a person or a place.
_PEOPLE = re.compile(r"\A[^\W\d_]+(?:ian|ean|can|man|ish|ese|alan|iss|ench|utch)\Z")
_YEAR = re.compile(r"\d{4}\Z")


@dataclass(slots=True)
class Candidate:
    """A possible answer: its text, its score, and the line with the largest part of that score, `best_part`.

    `fits` is True if it is of the wanted kind and that line is almost as relevant as the most relevant line.
    """

    text: str
    score: float
    line: int
    best_part: float
    fits: bool


def find_candidates(question: ParsedQuestion, ranked: Ranked, steps: Mapping[int, frozenset[str]]) -> list[Candidate]:
    """Possible answers of the wanted kind, best first, without names that the question itself has."""
    kinds = _KINDS.get(question.want, ())
    inside = set(question.terms)
    known_names = [make_bag(name) for name in question.names]
    found: dict[str, Candidate] = {}
    least = _CLOSE * max(ranked.scores, default=0.0)
    for number, i in enumerate(ranked.order[:_SENTENCES]):
        line = ranked.lines[i]
        text = line.sentence.text
        for mention in find_mentions(text):
            key = mention.text.casefold()
            bag = make_bag(mention.text)
            # A longer form of a name in the question ("Professor Van Helsing") is not an answer either.
            if mention.kind not in kinds or bag <= inside or any(name and name <= bag for name in known_names):
                continue
            fit = _rate(question, text, mention)
            fits = ranked.scores[i] >= least and (
                fit >= _FITTING or question.want == "name"
            )  # any mention may be a name
            fit *= 0.4 if bag & steps.get(i, frozenset()) else 1.0
            weight = (
                fit * (ranked.scores[i] ** 2 / (1 + 0.15 * number)) * _rate_nearness(question, ranked, text, mention)
            )
            _add(found, key, Candidate(mention.text, weight, i, weight, fits))
    return sorted(found.values(), key=lambda c: -c.score)


def _rate(question: ParsedQuestion, text: str, mention: Mention) -> float:
    """How well a mention fits the wanted kind, around 1."""
    after = WORD.findall(text[mention.end : mention.end + 30])[:3]
    sort = find_sort(mention.text, find_word_before(text, mention))
    if question.want == "person":
        return _rate_person(mention, sort, after)
    if question.want == "place":
        return _rate_place(question, mention, sort)
    if question.want == "number":
        return _rate_number(question, mention, after)
    if question.want == "name":
        # "What" and "which" without a noun for a person seldom ask for a person.
        return (0.4 if sort == "person" else 1.0) if mention.kind in ("name", "title") else 0.5
    return 1.0


def _rate_person(mention: Mention, sort: str, after: list[str]) -> float:
    if sort in ("place", "organization") or _PEOPLE.search(mention.text) or " of " in mention.text:
        return 0.3
    speaks = bool(after) and after[0] in SAYING
    return 1.5 if find_gender(mention.text) or speaks or len(mention.text.split()) in (2, 3) else 0.9


def _rate_place(question: ParsedQuestion, mention: Mention, sort: str) -> float:
    name = mention.text.lower()
    for noun, known in (("country", COUNTRIES), ("state", STATES)):
        if _HEAD[noun].search(question.text):
            return 2.0 if name in known else 0.5
    if _PEOPLE.search(mention.text):
        return 0.4
    return {"place": 1.5, "person": 0.3, "organization": 0.4}.get(sort, 0.9)


def _rate_number(question: ParsedQuestion, mention: Mention, after: list[str]) -> float:
    if mention.kind == "date" or _YEAR.match(mention.text):
        return 0.4
    counts_asked_things = any(term in question.terms for word in after for term in list_terms(word))
    return (1.5 if counts_asked_things else 1.0) * (1.3 if "," in mention.text else 1.0)


def _rate_nearness(question: ParsedQuestion, ranked: Ranked, text: str, mention: Mention) -> float:
    """Up to 2 if the question's words are right beside the mention, 1 if none of them is near."""
    near = 0.0
    left, right = (
        WORD.findall(text[max(0, mention.start - 90) : mention.start]),
        WORD.findall(text[mention.end : mention.end + 90]),
    )
    total = sum(ranked.weights.values()) or 1.0
    for words in (left[::-1], right):
        seen: Sequence[tuple[int, str]] = [
            (step, term) for step, word in enumerate(words[:12]) for term in list_terms(word)
        ]
        near += sum(
            ranked.weights.get(term, 0.0) / (1 + 0.25 * step)
            for step, term in {t: (s, t) for s, t in reversed(seen)}.values()
        )
    return 1.0 + min(near / total, 1.0)


def _add(found: dict[str, Candidate], key: str, new: Candidate) -> None:
    known = found.get(key)
    if known is None:
        found[key] = new
        return
    known.score += 0.3 * new.score
    if new.score > known.best_part:
        known.best_part, known.line, known.fits = new.score, new.line, new.fits
