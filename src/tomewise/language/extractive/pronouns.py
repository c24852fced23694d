"""Put names in place of pronouns and short names: in a passage, and in a question that follows others."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tomewise.language.extractive.question_words import read_question
from tomewise.language.roles import GistOut, PassageIn, RephraseIn, RephraseOut
from tomewise.text.names import find_gender, find_mentions, find_sort, find_word_before
from tomewise.text.sentences import split_sentences
from tomewise.text.words import ASKING_STEMS, flatten, list_terms

_READ, _READ_QUESTION = 24_000, 4_000  # characters; the rest of a longer passage stays as it is
_SUBJECTS = {
    "he": "he", "his": "he", "him": "he", "she": "she", "her": "she", "hers": "she", "it": "it", "its": "it",
}  # fmt: skip
_PRONOUN = rf"(?<![\w’'-])(?i:{'|'.join(_SUBJECTS)})(?![\w’'-])"
_SPEECH = r"[“\"][^“”\"]{0,2000}[”\"]"
# The words after an "it" that does not stand for a name: "it was clear that", "it rained".
_AFTER_IMPERSONAL_IT = re.compile(
    r"\s+(?:seem|appear|rain|snow|took|takes|would be"
    r"|(?:is|was|had been|has been)\s+(?:\w+\s+){0,3}(?:that|to|who|when)\b)"
)
# The words after a "her" that is an object ("he saw her and left"), not a possessive ("her house").
_AFTER_OBJECT_HER = re.compile(
    r"(?:\s*[.,;:!?)—]|\s+(?:and|to|in|on|with|from|at|by|for|as|that|but|again|when|if|up|out|off|down)\b|\s*\Z)"
)
_OPENING = re.compile(r"\A\W*(?:and|but|so|then)\b[\s,]*(?:then\b[\s,]*)?", re.IGNORECASE)
_RECENT = 20  # names that a pronoun of a passage may stand for
_LONGEST = 4  # words of a full name


@dataclass(frozen=True, slots=True)
class _Named:
    """A name that begins at `start`, and the pronouns that can mean it, judged by its form."""

    start: int
    text: str
    pronouns: tuple[str, ...]


def _list_named(text: str) -> list[_Named]:
    named = []
    for mention in find_mentions(text):
        gender, before = find_gender(mention.text), find_word_before(text, mention)
        sort = "person" if gender else find_sort(mention.text, before)
        pronouns: tuple[str, ...] = (gender,) if gender else ("he", "she")
        if mention.kind == "title" or sort in ("place", "organization"):
            pronouns = ("it",)
        elif before.lower() in ("the", "a", "an"):  # as in "the Heron": a thing more often than a person
            pronouns = ()
        if mention.kind in ("name", "title"):
            named.append(_Named(mention.start, mention.text, pronouns))
    return named


def _find_meant(pronoun: str, names: Iterable[_Named], bound: dict[str, str]) -> str:
    """The first of these names that a pronoun can mean, which binds the name to it; empty if none can."""
    for each in names:
        if pronoun in each.pronouns and bound.setdefault(each.text, pronoun) == pronoun:
            return each.text
    return ""


def _inflect(name: str, match: re.Match[str]) -> str:
    """The name in the case of the pronoun that it replaces."""
    pronoun = match[0].lower()
    is_possessive = pronoun in ("his", "its", "hers") or (
        pronoun == "her" and not _AFTER_OBJECT_HER.match(match.string, match.end())
    )
    if not is_possessive:
        return name
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def write_gist(given: PassageIn) -> GistOut:
    """The passage with full names: the only longer name for a short one, the latest that can be meant for a pronoun.

    Each is put once in a sentence, and not where the sentence names it; "it" is replaced at the start of one alone.
    Speech in quotation marks stays as it is: who "he" is there depends on the speaker.
    """
    text, title = given.text[:_READ], given.title.strip()
    gender = find_gender(title)
    entitled = [_Named(0, title, (gender,) if gender else ("he", "she", "it"))] if title else []
    names = _list_named(text)
    full_names = _find_full_names({each.text for each in names if "it" not in each.pronouns})
    starts = [sentence.start for sentence in split_sentences(text, limit=_READ)]
    mentioned = {(each.start, each.text) for each in names}  # not so a short name inside a longer one
    present = {(bisect(starts, each.start), each.text) for each in names}
    bound: dict[str, str] = {}
    notes = Counter[str]()

    def complete(match: re.Match[str]) -> str:
        old, number = match[0], bisect(starts, match.start())
        pronoun, name = _SUBJECTS.get(old.lower()), ""
        if (match.start(), old) in mentioned:
            name = full_names.get(old, "")
        opens = match.start() in starts[number - 1 : number] and not _AFTER_IMPERSONAL_IT.match(text, match.end())
        if pronoun and (pronoun != "it" or opens):
            last = bisect(names, match.start(), key=lambda each: each.start)
            recent = names[max(0, last - _RECENT) : last]
            recent.sort(key=lambda each: (-bisect(starts, each.start), each.start))  # a subject comes first
            name = _find_meant(pronoun, [*recent, *entitled], bound)
            name = full_names.get(name, name)
        if not name or (number, name) in present:
            return old
        present.add((number, name))
        notes[f"{old} = {name}"] += 1
        return _inflect(name, match) if pronoun else name

    short = "|".join([rf"\b{re.escape(name)}\b" for name in full_names] + [_PRONOUN])
    memory = re.sub(f"{_SPEECH}|{short}", complete, text) + given.text[_READ:]
    return GistOut(notes="; ".join(notes), memory=memory.strip() or title or "(empty)")


def _find_full_names(names: set[str]) -> dict[str, str]:
    """The full name of each short name: the only longer one that begins or ends with it."""
    full_names = {}
    long_names = [name for name in names if " " in name]
    for short in sorted(name for name in names if " " not in name):
        longer = [name for name in long_names if name.startswith(f"{short} ") or name.endswith(f" {short}")]
        if len(longer) == 1 and len(longer[0].split()) <= _LONGEST:
            full_names[short] = longer[0]
    return full_names


def rephrase(given: RephraseIn) -> RephraseOut:
    """The question without an opening "and"; "he", "she" and "it" become names of the last turns.

    Each pronoun becomes the latest name that can be meant, of a turn first those in the answer; names in the new
    question do not count. A pronoun that no name fits stays, and so does "they". A question of question words alone
    ("Why?") gets the last question behind it. It may name a wrong person, and does not know "that letter" or "there".
    """
    question = flatten(given.question[:_READ_QUESTION])
    rest = _OPENING.sub("", question, count=1)
    if rest.strip(" ?"):
        question = rest[:1].upper() + rest[1:]
    if not given.turns:
        return RephraseOut(question=question)
    known = {term for each in _list_named(question) for term in list_terms(each.text)}
    texts = [text for turn in reversed(given.turns) for text in (turn.answer, turn.question)]
    names = [each for text in texts for each in _list_named(text[:_READ_QUESTION])]
    names = [each for each in names if known.isdisjoint(list_terms(each.text))]
    replaced: set[str] = set()

    def name_once(match: re.Match[str]) -> str:
        pronoun = _SUBJECTS[match[0].lower()]
        name = "" if pronoun in replaced else _find_meant(pronoun, names, {})
        replaced.add(pronoun)
        return _inflect(name, match) if name else match[0]

    named = re.sub(_PRONOUN, name_once, question)
    if named == question and set(read_question(question).terms) <= ASKING_STEMS:
        named = f"{question.rstrip(' ?')}: {flatten(given.turns[-1].question[:_READ_QUESTION])}"
    return RephraseOut(question=named)
