"""Check that a text contains only names, numbers and dates that another text supports."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tomewise.text.numerals import find_numbers
from tomewise.text.stop_words import STOP

_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_OPENING = re.compile(r"(?:(?:\A|[.!?:;…。！？]|\n)[\s\"'“”‘’«»„()\[\]*#>•–—-]*|,\s*[\"“«„])\Z")
_NAME_GAP = re.compile(r"(?:[ \u00a0]|['’]s )?[-. ]*(?:(?:of|the|de|la|le|du|von|van|der|al|bin|and|&)[ -])*")
_MONTHS = "january february march april may june july august september october november december".split()
_DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_TITLES = """doctor=dr mister=mr missus=mrs saint=st mount=mt professor=prof captain=capt colonel=col general=gen
    lieutenant=lt sergeant=sgt senator=sen reverend=rev governor=gov junior=jr senior=sr company=co corporation=corp"""
_SHORT_FORMS = {
    **{name: name[:3] for name in (*_MONTHS, *_DAYS)},
    **dict(pair.split("=") for pair in _TITLES.split()),
}
_NUMERIC_DATE = re.compile(r"(?<!\d)(\d{1,4})[-./](\d{1,2})[-./](\d{1,4})(?!\d)")
_DEMONYMS = ("ians", "ian", "eans", "ean", "ans", "an", "ese", "ish", "ic", "n", "s")
_STEM = 4  # letters that a name and a word derived from it must share
# German capitalises every noun, so a capital does not show that a word is a name.
_GERMAN = frozenset("der die das und ist nicht ein eine einer den dem des zu mit auf für von im sich war auch".split())
_GERMAN_SHARE = 0.12


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    plain: str
    start: int
    end: int
    opening: bool  # begins a sentence, so its capital does not show that it is a name


def find_unsupported(text: str, source: str) -> list[str]:
    """Find the names and numbers of `text` that `source` does not support, each once, in order; dates consist of both.

    A capitalised word is supported when `source` has it in upper or lower case, as a possessive, abbreviated ("Dr." for
    Doctor), as an adjective ("Italian" for Italy), as an acronym of names in `source`, or as part of a spelled-out
    acronym. The result has whole names, with the words around the unsupported one. A word that begins a sentence or a
    quotation is capitalised by its position, so it is not checked, unless it has a second capital ("McDonald"). Numbers
    match in digits or in words. Number words up to two are not checked, because "both" may become "two". In scripts
    without capitals, and in German, only numbers are checked.
    """
    text, source = _fold(text), _fold(source)
    word_counts = Counter(word.plain for word in _split_words(source))
    german = sum(word_counts[word] for word in _GERMAN)
    found: dict[int, str] = {}
    if not german or german / word_counts.total() < _GERMAN_SHARE:
        found = dict(_find_names(text, _SourceText(source, frozenset(word_counts))))
    known = frozenset(value for number in find_numbers(source) for value in number.values)
    for number in find_numbers(text):
        if not known.intersection(number.values[:1]) and not known.issuperset(number.values[1:] or (None,)):
            found.setdefault(number.start, number.text)
    return list(dict.fromkeys(name for _, name in sorted(found.items())))


class _SourceText:
    """The words and acronyms of a text, which support names."""

    def __init__(self, text: str, words: frozenset[str]) -> None:
        months = {
            _MONTHS[int(part) - 1] for date in _NUMERIC_DATE.findall(text) for part in date if 1 <= int(part) <= 12
        }
        self.words = words | months
        self._stems = frozenset(stem for word in self.words for stem in _list_stems(word))
        capitals = [_join_initials(run) for run in _find_runs(text, list(_split_words(text)))]
        self._acronyms = frozenset(initials for initials in capitals if len(initials) > 1)

    def supports(self, word: str) -> bool:
        if word in self.words or _SHORT_FORMS.get(word) in self.words or word in self._acronyms:
            return True
        return not self._stems.isdisjoint(_list_stems(word))


def _find_names(text: str, source: _SourceText) -> Iterator[tuple[int, str]]:
    words = list(_split_words(text))
    lower = {word.plain for word in words if word.text[0].islower()}
    for run in _find_runs(text, words):
        if len(run) > 1 and _join_initials(run) in source.words:  # they spell out an acronym of the source
            continue
        unsupported = [word for word in run if not source.supports(word.plain) and _is_name(word, lower)]
        if unsupported:
            first = run[1] if run[0] not in unsupported and run[0].opening and len(run) > 1 else run[0]
            yield first.start, text[first.start : run[-1].end]


def _is_name(word: _Word, lower: set[str]) -> bool:
    """Whether the capital of a word shows that it is a name."""
    if word.plain in STOP or word.plain in lower:
        return False
    return not word.opening or any(char.isupper() for char in word.text[1:])


def _find_runs(text: str, words: list[_Word]) -> Iterator[list[_Word]]:
    """Yield runs of neighbouring capitalised words, with the small words between them."""
    run: list[_Word] = []
    for word in words:
        if not any(char.isupper() for char in word.text):
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
    """Yield a name without the ending of an adjective or a plural, and without its last vowels."""
    for end in ("", *_DEMONYMS):
        stem = word.removesuffix(end).rstrip("aeiouy")
        if word.endswith(end) and len(stem) >= _STEM:
            yield stem


def _join_initials(run: Iterable[_Word]) -> str:
    return "".join(word.plain[0] for word in run)


def _fold(text: str) -> str:
    """Normalise compatibility forms; remove accents, soft hyphens and other invisible characters."""
    decomposed = unicodedata.normalize("NFKD", text)
    visible = (char for char in decomposed if unicodedata.category(char) not in ("Mn", "Cf"))
    return unicodedata.normalize("NFC", "".join(visible))
