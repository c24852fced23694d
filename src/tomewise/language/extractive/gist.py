"""A passage restated: pronouns and short names replaced by the names they stand for. Nothing is added."""

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
# "It was clear that", "it rained": an "it" that stands for nothing named.
_EMPTY_IT = re.compile(
    r"\s+(?:seem|appear|rain|snow|took|takes|would be"
    r"|(?:is|was|had been|has been)\s+(?:\w+\s+){0,3}(?:that|to|who|when)\b)"
)
_HER_OBJECT = re.compile(
    r"(?:\s*[.,;:!?)—]|\s+(?:and|to|in|on|with|from|at|by|for|as|that|but|again|when|if|up|out|off|down)\b|\s*\Z)"
)


@dataclass(slots=True)
class _Cast:
    """Who was named last. A name of unknown gender fits either pronoun until a pronoun settles it."""

    last: dict[str, str] = field(default_factory=dict)
    unknown: str = ""
    settled: set[str] = field(default_factory=set)

    def turn(self) -> None:
        """A sentence begins. Its first name of a kind, most often its subject, is what the next pronoun stands for."""
        self.settled = set()

    def name(self, mention: Mention, before: str) -> None:
        known = gender(mention.text)
        sort = "person" if known else sort_of(mention.text, before)
        kind = "it" if sort in ("place", "organization") or mention.kind == "title" else known
        if kind in self.settled:
            return
        self.settled.add(kind)
        if kind:
            self.last[kind] = mention.text
        else:
            self.unknown = mention.text

    def stands_for(self, family: str) -> str:
        if family != "it" and self.unknown:
            self.last[family], self.unknown = self.unknown, ""
        return self.last.get(family, "")


def _full_names(named: list[Mention]) -> dict[str, str]:
    """Short names and the one longer name of the passage that ends or begins with them."""
    whole = list(dict.fromkeys(m.text for m in named if m.kind == "name" and " " in m.text))
    short = {m.text for m in named if m.kind == "name" and " " not in m.text}
    full = {}
    for name in sorted(short):
        longer = [
            w for w in whole if (w.endswith(f" {name}") or w.startswith(f"{name} ")) and sort_of(w) in ("person", "")
        ]
        if len(longer) == 1 and len(longer[0].split()) <= 4:
            full[name] = longer[0]
    return full


def _owning(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def _replacement(pronoun: str, name: str, after: str) -> str:
    plain = pronoun.lower()
    if plain in ("his", "its", "hers") or (plain == "her" and not _HER_OBJECT.match(after)):
        return _owning(name)
    return name


def gist(given: PassageIn) -> GistOut:
    """The passage with the first pronoun of each kind in a sentence, and short names, replaced by full names.

    Speech in quotation marks is left alone: who "he" is there depends on who speaks.
    """
    text = given.text[:_READ]
    named = mentions(text)
    full = _full_names(named)
    cast = _Cast()
    if given.title.strip():
        cast.name(Mention(given.title.strip(), 0, 0, "name"), "")
        if not gender(given.title):
            cast.last["it"] = given.title.strip()
    quiet = [m.span() for m in _SPEECH.finditer(text)]
    edits: list[tuple[int, int, str, str]] = []
    for sentence in split_sentences(text, limit=_READ):
        edits += _edits(text, sentence, named, quiet, cast, full)
    memory = _applied(text, edits) + given.text[_READ:]
    notes = Counter(f"{short} = {name}" for _, _, name, short in edits)
    return GistOut(notes="; ".join(notes), memory=memory.strip() or given.title.strip() or "(empty)")


def _edits(
    text: str,
    sentence: Sentence,
    named: list[Mention],
    quiet: list[tuple[int, int]],
    cast: _Cast,
    full: dict[str, str],
) -> list[tuple[int, int, str, str]]:
    """The replacements in one sentence: start, end, full name, what stood there."""
    inside = [m for m in named if sentence.start <= m.start < sentence.end and m.kind in ("name", "title")]
    marks: list[tuple[int, int, Mention | None]] = [(m.start, m.end, m) for m in inside]
    marks += [(*m.span(), None) for m in _PRONOUN.finditer(text, sentence.start, sentence.end)]
    edits = []
    done: set[str] = set()
    cast.turn()
    for start, end, mention in sorted(marks, key=lambda mark: mark[:2]):
        spoken = any(left <= start < right for left, right in quiet)
        if mention is not None:
            edits += _named(text, mention, cast, full, done, spoken=spoken)
            continue
        family = _FAMILY[text[start:end].lower()]
        if spoken or family in done or (family == "it" and (_EMPTY_IT.match(text, end) or start != sentence.start)):
            continue
        name = cast.stands_for(family)
        # A name that the sentence itself says needs no repeating.
        if name and all(m.text != name for m in inside):
            done.add(family)
            edits.append((start, end, full.get(name, name), text[start:end]))
    return edits


def _named(
    text: str, mention: Mention, cast: _Cast, full: dict[str, str], done: set[str], *, spoken: bool
) -> list[tuple[int, int, str, str]]:
    before = WORD.findall(text[max(0, mention.start - 20) : mention.start])[-1:]
    cast.name(mention, before[0] if before else "")
    whole = full.get(mention.text)
    if whole is None or spoken or whole in done:
        return []
    done.add(whole)
    return [(mention.start, mention.end, whole, mention.text)]


def _applied(text: str, edits: list[tuple[int, int, str, str]]) -> str:
    pieces, at = [], 0
    for start, end, name, short in edits:
        pieces += [
            text[at:start],
            _replacement(short, name, text[end : end + 12]) if short.lower() in _FAMILY else name,
        ]
        at = end
    return "".join([*pieces, text[at:]])
