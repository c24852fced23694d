"""Restate a passage: replace pronouns and short names by full names, and add nothing."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from tomewise.language.extractive.names import Mention, gender, mentions, sort_of
from tomewise.language.extractive.words import WORD
from tomewise.language.roles import GistOut, PassageIn
from tomewise.language.sentences import Sentence, split_sentences

_READ = 24_000
_PRONOUN = re.compile(r"(?<![\w’'-])(?:he|she|his|her|him|hers|it|its)(?![\w’'-])", re.IGNORECASE)
_SPEECH = re.compile(r"[“\"][^“”\"]{0,2000}[”\"]")
_FAMILY = {"he": "he", "his": "he", "him": "he", "she": "she", "her": "she", "hers": "she", "it": "it", "its": "it"}
# "It was clear that", "it rained": here "it" does not stand for a name.
_EMPTY_IT = re.compile(
    r"\s+(?:seem|appear|rain|snow|took|takes|would be"
    r"|(?:is|was|had been|has been)\s+(?:\w+\s+){0,3}(?:that|to|who|when)\b)"
)
_HER_OBJECT = re.compile(
    r"(?:\s*[.,;:!?)—]|\s+(?:and|to|in|on|with|from|at|by|for|as|that|but|again|when|if|up|out|off|down)\b|\s*\Z)"
)


@dataclass(slots=True)
class _Cast:
    """The last name of each kind. A name of unknown gender fits "he" and "she" until one of them is used for it."""

    last: dict[str, str] = field(default_factory=dict)
    unknown: str = ""
    settled: set[str] = field(default_factory=set)

    def begin_sentence(self) -> None:
        """Begin a sentence. The next pronoun stands for its first name of a kind, which is most often its subject."""
        self.settled = set()

    def add(self, mention: Mention, before: str) -> None:
        """Take note of a name. `before` is the word in front of it."""
        pronoun = gender(mention.text)
        sort = "person" if pronoun else sort_of(mention.text, before)
        kind = "it" if sort in ("place", "organization") or mention.kind == "title" else pronoun
        if kind in self.settled:
            return
        self.settled.add(kind)
        if kind:
            self.last[kind] = mention.text
        else:
            self.unknown = mention.text

    def resolve(self, family: str) -> str:
        """The name that a pronoun of this family stands for, or nothing."""
        if family != "it" and self.unknown:
            self.last[family], self.unknown = self.unknown, ""
        return self.last.get(family, "")


def _full_names(names: list[Mention]) -> dict[str, str]:
    """For each short name, the longer name that begins or ends with it, if the passage has exactly one."""
    whole = list(dict.fromkeys(m.text for m in names if m.kind == "name" and " " in m.text))
    short = {m.text for m in names if m.kind == "name" and " " not in m.text}
    full = {}
    for name in sorted(short):
        longer = [
            w for w in whole if (w.endswith(f" {name}") or w.startswith(f"{name} ")) and sort_of(w) in ("person", "")
        ]
        if len(longer) == 1 and len(longer[0].split()) <= 4:
            full[name] = longer[0]
    return full


def _possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def _replacement(pronoun: str, name: str, after: str) -> str:
    plain = pronoun.lower()
    if plain in ("his", "its", "hers") or (plain == "her" and not _HER_OBJECT.match(after)):
        return _possessive(name)
    return name


def gist(given: PassageIn) -> GistOut:
    """The passage with full names instead of short names and of the first pronoun of each kind in a sentence.

    Speech in quotation marks stays as it is: who "he" is there depends on the speaker.
    """
    text = given.text[:_READ]
    names = mentions(text)
    full = _full_names(names)
    cast = _Cast()
    if given.title.strip():
        cast.add(Mention(given.title.strip(), 0, 0, "name"), "")
        if not gender(given.title):
            cast.last["it"] = given.title.strip()
    speech = [m.span() for m in _SPEECH.finditer(text)]
    edits: list[tuple[int, int, str, str]] = []
    for sentence in split_sentences(text, limit=_READ):
        edits += _find_edits(text, sentence, names, speech, cast, full)
    memory = _apply(text, edits) + given.text[_READ:]
    notes = Counter(f"{short} = {name}" for _, _, name, short in edits)
    return GistOut(notes="; ".join(notes), memory=memory.strip() or given.title.strip() or "(empty)")


def _find_edits(
    text: str,
    sentence: Sentence,
    names: list[Mention],
    speech: list[tuple[int, int]],
    cast: _Cast,
    full: dict[str, str],
) -> list[tuple[int, int, str, str]]:
    """The replacements in one sentence: start, end, full name, replaced text."""
    inside = [m for m in names if sentence.start <= m.start < sentence.end and m.kind in ("name", "title")]
    marks: list[tuple[int, int, Mention | None]] = [(m.start, m.end, m) for m in inside]
    marks += [(*m.span(), None) for m in _PRONOUN.finditer(text, sentence.start, sentence.end)]
    edits = []
    done: set[str] = set()
    cast.begin_sentence()
    for start, end, mention in sorted(marks, key=lambda mark: mark[:2]):
        in_speech = any(left <= start < right for left, right in speech)
        if mention is not None:
            edits += _complete_name(text, mention, cast, full, done, in_speech=in_speech)
            continue
        family = _FAMILY[text[start:end].lower()]
        if in_speech or family in done or (family == "it" and (_EMPTY_IT.match(text, end) or start != sentence.start)):
            continue
        name = cast.resolve(family)
        # Do not repeat a name that the sentence already has.
        if name and all(m.text != name for m in inside):
            done.add(family)
            edits.append((start, end, full.get(name, name), text[start:end]))
    return edits


def _complete_name(
    text: str, mention: Mention, cast: _Cast, full: dict[str, str], done: set[str], *, in_speech: bool
) -> list[tuple[int, int, str, str]]:
    """Add a name to the cast. The edit that completes a short name, once a sentence and not in speech."""
    before = WORD.findall(text[max(0, mention.start - 20) : mention.start])[-1:]
    cast.add(mention, before[0] if before else "")
    whole = full.get(mention.text)
    if whole is None or in_speech or whole in done:
        return []
    done.add(whole)
    return [(mention.start, mention.end, whole, mention.text)]


def _apply(text: str, edits: list[tuple[int, int, str, str]]) -> str:
    pieces, at = [], 0
    for start, end, name, short in edits:
        pieces += [
            text[at:start],
            _replacement(short, name, text[end : end + 12]) if short.lower() in _FAMILY else name,
        ]
        at = end
    return "".join([*pieces, text[at:]])
