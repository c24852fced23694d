"""Rewrite a passage with full names in place of pronouns and short names, and add nothing."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

from tomewise.language.roles import GistOut, PassageIn
from tomewise.text.names import Mention, find_gender, find_mentions, find_sort, find_word_before
from tomewise.text.sentences import Sentence, split_sentences

_MAX_CHARACTERS = 24_000  # the rest of a longer passage stays as it is
_PRONOUN = re.compile(r"(?<![\w’'-])(?:he|she|his|her|him|hers|it|its)(?![\w’'-])", re.IGNORECASE)
_SPEECH = re.compile(r"[“\"][^“”\"]{0,2000}[”\"]")
_SUBJECT_FORM = {
    "he": "he",
    "his": "he",
    "him": "he",
    "she": "she",
    "her": "she",
    "hers": "she",
    "it": "it",
    "its": "it",
}
# The words after an "it" that does not stand for a name: "it was clear that", "it rained".
_AFTER_IMPERSONAL_IT = re.compile(
    r"\s+(?:seem|appear|rain|snow|took|takes|would be"
    r"|(?:is|was|had been|has been)\s+(?:\w+\s+){0,3}(?:that|to|who|when)\b)"
)
# The words after a "her" that is an object ("he saw her and left"), not a possessive ("her house").
_AFTER_OBJECT_HER = re.compile(
    r"(?:\s*[.,;:!?)—]|\s+(?:and|to|in|on|with|from|at|by|for|as|that|but|again|when|if|up|out|off|down)\b|\s*\Z)"
)

_Edit: TypeAlias = tuple[int, int, str, str]  # the start and the end of a text, the name to put there, the old text


@dataclass(slots=True)
class _RecentNames:
    """The most recent name for each of the pronouns "he", "she" and "it".

    A name of unknown gender fits "he" and "she", until one of these two is replaced by it.
    """

    by_pronoun: dict[str, str] = field(default_factory=dict)
    unknown_gender: str = ""
    sentence_pronouns: set[str] = field(default_factory=set)  # those for which this sentence has a name; "" if unknown

    def add(self, mention: Mention, before: str) -> None:
        """Add a name of the sentence. `before` is the word in front of it."""
        gender_pronoun = find_gender(mention.text)
        sort = "person" if gender_pronoun else find_sort(mention.text, before)
        pronoun = "it" if sort in ("place", "organization") or mention.kind == "title" else gender_pronoun
        if pronoun in self.sentence_pronouns:
            return
        self.sentence_pronouns.add(pronoun)
        if pronoun:
            self.by_pronoun[pronoun] = mention.text
        else:
            self.unknown_gender = mention.text

    def resolve(self, pronoun: str) -> str:
        """The name that "he", "she" or "it" stands for; empty if no name fits."""
        if pronoun != "it" and self.unknown_gender:
            self.by_pronoun[pronoun], self.unknown_gender = self.unknown_gender, ""
        return self.by_pronoun.get(pronoun, "")


def inflect(name: str, pronoun: str, after: str) -> str:
    """The name in the case of the pronoun that it replaces. `after` is the text behind the pronoun."""
    lower = pronoun.lower()
    if lower in ("his", "its", "hers") or (lower == "her" and not _AFTER_OBJECT_HER.match(after)):
        return f"{name}'" if name.endswith("s") else f"{name}'s"
    return name


def write_gist(given: PassageIn) -> GistOut:
    """The passage with each short name replaced by the full name, once in a sentence.

    In each sentence, names also replace the first form of "he", the first form of "she", and an "it" or "its" at the
    start.
    Speech in quotation marks stays as it is: who "he" is there depends on the speaker.
    """
    text = given.text[:_MAX_CHARACTERS]
    names = find_mentions(text)
    full_names = _find_full_names(names)
    recent = _RecentNames()
    if given.title.strip():
        recent.add(Mention(given.title.strip(), 0, 0, "name"), "")
        if not find_gender(given.title):
            recent.by_pronoun["it"] = given.title.strip()
    speech = [m.span() for m in _SPEECH.finditer(text)]
    edits: list[_Edit] = []
    for sentence in split_sentences(text, limit=_MAX_CHARACTERS):
        edits += _find_edits(text, sentence, names, speech, recent, full_names)
    memory = _apply(text, edits) + given.text[_MAX_CHARACTERS:]
    notes = Counter(f"{old_text} = {name}" for _, _, name, old_text in edits)
    return GistOut(notes="; ".join(notes), memory=memory.strip() or given.title.strip() or "(empty)")


def _find_full_names(names: list[Mention]) -> dict[str, str]:
    """The full name of each short name: the only longer name in the passage that begins or ends with it."""
    long_names = list(dict.fromkeys(m.text for m in names if m.kind == "name" and " " in m.text))
    short_names = {m.text for m in names if m.kind == "name" and " " not in m.text}
    full_names = {}
    for short in sorted(short_names):
        candidates = [
            long
            for long in long_names
            if (long.endswith(f" {short}") or long.startswith(f"{short} ")) and find_sort(long) in ("person", "")
        ]
        if len(candidates) == 1 and len(candidates[0].split()) <= 4:
            full_names[short] = candidates[0]
    return full_names


def _find_edits(
    text: str,
    sentence: Sentence,
    names: list[Mention],
    speech: list[tuple[int, int]],
    recent: _RecentNames,
    full_names: dict[str, str],
) -> list[_Edit]:
    """The replacements in one sentence."""
    sentence_names = [m for m in names if sentence.start <= m.start < sentence.end and m.kind in ("name", "title")]
    marks: list[tuple[int, int, Mention | None]] = [(m.start, m.end, m) for m in sentence_names]
    marks += [(*m.span(), None) for m in _PRONOUN.finditer(text, sentence.start, sentence.end)]
    edits = []
    replaced: set[str] = set()  # pronouns and full names
    recent.sentence_pronouns = set()  # for each only the first name counts: it is most often the subject
    for start, end, mention in sorted(marks, key=lambda mark: mark[:2]):
        in_speech = any(left <= start < right for left, right in speech)
        if mention is not None:
            edits += _complete_name(text, mention, recent, full_names, replaced, in_speech=in_speech)
            continue
        pronoun = _SUBJECT_FORM[text[start:end].lower()]
        if in_speech or pronoun in replaced:
            continue
        if pronoun == "it" and (start != sentence.start or _AFTER_IMPERSONAL_IT.match(text, end)):
            continue
        name = recent.resolve(pronoun)
        # Do not repeat a name that the sentence already has.
        if name and all(m.text != name for m in sentence_names):
            replaced.add(pronoun)
            edits.append((start, end, full_names.get(name, name), text[start:end]))
    return edits


def _complete_name(
    text: str,
    mention: Mention,
    recent: _RecentNames,
    full_names: dict[str, str],
    replaced: set[str],
    *,
    in_speech: bool,
) -> list[_Edit]:
    """Add a name to `recent`. Returns the edit that completes a short name, once in a sentence and not in speech."""
    recent.add(mention, find_word_before(text, mention))
    full_name = full_names.get(mention.text)
    if full_name is None or in_speech or full_name in replaced:
        return []
    replaced.add(full_name)
    return [(mention.start, mention.end, full_name, mention.text)]


def _apply(text: str, edits: list[_Edit]) -> str:
    pieces, last_end = [], 0
    for start, end, name, old_text in edits:
        is_pronoun = old_text.lower() in _SUBJECT_FORM
        new_text = inflect(name, old_text, text[end : end + 12]) if is_pronoun else name
        pieces += [text[last_end:start], new_text]
        last_end = end
    return "".join([*pieces, text[last_end:]])
