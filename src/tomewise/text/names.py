"""Find names, quoted titles, dates and numbers by their form."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from tomewise.text.lexicon import (
    ACTING,
    BEING,
    COUNTRIES,
    HONORIFICS,
    HONORIFICS_HE,
    HONORIFICS_SHE,
    MONTH,
    NAMES_HE,
    NAMES_SHE,
    NO_NAMES,
    NUMBER_WORD,
    ORGANISATIONS,
    PLACE_NOUNS,
    PLACES,
    SAYING,
    STATES,
    WEEKDAY,
)
from tomewise.text.stop_words import STOP
from tomewise.text.words import WORD, flatten

Kind = Literal["name", "title", "date", "number"]

_DATE = re.compile(
    rf"""\b(?:\d{{1,2}}(?:st|nd|rd|th)?\ (?:of\ )?{MONTH}(?:,?\ \d{{4}})?
    |{MONTH}\ \d{{1,2}}(?:st|nd|rd|th)?(?:,?\ \d{{4}})?(?!\d)|{MONTH},?\ (?:of\ )?\d{{4}}
    |(?:the\ )?(?:early|mid|late)?[\ -]?(?:1[0-9]|20)\d0s|(?:1[0-9]|20)\d\d(?:[–-](?:(?:1[0-9]|20)?\d\d))?(?![\d,.]\d)
    |\d{{1,4}}\ (?:BC|AD|BCE|CE)\b|\d{{1,2}}:\d\d(?:\ ?[ap]\.?m\.?)?|\d{{1,2}}\ ?[ap]\.?m\b
    |(?:half\ past\ |quarter\ (?:past|to)\ )?(?:one|{NUMBER_WORD}|\d{{1,2}})\ o['’]clock|{WEEKDAY}|midnight|noon)""",
    re.VERBOSE,
)
_NUMBER = re.compile(
    rf"""(?<![\w.])(?:[$£€]\ ?)?\d{{1,15}}(?:,\d{{3}}){{0,5}}(?:\.\d{{1,9}})?
    (?:\ ?%|\ (?:percent|per\ cent|million|billion|thousand))?(?!\w)
    |\b{NUMBER_WORD}(?:[-\ ](?:and\ )?(?:one|{NUMBER_WORD})){{0,3}}\b""",
    re.VERBOSE | re.IGNORECASE,
)
_TITLE = re.compile(r"[“\"]([^\W_a-zß-ÿ][^“”\"\n]{1,60}?)[,.]?[”\"]")
JOINING = frozenset("of the de la le von van der den du da di del des el al bin ibn y & for".split())
_NO_NAMES_ALONE = STOP | NO_NAMES | HONORIFICS
_OPENING = re.compile(r"(?:\A|[.!?:;\n…]|[“\"‘(\[*])[\s“\"‘'(\[—*-]*\Z")


@dataclass(frozen=True, slots=True)
class Mention:
    """A name, title, date or number: `whole[start:end]`. `text` is the same on one line."""

    text: str
    start: int
    end: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    end: int
    plain: str  # in small letters, and no possessive


class _Reader:
    """Finds the names of one text. A word that the text also writes without a capital is less likely to be a name."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = [
            _Word(m[0], m.start(), m.end(), m[0].lower().replace("’", "'").removesuffix("'s"))
            for m in WORD.finditer(text)
        ]
        self._next = {a.end: b for a, b in pairwise(self._words)}
        self._small = {word.text for word in self._words if word.text[0].islower()}
        self._inside = Counter(
            word.plain for word in self._words if word.text[0].isupper() and not opens_sentence(text, word.start)
        )

    def find_names(self) -> Iterator[Mention]:
        for run in _list_runs(self._text, self._words):
            at = 0
            if opens_sentence(self._text, run[0].start):
                while at < len(run) and self._is_mere_capital(run[at], alone=at == len(run) - 1):
                    at += 1
                    while at < len(run) and run[at].text in JOINING:
                        at += 1
            name = run[at:]
            if not name or (len(name) == 1 and _is_mere_word(name[0])):
                continue
            start, end = name[0].start, name[-1].end
            if name[-1].text.endswith(("'s", "’s")):
                end -= 2
            yield Mention(flatten(self._text[start:end]), start, end, "name")

    def _is_mere_capital(self, word: _Word, *, alone: bool) -> bool:
        """Whether a word has its capital only because it opens a sentence."""
        plain = word.plain
        if plain in STOP or plain in NO_NAMES:
            return plain not in HONORIFICS or alone
        if plain in HONORIFICS or plain in NAMES_HE or plain in NAMES_SHE or self._inside[plain]:
            return False
        if not word.text.isupper() and any(map(str.isupper, word.text[1:])):  # McDonald
            return False
        if plain in self._small or plain.endswith(("ly", "ing", "ness")):
            return True
        return alone and not self._acts(word)

    def _acts(self, word: _Word) -> bool:
        """Whether a verb follows or the word is a possessive, as with the name of a person."""
        following = self._next.get(word.end)
        if word.text.endswith(("'s", "’s")) or not word.text.isascii():
            return True
        return following is not None and (
            following.text in BEING
            or following.text in SAYING
            or following.text.endswith("ed")
            or (following.text in ACTING and not word.plain.endswith("s"))
        )


def _is_mere_word(word: _Word) -> bool:
    """Whether a capitalised word alone is not a name: it is common, a form of address, or shouted."""
    return word.plain in _NO_NAMES_ALONE or (word.text.isupper() and len(word.text) > 6)


def opens_sentence(text: str, start: int) -> bool:
    """Whether a word that begins at `start` opens a sentence, a quotation or an item."""
    return bool(_OPENING.search(text, max(0, start - 8), start))


def _list_runs(text: str, words: list[_Word]) -> list[list[_Word]]:
    """Runs of capitalised words; small joining words stay inside ("University of Copenhagen")."""
    runs: list[list[_Word]] = []
    run: list[_Word] = []
    pending: list[_Word] = []
    for word in words:
        before = pending or run
        last = before[-1] if before else None
        continues = last is not None and _gap_joins(text[last.end : word.start], last)
        is_possessive = bool(run) and not pending and run[-1].text.endswith(("'s", "’s"))
        if word.text[0].isupper() and word.plain not in {"i", "i'm", "i'll", "i've", "i'd"}:
            if run and continues and not is_possessive:
                run += [*pending, word]
            else:
                runs.append(run)
                run = [word]
            pending = []
        elif run and continues and word.text in JOINING and len(pending) < 2 and not is_possessive:
            pending.append(word)
        else:
            runs.append(run)
            run, pending = [], []
    return [run for run in [*runs, run] if run]


def _gap_joins(gap: str, before: _Word) -> bool:
    """Whether two words with this gap can be one name: a space, a hyphen, the dot of an initial."""
    if gap in {" ", "-", "\n", " & ", "’", "'"}:
        return True
    return gap in {". ", ".", ".\n"} and (len(before.text) == 1 or before.plain in HONORIFICS or before.plain == "st")


def find_mentions(text: str) -> list[Mention]:
    """All names, titles, dates and numbers in `text`, in order.

    Where two overlap, a date comes before a quoted title, a title before a name, and a name before a number.
    """
    dates, numbers = _find_by_form(_DATE, text, "date"), _find_by_form(_NUMBER, text, "number")
    return drop_overlaps([*dates, *_find_titles(text), *find_names(text), *numbers], len(text))


def find_names(text: str) -> Iterator[Mention]:
    """The names in `text`, in order; months and weekdays too."""
    return _Reader(text).find_names()


def drop_overlaps(mentions: list[Mention], length: int) -> list[Mention]:
    """The mentions in the order of a text of this `length`; of two that overlap the one listed first."""
    kept = []
    taken = bytearray(length)
    for mention in mentions:
        if not any(taken[mention.start : mention.end]):
            taken[mention.start : mention.end] = b"\x01" * (mention.end - mention.start)
            kept.append(mention)
    return sorted(kept, key=lambda mention: mention.start)


def list_names(text: str) -> list[str]:
    """The names and titles in `text`, in order."""
    return [mention.text for mention in find_mentions(text) if mention.kind in ("name", "title")]


def _find_by_form(pattern: re.Pattern[str], text: str, kind: Kind) -> list[Mention]:
    return [Mention(flatten(m[0]), m.start(), m.end(), kind) for m in pattern.finditer(text) if m[0].strip()]


def _find_titles(text: str) -> list[Mention]:
    """Quoted titles: words in quotation marks, most of them with capitals. Speech has fewer capitals."""
    found = []
    for match in _TITLE.finditer(text):
        words = [word for word in WORD.findall(match[1]) if word not in STOP]
        if (
            words
            and len(words) <= 8
            and match[1][-1] not in "!?,"
            and all(word[0].isupper() or word[0].isdigit() for word in words)
        ):
            found.append(Mention(flatten(match[1]), match.start(1), match.end(1), "title"))
    return found


def find_word_before(text: str, mention: Mention) -> str:
    """The word in front of a mention in `text`; empty without one."""
    words = WORD.findall(text[max(0, mention.start - 20) : mention.start])
    return words[-1] if words else ""


def find_gender(name: str) -> str:
    """`he`, `she`, or empty if the name does not show it."""
    words = [word.lower() for word in WORD.findall(name)]
    for he, she in ((HONORIFICS_HE, HONORIFICS_SHE), (NAMES_HE, NAMES_SHE)):
        if any(word in she for word in words[:2]):
            return "she"
        if any(word in he for word in words[:2]):
            return "he"
    return ""


def find_sort(name: str, before: str = "") -> str:
    """The kind of a name: `person`, `place`, `organization`, or empty. `before` is the word in front of the name."""
    words = [word.lower() for word in WORD.findall(name)]
    if not words:
        return ""
    if words[-1] in ORGANISATIONS or words[0] in ORGANISATIONS:
        return "organization"
    if len(words) > 2 and any(len(word) == 1 for word in words[:-1]):
        return "person"
    if len(words) > 1 and words[-1] in PLACE_NOUNS:
        return "place"
    if words[0] in HONORIFICS or words[0] in NAMES_HE or words[0] in NAMES_SHE:
        return "person"
    if (
        words[-1] in PLACES
        or name.lower() in COUNTRIES
        or name.lower() in STATES
        or words[0] in {"mount", "lake", "fort", "port", "new", "north", "south", "saint"}
    ):
        return "place"
    if before.lower() in {"in", "at", "near", "from", "into", "towards", "to"}:
        return "place"
    return ""
