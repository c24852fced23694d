"""Whether a text names only what another one supports: a check on names, numbers and dates."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tomewise.language.stop_words import STOP
from tomewise.memory.graph.numerals import find_numbers

_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_OPENING = re.compile(r"(?:(?:\A|[.!?:;…。！？]|\n)[\s\"'“”‘’«»„()\[\]*#>•–—-]*|,\s*[\"“«„])\Z")
_NAME_GAP = re.compile(r"(?:[ \u00a0]|['’]s )?[-. ]*(?:(?:of|the|de|la|le|du|von|van|der|al|bin|and|&)[ -])*")
_SHORT_FORMS = {
    "doctor": "dr", "mister": "mr", "missus": "mrs", "saint": "st", "mount": "mt", "professor": "prof",
    "captain": "capt", "colonel": "col", "general": "gen", "lieutenant": "lt", "sergeant": "sgt", "senator": "sen",
    "reverend": "rev", "governor": "gov", "junior": "jr", "senior": "sr", "company": "co", "corporation": "corp",
    "january": "jan", "february": "feb", "march": "mar", "april": "apr", "june": "jun", "july": "jul",
    "august": "aug", "september": "sep", "october": "oct", "november": "nov", "december": "dec",
    "monday": "mon", "tuesday": "tue", "wednesday": "wed", "thursday": "thu", "friday": "fri", "saturday": "sat",
    "sunday": "sun",
}  # fmt: skip
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_NUMERIC_DATE = re.compile(r"(?<!\d)(\d{1,4})[-./](\d{1,2})[-./](\d{1,4})(?!\d)")
_DEMONYMS = ("ians", "ian", "eans", "ean", "ans", "an", "ese", "ish", "ic", "n", "s")
_STEM = 4  # letters that a name and what is derived from it share at least
# German capitalises every noun, so there a capital tells nothing of a name.
_GERMAN = frozenset("der die das und ist nicht ein eine einer den dem des zu mit auf für von im sich war auch".split())
_GERMAN_SHARE = 0.12


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    plain: str
    start: int
    end: int
    opening: bool  # it begins a sentence, where a capital says nothing


def find_unsupported(text: str, ground: str) -> list[str]:
    """The names and numbers of `text` that `ground` does not support, each once, in order; dates are made of both.

    A word with a capital is supported when `ground` has it in any case, as a possessive, abbreviated ("Dr." for
    Doctor), as an adjective ("Italian" for Italy), as an acronym of names there or one spelled out. Names are given
    whole, with the words around the one that is not supported. A word that opens a sentence, or a quoted one, owes its
    capital to its place and is let pass there, however often, unless it has another one within ("McDonald"). Numbers
    match in digits or in words and above two only: "both" may become "two". In scripts without capitals, and in German,
    only numbers are checked.
    """
    text, ground = _fold(text), _fold(ground)
    said = Counter(word.plain for word in _split_words(ground))
    found = {} if _is_german(said) else dict(_find_names(text, _Ground(ground, frozenset(said))))
    known = frozenset(value for number in find_numbers(ground) for value in number.values)
    for number in find_numbers(text):
        if not known.intersection(number.values[:1]) and not known.issuperset(number.values[1:] or (None,)):
            found.setdefault(number.start, number.text)
    return list(dict.fromkeys(name for _, name in sorted(found.items())))


class _Ground:
    """The words that support a name."""

    def __init__(self, text: str, words: frozenset[str]) -> None:
        months = {
            _MONTHS[int(part) - 1] for date in _NUMERIC_DATE.findall(text) for part in date if 1 <= int(part) <= 12
        }
        self._words = words | months
        self._stems = frozenset(stem for word in self._words for stem in _list_stems(word))
        capitals = [_join_initials(run) for run in _find_runs(text, list(_split_words(text)))]
        self._acronyms = frozenset(initials for initials in capitals if len(initials) > 1)

    def supports(self, word: str) -> bool:
        if word in self._words or _SHORT_FORMS.get(word) in self._words:
            return True
        if word in self._acronyms:
            return True
        return not self._stems.isdisjoint(_list_stems(word))

    def has_acronym_of(self, run: list[_Word]) -> bool:
        """Whether the words spell out an acronym that is there."""
        return len(run) > 1 and _join_initials(run) in self._words


def _find_names(text: str, ground: _Ground) -> Iterator[tuple[int, str]]:
    words = list(_split_words(text))
    lower = {word.plain for word in words if word.text[0].islower()}
    for run in _find_runs(text, words):
        if ground.has_acronym_of(run):
            continue
        strange = [word for word in run if not ground.supports(word.plain) and _is_name(word, lower)]
        if strange:
            first = run[1] if run[0] not in strange and run[0].opening and len(run) > 1 else run[0]
            yield first.start, text[first.start : run[-1].end]


def _is_name(word: _Word, lower: set[str]) -> bool:
    """Whether the capital of a word says that it is a name."""
    if word.plain in STOP or word.plain in lower:
        return False
    return not word.opening or any(sign.isupper() for sign in word.text[1:])


def _find_runs(text: str, words: list[_Word]) -> Iterator[list[_Word]]:
    """Words with a capital that stand together, with the little words between them."""
    run: list[_Word] = []
    for word in words:
        if not any(sign.isupper() for sign in word.text):
            continue
        if run and (word.opening or not _NAME_GAP.fullmatch(text[run[-1].end : word.start])):
            yield run
            run = []
        run.append(word)
    if run:
        yield run


def _split_words(text: str) -> Iterator[_Word]:
    for match in _TOKEN.finditer(text):
        word = match[0]
        plain = re.sub(r"['’]s?\Z", "", word).casefold().replace("’", "'")
        opening = word[0].isupper() and bool(_OPENING.search(text, max(0, match.start() - 12), match.start()))
        yield _Word(word, plain, match.start(), match.end(), opening)


def _list_stems(word: str) -> Iterator[str]:
    """A name without the ending of an adjective or a plural, and without its last vowels."""
    yield from (stem for end in ("", *_DEMONYMS) if word.endswith(end) and len(stem := _trim(word, end)) >= _STEM)


def _trim(word: str, end: str) -> str:
    return word[: len(word) - len(end)].rstrip("aeiouy")


def _join_initials(run: Iterable[_Word]) -> str:
    return "".join(word.plain[0] for word in run)


def _fold(text: str) -> str:
    """Compatibility forms made one, accents taken off, and soft hyphens and their like, which no prompt shows."""
    parted = unicodedata.normalize("NFKD", text)
    kept = (sign for sign in parted if unicodedata.category(sign) not in ("Mn", "Cf"))
    return unicodedata.normalize("NFC", "".join(kept))


def _is_german(said: Counter[str]) -> bool:
    total = sum(said.values())
    return total > 0 and sum(said[word] for word in _GERMAN) / total >= _GERMAN_SHARE
