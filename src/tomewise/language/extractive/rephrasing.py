"""Rephrase a follow-up question by patterns, so that it is understood alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tomewise.language.extractive.gist import inflect
from tomewise.language.extractive.question_words import read_question
from tomewise.language.roles import RephraseIn, RephraseOut, TurnShown
from tomewise.text.names import Mention, find_gender, find_mentions, find_sort
from tomewise.text.words import ASKING_STEMS, flatten, list_terms

_READ = 4_000  # characters
_OPENING = re.compile(r"\A\W*(?:and|but|so|then)\b[\s,]*(?:then\b[\s,]*)?", re.IGNORECASE)
_POINTING = re.compile(r"\b(he|him|his|she|her|hers|it|its)\b", re.IGNORECASE)
_AFTER_ARTICLE = re.compile(r"\b(?:the|an?)\s\Z", re.IGNORECASE)  # as in "the Heron": a thing more often than a person
_OF_PRONOUN = {"him": "he", "his": "he", "her": "she", "hers": "she", "its": "it"}


def rephrase(given: RephraseIn) -> RephraseOut:
    """The question without an opening "and"; "he", "she" and "it" become names of the last turns.

    Each pronoun becomes the latest name that can be meant: the last answer comes before its question; names after "the"
    and names in the new question do not count. A pronoun that no name fits stays, and so does "they". A question
    of question words alone ("Why?") gets the last question behind it. It may name a wrong person, and does not know
    "that letter" or "there".
    """
    question = _strip_opening(flatten(given.question[:_READ]))
    if not given.turns:
        return RephraseOut(question=question)
    known = frozenset(term for mention in find_mentions(question) for term in list_terms(mention.text))
    names = [mention for mention in _list_names(given.turns) if known.isdisjoint(list_terms(mention.text))]
    named = _replace_pronouns(question, names)
    if named == question and set(read_question(question).terms) <= ASKING_STEMS:
        named = f"{question.rstrip(' ?')}: {flatten(given.turns[-1].question[:_READ])}"
    return RephraseOut(question=named)


def _strip_opening(question: str) -> str:
    rest = _OPENING.sub("", question, count=1)
    return rest[:1].upper() + rest[1:] if list_terms(rest) or rest.strip(" ?") else question


def _list_names(turns: Sequence[TurnShown]) -> Iterator[Mention]:
    """The names of the turns: the newest turn first, in a turn the answer first."""
    for turn in reversed(turns):
        for text in (turn.answer, turn.question):
            for mention in find_mentions(text[:_READ]):
                is_thing = mention.kind == "name" and _AFTER_ARTICLE.search(text, 0, mention.start)
                if mention.kind in ("name", "title") and not is_thing:
                    yield mention


def _replace_pronouns(question: str, names: Sequence[Mention]) -> str:
    replaced: set[str] = set()

    def name_pronoun(match: re.Match[str]) -> str:
        lower = match[0].lower()
        pronoun = _OF_PRONOUN.get(lower, lower)
        name = next((mention.text for mention in names if _may_be(mention, pronoun)), "")
        if not name or pronoun in replaced:
            return match[0]
        replaced.add(pronoun)
        return inflect(name, match[0], match.string[match.end() :])

    return _POINTING.sub(name_pronoun, question)


def _may_be(mention: Mention, pronoun: str) -> bool:
    """Whether a pronoun can mean a name, judged by the form of the name."""
    sort = find_sort(mention.text)
    if pronoun == "it":
        return mention.kind == "title" or sort in ("place", "organization")
    return mention.kind == "name" and sort in ("person", "") and find_gender(mention.text) in (pronoun, "")
