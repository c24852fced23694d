"""Find every place of a text that has given words, a value in any spelling, or a pattern: exactly.

Words are compared as quotations are (`alignment`): without differences of case, accents, marks, ligatures, and hyphens
at the end of a line. To read a whole text as words is slow, so an engine for patterns first finds where the longest
word may stand, in any spelling, and only the text around these places is read.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Literal, TypeAlias

import re2

from tomewise.text.alignment import INVISIBLE, Span, find_places, fold, list_variants
from tomewise.text.values import DAYS, MONTHS, NUMBER_WORDS, Reading, find_values, list_number_words

Kind: TypeAlias = Literal["words", "value", "pattern"]
Place: TypeAlias = tuple[int, int]
"""Where a hit begins, and where it ends."""
Finder: TypeAlias = Callable[[str], Iterator[Place]]
"""Yields the hits of a text, in order and without overlaps."""

LONGEST = 1_000  # characters of what is looked for
_SECONDS = 10  # for one text: hits that each look at all of it take time that grows with its square
_MEMORY = 1 << 24  # bytes of a pattern that is compiled
_AROUND = 300  # characters that are read on either side of a word, cut at blanks
_TAGGED = 10  # times as many where tags stand
_PLAIN_PART = re.compile(r"(?<!\^)[a-z0-9]+", re.ASCII)  # of a folded word; a power is written in other signs
_LINE_END = r"-[^\S\n]*\n\s*(?:[0-9-][0-9 -]{0,8}\n\s*)?"  # of a word that is cut, with the number of a page
_ASCII = re.compile(r"[a-z0-9]", re.ASCII | re.IGNORECASE)
_BLANK = re.compile(r"\s")
_PLAIN = frozenset(" \n\t.,;:!?\"()“”’'")  # signs beside a word that belong to no word
_WIDE = {r"\w": r"[\pL\pN\pM_]", r"\W": r"[^\pL\pN\pM_]", r"\d": r"\p{Nd}", r"\D": r"\P{Nd}"}
_ESCAPED = re.compile(r"\\[wd\\]")
_ESCAPE = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*+(?:\]|\\?\Z)|\\.", re.DOTALL)
_NARROW = re.compile(r"\\[WDCQ]|\[:")  # letters beyond ASCII would be missed or taken for none


def make_finder(wanted: str, kind: Kind = "words", *, case: bool = False) -> Finder:
    """The finder of words, of a value such as "1,200" or "3 May 1911", or of a regular expression.

    With `case`, capitals and small letters differ. Raises ValueError for what cannot be looked for.
    """
    if len(wanted) > LONGEST:
        raise ValueError(f"{len(wanted):,} characters are too many to look for: give {LONGEST:,} or fewer")
    if kind == "pattern":
        return _make_pattern_finder(wanted, case=case)
    return _make_value_finder(wanted) if kind == "value" else _make_word_finder(wanted, case=case)


# ---------------------------------------------------------------- patterns


class _Pattern:
    """A pattern of RE2, which finds places in texts."""

    def __init__(self, pattern: str, *, case: bool = False) -> None:
        options = re2.Options()
        options.case_sensitive = case
        options.log_errors = False
        options.max_mem = _MEMORY
        try:
            self._compiled = re2.compile(f"(?m){pattern}".encode(), options)
        except UnicodeEncodeError:
            raise ValueError(f"the pattern {pattern!a} holds bytes that are not UTF-8: type it again") from None
        except re2.error as error:
            reason = error.args[0].decode(errors="replace").partition(": (?m)")[0]
            raise ValueError(f"cannot read the pattern {pattern!a}: {reason}; the syntax is that of RE2") from None

    def find(self, text: str) -> Iterator[Place]:
        """The places that are not empty, in order."""
        encoded, started = text.encode("utf-8", "surrogatepass"), time.monotonic()

        def list_spans() -> Iterator[Place]:
            for match in self._compiled.finditer(encoded):
                if time.monotonic() - started > _SECONDS:
                    raise ValueError(f"the pattern takes longer than {_SECONDS} seconds in one document: write it so "
                                     "that each hit ends soon")  # fmt: skip
                yield match.span()

        spans = list_spans()
        if len(encoded) == len(text):
            yield from (span for span in spans if span[0] < span[1])
            return
        at = characters = 0
        for start, end in spans:
            if start < end:
                characters += len(encoded[at:start].decode("utf-8", "surrogatepass"))
                begins, at = characters, end
                characters += len(encoded[start:end].decode("utf-8", "surrogatepass"))
                yield begins, characters


def _make_pattern_finder(pattern: str, *, case: bool) -> Finder:
    if not pattern:
        raise ValueError("the pattern is empty: give one such as 'colou?r'")
    _Pattern(pattern)  # an error names it as it was written
    return _Pattern(_ESCAPE.sub(_widen, pattern), case=case).find


def _widen(escape: re.Match[str]) -> str:
    """A class of a pattern with the letters and figures of all languages; within brackets, without brackets."""
    text = escape[0]
    if text in (r"\C", r"\Q") or (text[0] == "[" and _NARROW.search(text, 1)):
        raise ValueError(f"cannot read {text!a} in a pattern: write classes of all languages, as [^\\pL\\pN]")
    if text[0] == "[":
        return _ESCAPED.sub(lambda inside: _WIDE.get(inside[0], inside[0]).strip("[]"), text)
    return _WIDE.get(text, text)


# ---------------------------------------------------------------- words


def _make_word_finder(words: str, *, case: bool) -> Finder:
    wanted = fold(words).words
    if not wanted:
        raise ValueError(
            f"{words!a} has no letter and no figure to look for: give a word, or a pattern (--kind pattern)"
        )
    pattern = _write_spellings(tuple(wanted))
    is_plain = len(wanted) == 1 and words.isascii() and words.isalpha()

    def accepts(span: Span) -> bool:
        return not (case and "case" in span.differs)

    def find(text: str) -> Iterator[Place]:
        doubtful: list[Place] = []
        found: list[Place] = []
        places = pattern.find(text) if pattern else [(0, len(text))]
        for start, end in places:
            is_sign = end - start == 1 and not text[start].isascii()  # one that stands for several letters
            if not is_sign and (_ASCII.match(text, start - 1 if start else len(text)) or _ASCII.match(text, end)):
                continue  # within a longer word
            is_ascii = text[start:end].isascii()
            if not (is_plain and is_ascii and end - start == len(words) and _stands_alone(text, start, end)):
                doubtful.append((start, end))
            elif not case or text[start:end] == words:
                found.append((start, end))
        for start, end in _join_windows(text, doubtful, _AROUND + 3 * len(words)):
            spans = find_places(words, text[start:end], least=1)
            found += [(start + span.start, start + span.end) for span in spans if accepts(span)]
        yield from sorted(dict.fromkeys(found))

    return find


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether blanks, or marks that end a sentence, stand beside a word of plain letters."""
    return (not start or text[start - 1] in _PLAIN) and (end == len(text) or text[end] in _PLAIN)


