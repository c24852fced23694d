"""Read the numbers of a text, in digits and in words, token by token."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Literal

_TOKEN = re.compile(r"(?<!\d)\d{1,3}(?: \d{3})+(?![\d.,:/–-]?\d)|\d+(?:[.,:'/–-]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)*|[%$£€°]")
_JOINTS = frozenset((" ", "-", "", ". ", ".-"))


def number_words(words: str, start: float, step: float = 1) -> dict[str, float]:
    """Number words from `start` on."""
    return {word: start + step * at for at, word in enumerate(words.split())}


DIGITS = number_words("zero one two three four five six seven eight nine", 0)
_TEENS = number_words("ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen", 10)
TENS = number_words("twenty thirty forty fifty sixty seventy eighty ninety", 20, 10)
_SCALES: dict[str, float] = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PLAIN = DIGITS | _TEENS | TENS
_ORDINALS = {
    **number_words("first second third fourth fifth sixth seventh eighth ninth", 1),
    **number_words("tenth eleventh twelfth", 10),
    **{word + "th": value for word, value in _TEENS.items() if value > 12},
    **{ten[:-1] + "ieth": value for ten, value in TENS.items()},
}
_NUMBERS = _PLAIN | _ORDINALS
NUMBER_WORDS = frozenset({*_NUMBERS, *_SCALES})
FRACTIONS = {"half": 0.5, "quarter": 0.25}


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    start: int
    end: int
    plain: str


@dataclass(frozen=True, slots=True)
class Amount:
    """A number that ends before token `after`. `readings` has the numbers of each way to read it."""

    readings: tuple[tuple[float | str, ...], ...]
    after: int
    kind: Literal["digits", "words", "ordinal"]
    time: float | None = None  # minutes, if it may be a time

    @property
    def value(self) -> float:
        first = self.readings[0][0]
        return first if isinstance(first, float | int) else -1.0

    @property
    def is_whole(self) -> bool:
        return self.value == int(self.value) if abs(self.value) < 10**9 else False


def read_digits(digits: str) -> tuple[tuple[float | str, ...], ...]:
    """Every number that some country writes so: "1.234" is 1234 or 1.234."""
    digits = digits.replace(" ", "").replace("'", "")
    pieces = re.split("[.,]", digits)
    if sum(map(len, pieces)) > 15:
        return ((digits,),)
    marks = [sign for sign in digits if sign in ".,"]
    whole, decimal = "".join(pieces), "".join(pieces[:-1]) + "." + pieces[-1]
    if not marks:
        return ((float(digits),),)
    if len(set(marks)) == 2 and marks.count(marks[-1]) == 1:
        return ((float(decimal),),)
    is_grouped = len(pieces[0]) <= 3 and all(len(piece) == 3 for piece in pieces[1:])
    readings = [(float(whole),)] if is_grouped else []
    if len(marks) == 1:
        readings.append((float(decimal),))
    readings.sort(reverse=marks[0] == ",")
    return tuple(readings) or (tuple(map(float, pieces)),)


class Tokens:
    """The words, numbers and signs of a folded text, and the numbers that begin at each."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.all = [Token(m[0], m.start(), m.end(), m[0].lower().removesuffix("'s")) for m in _TOKEN.finditer(text)]

    def list_between(self, start: int, end: int) -> list[Token]:
        """The tokens that begin at or behind a sign of the text, and before another."""
        first, after = (bisect_left(self.all, place, key=lambda token: token.start) for place in (start, end))
        return self.all[first:after]

    def plain(self, at: int) -> str:
        """A token in small letters, without the ending of a possessive; empty behind the last."""
        return self.all[at].plain if at < len(self.all) else ""

    def gap(self, at: int) -> str:
        """The signs before a token; a long gap is as good as a full stop."""
        if not 0 < at < len(self.all):
            return "."
        gap = self._text[self.all[at - 1].end : self.all[at].start][:4]
        return " " if gap.isspace() and gap.count("\n") < 2 else gap

    def joins(self, at: int, *gaps: str) -> bool:
        """Whether a token follows the one before with one of these gaps; without any, as words of one value do."""
        return self.gap(at) in (gaps or _JOINTS)

    def skip(self, at: int, *words: str) -> int:
        """Skip these words, each if it is there."""
        for word in words:
            if self.plain(at) == word and self.joins(at):
                at += 1
        return at

    def read_amount(self, at: int) -> Amount | None:
        """Read the number that begins at a token, if one does."""
        if at >= len(self.all):
            return None
        token = self.all[at]
        if token.text[0].isdigit():
            return self._read_digit_amount(at)
        if token.plain in ("a", "an") and self.plain(at + 1) in (*_SCALES, "dozen") and self.joins(at + 1, " "):
            return self._read_words(at + 1)
        return self._read_words(at)

    def _read_digit_amount(self, at: int) -> Amount | None:
        token = self.all[at]
        if re.search(r"[:/–-]", token.text):
            return None
        readings = read_digits(token.text)
        if self.joins(at + 1, "") and self.plain(at + 1) in ("st", "nd", "rd", "th"):
            return Amount(readings, at + 2, "ordinal")
        clock = re.fullmatch(r"(\d\d?)\.([0-5]\d)", token.text)
        time = make_time(float(clock[1]), float(clock[2])) if clock and float(clock[1]) < 24 else None
        after = at + 1
        while (scale := 12 if self.plain(after) == "dozen" else _SCALES.get(self.plain(after))) and self.joins(after):
            readings = tuple(
                tuple(round(n * scale, 6) if not isinstance(n, str) else n for n in way) for way in readings
            )
            after += 1
        return self._add_fraction(Amount(readings, after, "digits", time))

    def _add_fraction(self, amount: Amount) -> Amount:
        """Add "and a half", or the digits behind "point"."""
        after, value = amount.after, amount.value
        if self.plain(after) == "and" and self.plain(after + 1) in ("a", "one"):
            share = FRACTIONS.get(self.plain(after + 2))
            if share and self.joins(after + 2, " ", "-"):
                scale = _SCALES.get(self.plain(after + 3), 0) if self.joins(after + 3, " ") else 0
                readings = (((value + share) * (scale or 1),),)
                return replace(amount, readings=readings, after=after + 4 if scale else after + 3, kind="words")
        if self.plain(after) == "point" and self.joins(after, " "):
            digits, end = "", after + 1
            while self.plain(end) in DIGITS and self.joins(end, " "):
                digits, end = digits + str(int(DIGITS[self.plain(end)])), end + 1
                if len(digits) > 6:
                    break
            if digits:
                return replace(amount, readings=((value + float(f"0.{digits}"),),), after=end, kind="words")
        return amount

    def _read_words(self, at: int) -> Amount | None:
        """Read a run of words as one number, as far as it is one: "eight five-pound notes" begins with 8."""
        return self._read_two_words(at) or self._read_sum(at)

    def _read_two_words(self, at: int) -> Amount | None:
        """Read "five-and-twenty", and the year "nineteen twelve"; both may also be two numbers."""
        first = _PLAIN.get(self.plain(at), 0)
        ten = TENS.get(self.plain(at + 2), 0) if self.plain(at + 1) == "and" else 0
        if 0 < first < 10 and ten and self.joins(at + 1) and self.joins(at + 2):
            return Amount(((ten + first,), (first, ten)), at + 3, "words")
        year = self._read_sum(at + 1) if 10 <= first <= 20 and self.joins(at + 1, " ", "-") else None
        if year and year.kind == "words" and 10 <= year.value < 100:
            return replace(year, readings=((first * 100 + year.value,), (first, year.value)))
        return None

    def _read_sum(self, at: int) -> Amount | None:
        total = group = 0.0
        least = float("inf")  # the last scale
        after, kind = at, "words"
        while after < len(self.all) and kind == "words":
            here = after
            if after > at:
                if self.plain(here) == "and" and not group % 100 and self.plain(here + 1) not in _SCALES:
                    here += 1
                if not self.joins(here, " ", "-") and (group or not self.joins(here, ", ")):
                    break
            word = self.plain(here)
            base = word if word in _NUMBERS or word in _SCALES else word.removesuffix("s").removesuffix("th")
            scale, value = _SCALES.get(base), _NUMBERS.get(word, _ORDINALS.get(word.removesuffix("s")))
            if scale and scale < least and (scale > 100 or group < 100):
                if scale == 100:
                    group = (group or 1) * 100
                else:
                    total, group, least = total + (group or 1) * scale, 0.0, scale
            elif value is not None and (not group % 100 or (group % 100 in TENS.values() and 0 < value < 10)):
                group += value
            else:
                break
            kind = "ordinal" if word in _ORDINALS or word.endswith(("th", "ths")) else "words"
            after = here + 1
        if kind == "words" and self.plain(after) == "dozen" and not total:
            return Amount((((group or 1) * 12,),), after + 1, "words")
        if after == at:
            return None
        amount = Amount(((total + group,),), after, "ordinal" if kind == "ordinal" else "words")
        return amount if kind == "ordinal" else self._add_fraction(amount)


def make_time(hour: float, minute: float = 0) -> float:
    """The minutes since noon or midnight."""
    return (60 * hour + minute) % 720