def _join_windows(text: str, places: Iterable[Place], around: int) -> Iterator[Place]:
    """The text `around` places, from blank to blank, and more of it among tags; what overlaps is one window."""
    begun: Place | None = None
    for start, end in places:
        reach = around if text.find("<", max(0, start - around), end + around) < 0 else around * _TAGGED
        first, last = max(0, start - reach), min(len(text), end + reach)
        blank = max(text.rfind(" ", 0, first), text.rfind("\n", 0, first)) if first else -1
        after = _BLANK.search(text, last)
        first, last = blank + 1, after.start() if after else len(text)
        if begun and first <= begun[1]:
            begun = begun[0], max(last, begun[1])
            continue
        if begun:
            yield begun
        begun = first, last
    if begun:
        yield begun


@lru_cache(maxsize=64)
def _write_spellings(words: tuple[str, ...]) -> _Pattern | None:
    """A pattern that finds at least each place where a text writes the longest plain word among these folded ones.

    None if no part of them is in letters or figures of ASCII.
    """
    word = max((part for each in words for part in _PLAIN_PART.findall(each)), key=len, default="")
    if not word:
        return None
    variants = list_variants()
    between = rf"(?:[{_escape(INVISIBLE)}\x{{300}}-\x{{36f}}]|\x{{ad}}\s*|{_LINE_END})*"
    letters = [f"[{letter}{letter.upper()}{_escape(variants.get(letter, ''))}]" for letter in word]
    several = "".join(signs for letters, signs in variants.items() if len(letters) > 1)
    return _Pattern(f"{between.join(letters)}|[{_escape(several)}]", case=True)


def _escape(signs: str) -> str:
    """Signs, and ranges of them, as they stand in a class of a pattern."""
    return "".join(sign if sign == "-" else rf"\x{{{ord(sign):x}}}" for sign in signs)


# ---------------------------------------------------------------- values


def _make_value_finder(written: str) -> Finder:
    values = find_values(f"of {written.strip()}")  # a name that opens a sentence might be any word
    if len(values) != 1:
        what = "no value" if not values else f"{len(values)} values"
        raise ValueError(f"{written!a} is {what}: give one number, date, time, quantity or name")
    wanted = next(filter(None, values[0].readings), values[0].gives)
    hint = _write_hint(wanted)

    def find(text: str) -> Iterator[Place]:
        read = 0
        for at, _ in hint.find(text):
            if at < read:
                continue
            start, read = text.rfind("\n\n", 0, at) + 2, text.find("\n\n", at)
            start, read = (0 if start < 2 else start), (len(text) if read < 0 else read)
            for value in find_values(text[start:read]):
                if wanted <= value.gives:
                    yield start + value.start, start + value.end

    return find


def _write_hint(reading: Reading) -> _Pattern:
    """A pattern that hits each paragraph that may give all these keys."""
    names = [word for sort, word, *_ in reading if sort in ("name", "acronym") and isinstance(word, str)]
    if names and (pattern := _write_spellings(tuple(map(str.lower, names)))):
        return pattern
    ((sort, number, *_), *more) = sorted(reading, key=str)
    if sort == "number" and isinstance(number, float | int) and number == int(number) and not more:
        first = str(int(abs(number)))[0]
        figures = f"[{first}{_escape(list_variants().get(first, ''))}]"
        return _Pattern("|".join([figures, *list_number_words(number)]))
    return _Pattern(r"\pN|hour|noon|mid|" + "|".join([*NUMBER_WORDS, *MONTHS, *DAYS]))
