"""Find the values of a text, whatever their spelling: names, numbers, dates, times, quantities, negations."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from itertools import groupby, islice
from typing import Literal

from tomewise.text.amounts import (
    DIGITS,
    FRACTIONS,
    NUMBER_WORDS,
    TENS,
    Amount,
    Token,
    Tokens,
    make_time,
    number_words,
    read_digits,
)
from tomewise.text.lexicon import HONORIFICS, NO_NAMES
from tomewise.text.names import find_names, opens_sentence
from tomewise.text.stop_words import STOP
from tomewise.text.words import stem

Kind = Literal["name", "number", "ordinal", "date", "weekday", "time", "quantity", "negation"]
Key = tuple[str | float, ...]
"""What is compared: a sort, such as `number` or `day`, and what tells one of its kind from another."""
Reading = frozenset[Key]

_SMALL = 2  # number words up to this are too common ("one of", "both") to be missed
_DECADES = {ten[:-1] + "ies": value for ten, value in TENS.items()}
_MONTHS = number_words("january february march april may june july august september october november december", 1)
_MONTHS |= {name[:3]: value for name, value in _MONTHS.items()} | {"sept": 9}
_DAYS = number_words("monday tuesday wednesday thursday friday saturday sunday", 0)
# Each base unit, then its multiples with their spellings. Months have no fixed length in days.
_MEASURES = """
    second: 1 second sec secs, 60 minute min mins, 3600 hour hr hrs h, 86400 day, 604800 week, 1209600 fortnight
    month: 1 month, 12 year yr yrs, 120 decade, 1200 century centuries
    metre: 1 metre meter m, 1000 kilometre kilometer km, 0.01 centimetre centimeter cm, 0.001 millimetre millimeter mm
    foot: 1 foot feet ft, 0.083333333333 inch inches, 3 yard yd yds, 5280 mile mi
    gram: 1 gram gramme g, 1000 kilogram kilogramme kilo kg kgs, 0.001 milligram mg, 1000000 tonne
    ounce: 1 ounce oz
    ton: 1 ton
    pound: 1 pound £ lb lbs quid gbp
    litre: 1 litre liter l, 0.001 millilitre milliliter ml
    gallon: 1 gallon, 0.125 pint
    dollar: 1 dollar $ usd, 0.01 cent
    euro: 1 euro € eur
    shilling: 1 shilling
    penny: 1 penny pence pennies
    guinea: 1 guinea
    franc: 1 franc
    acre: 1 acre
    hectare: 1 hectare ha
    degree: 1 degree °
    percent: 1 percent %
    knot: 1 knot
    fathom: 1 fathom"""
_UNIT: dict[str, tuple[str, float]] = {
    name: (base.strip(), float(factor))
    for base, _, multiples in (line.partition(":") for line in _MEASURES.strip().split("\n"))
    for factor, *names in map(str.split, multiples.split(","))
    for word in names
    for name in ((word, word + "s") if len(word) > 2 else (word,))
}
_UNIT |= {"daily": _UNIT["day"], "hourly": _UNIT["hour"], "weekly": _UNIT["week"], "monthly": _UNIT["month"]}
_UNIT |= {"yearly": _UNIT["year"], "annual": _UNIT["year"], "annually": _UNIT["year"]}
_RATES = frozenset("daily hourly weekly monthly yearly annual annually".split())
_ABBREVIATED = frozenset("h m g l ha mi".split())  # units only behind digits
_PARTS = frozenset(
    "chapter part book volume vol act scene section canto article appendix plate figure war title phase".split()
)
_ROMAN = re.compile(r"(?=.)m{0,3}(cm|cd|d?c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})")
_ROMAN_SIGNS = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}
_BEFORE_MONTHS = frozenset("in of since until till last next by this from to and late early during".split())
_SIDES = {"past": 1, "after": 1, "to": -1, "before": -1, "till": -1}  # of the hour
DENYING = frozenset("not never no none nobody nothing nor neither without cannot nowhere".split())
_ACTS = frozenset(
    """came went gave took made saw got began became kept left found knew met ran set put let sat stood held
    brought read lost won fell felt led sent paid""".split()
)
_BEGINNINGS = frozenset(
    {
        *NUMBER_WORDS,
        *FRACTIONS,
        *_MONTHS,
        *_DAYS,
        *_DECADES,
        *_UNIT,
        *DENYING,
        *"a an noon midday midnight dozen".split(),
    }
)
_END = re.compile(r"[.!?;:…\n]")
_CLAUSE = re.compile(r"[.!?;:,…\n]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


@dataclass(frozen=True, slots=True)
class Value:
    """A value as written: `whole[start:end] == text`.

    It stands in a text that has all keys of one of its `readings`: "9.20" is a number or a time. What is too common to
    be missed has a reading without keys. `gives` are the keys for which it stands itself: a day also gives its month.
    """

    text: str
    start: int
    end: int
    kind: Kind
    readings: tuple[Reading, ...]
    gives: Reading


def find_values(text: str) -> list[Value]:
    """Find the values of a text, in order: the numbers of all languages in digits, the rest in English."""
    folded = FoldedText(text)
    return [folded.restore(value) for value in folded.find_values()]


class FoldedText:
    """A text without compatibility forms, accents and invisible signs, which knows where its signs come from."""

    def __init__(self, original: str) -> None:
        self._original = original
        self.text = original.replace("’", "'")
        self._starts: Sequence[int] = range(len(original))
        self._ends: Sequence[int] = range(1, len(original) + 1)
        if not self.text.isascii():
            self._fold()

    def find_values(self) -> list[Value]:
        """The values, with their places in the folded text."""
        return _Scan(self.text).find()

    def restore(self, value: Value) -> Value:
        """A value of the folded text as the original has it."""
        start, end = self._starts[value.start], self._ends[value.end - 1]
        return replace(value, text=self._original[start:end], start=start, end=end)

    def _fold(self) -> None:
        pieces: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        done = 0
        for match in _NOT_ASCII.finditer(self.text):
            at, sign = match.start(), match[0]
            if done < at:
                pieces.append(self.text[done:at])
                starts += range(done, at)
                ends += range(done + 1, at + 1)
            parts = _decompose(sign, pieces[-1][-1:] if pieces else "")
            pieces += filter(None, [parts])
            starts += [at] * len(parts)
            ends += [at + 1] * len(parts)
            if ends and unicodedata.category(sign) == "Mn":
                ends[-1] = at + 1
            done = at + 1
        self.text = "".join([*pieces, self.text[done:]])
        self._starts = [*starts, *range(done, len(self._original))]
        self._ends = [*ends, *range(done + 1, len(self._original) + 1)]


def _decompose(sign: str, before: str) -> str:
    """What takes the place of a sign behind another: 1/2 behind a digit is ".5", an accent is nothing."""
    if sign.isdecimal():
        return str(unicodedata.decimal(sign))
    category = unicodedata.category(sign)
    if category == "No":
        share = unicodedata.numeric(sign)
        if share >= 1:
            return " "  # a mark such as that of a note
        return f"{share:.3f}"[0 if not before.isdigit() else 1 :].rstrip("0")
    if category == "So":
        return " "  # "№" would read as a denial
    return "".join(
        part for part in unicodedata.normalize("NFKD", sign) if unicodedata.category(part) not in ("Mn", "Cf")
    )


class _Scan:
    """Reads one folded text from left to right, each word a bounded number of times."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens = Tokens(text)
        self._all, self._plain, self._gap, self._joins = tokens.all, tokens.plain, tokens.gap, tokens.joins
        self._skip, self._read_amount = tokens.skip, tokens.read_amount
        self._values: list[Value] = []

    def find(self) -> list[Value]:
        at = 0
        while at < len(self._all):
            at = self._read_at(at)
        taken = bytearray(len(self._text))
        for value in self._values:
            taken[value.start : value.end] = b"\x01" * (value.end - value.start)
        return sorted([*self._values, *self._find_names(taken)], key=lambda value: value.start)

    def _find_names(self, taken: bytearray) -> Iterator[Value]:
        """The names, without what is part of another value."""
        for mention in find_names(self._text):
            tokens = self._tokens.list_between(mention.start, mention.end)
            for is_taken, run in groupby(tokens, lambda token: taken[token.start]):
                words = [word for word in run if word.text[0].isupper() and word.text[0] <= "ɏ"]
                opens = len(words) > 1 and opens_sentence(self._text, words[0].start)
                if opens and self._text.startswith(" of ", words[0].end):
                    words = words[1:]  # "Suspicion of Brown" has its capital from its place
                if words and not is_taken and (len(words) > 1 or words[0].plain.partition("'")[0] not in STOP):
                    yield self._make_name(words, min(mention.end, words[-1].end))
                    taken[words[0].start : words[-1].end] = b"\x01" * (words[-1].end - words[0].start)
        for at, token in enumerate(self._all):
            if not taken[token.start] and self._may_be_name(at):
                yield self._make_name([token], token.end)

    def _make_name(self, words: Sequence[Token], end: int) -> Value:
        """A name is there if all its words are, or the acronym that they spell out."""
        plain = [_strip(word.text) for word in words]
        initials = "".join(word[0] for word in plain)
        own: Reading = frozenset(("name", word) for word in plain)
        # "Mr. Reed" is there where "Tom Reed" is.
        bare: Reading = frozenset(("name", word) for word in plain if word not in HONORIFICS) or own
        readings = (bare, frozenset({("acronym", initials)})) if len(plain) > 2 else (bare,)
        start = words[0].start
        return Value(self._text[start:end], start, end, "name", readings, own | {("name", initials)})

    def _may_be_name(self, at: int) -> bool:
        """Whether a word that opens a sentence could be a name that acts: "Napoleon came"."""
        token = self._all[at]
        if not token.text[0].isupper() or not token.text[1:].islower() or self._plain(at + 1) not in _ACTS:
            return False
        if token.plain in STOP or token.plain in NO_NAMES or token.plain.endswith("s"):
            return False
        return self._gap(at + 1) == " " and opens_sentence(self._text, token.start)

    def _read_at(self, at: int) -> int:
        token = self._all[at]
        if token.text[0].isdigit():
            if after := self._read_chunk(at):
                return after
        elif token.text.isalpha() and not _may_begin(token.plain):
            return at + 1
        for read in (self._read_date, self._read_time, self._read_quantity, self._read_number, self._read_word):
            if after := read(at):
                return after
        return at + 1

    def _add(
        self, first: int, after: int, kind: Kind, readings: Iterable[Iterable[Key]], gives: Iterable[Key] = ()
    ) -> int:
        self._add_span(self._all[first].start, self._all[after - 1].end, kind, readings, gives)
        return after

    def _add_span(
        self, start: int, end: int, kind: Kind, readings: Iterable[Iterable[Key]], gives: Iterable[Key] = ()
    ) -> None:
        ways = tuple(map(frozenset, readings))
        given = frozenset(key for key in frozenset(gives).union(*ways) if key[0] != "loose")
        self._values.append(Value(self._text[start:end], start, end, kind, ways, given))

    # Numbers

    def _read_number(self, at: int) -> int:
        amount = self._read_amount(at)
        if amount is None:
            return 0
        plain = self._plain(amount.after)
        if plain in ("century", "centuries") and amount.kind == "ordinal":
            return self._add(at, amount.after + 1, "date", [[("century", amount.value)]], [("number", amount.value)])
        if plain in _DECADES and 10 <= amount.value <= 20:  # the eighteen-seventies
            decade = _DECADES[plain]
            full: Key = ("decade", 100 * amount.value + decade)
            return self._add(at, amount.after + 1, "date", [[full]], [("decade", decade)])
        ways = _list_number_keys(amount.readings)
        if amount.time is not None:
            ways.append([("time", amount.time)])
        # Units that stand further away: "five or six men and three miles".
        gives: list[Key] = [("bare", number) for _, number in ways[0]]
        gives += self._list_quantities(amount.value, amount.after, amount.after + 7)
        gives += _list_eras(amount.value) if amount.is_whole else []
        kind: Kind = "ordinal" if amount.kind == "ordinal" else "number"
        if amount.kind != "digits" and 0 <= amount.value <= _SMALL:
            ways, gives = [[]], [*gives, *ways[0]]
        return self._add(at, amount.after, kind, ways, gives)

    def _read_chunk(self, at: int) -> int:
        """Read digits with signs between: a date, a time, a range, or numbers."""
        token = self._all[at]
        if dates := list(_read_numeric_date(token.text)):
            readings = [[("day", month, day), *_list_years(year)] for year, month, day in dates]
            return self._add(at, at + 1, "date", readings, (key for each in dates for key in _list_day_keys(*each)))
        if clock := re.fullmatch(r"(\d\d?):([0-5]\d)(?::[0-5]\d)?", token.text):
            hour, minute = map(float, clock.groups())
            time: Key = ("time", make_time(hour, minute))
            return self._add(at, self._skip_half_day(at + 1), "time", [[time]], [("number", hour), ("number", minute)])
        if self._plain(at + 1) == "s" and self._joins(at + 1, "", "'") and re.fullmatch(r"(\d\d)?\d0", token.text):
            decade = float(token.text)
            return self._add(at, at + 2, "date", [[("decade", decade)]], [("decade", decade % 100)])
        pieces = list(re.finditer(r"[^:/–-]+", token.text))
        for number, piece in enumerate(pieces if len(pieces) > 1 else ()):
            ways = read_digits(piece[0])
            if (
                number == 1 and re.fullmatch(r"\d{4}", pieces[0][0]) and re.fullmatch(r"\d\d", piece[0])
            ):  # the second year of "1914-18"
                ways = ((float(pieces[0][0][:2] + piece[0]),), *ways)
            first = ways[0][0]
            gives: list[Key] = [("bare", each) for way in ways for each in way]
            if not isinstance(first, str):
                gives += [*_list_eras(first), *self._list_quantities(first, at + 1, at + 2)]
            start = token.start + piece.start()
            self._add_span(start, start + len(piece[0]), "number", _list_number_keys(ways), gives)
        return at + 1 if len(pieces) > 1 else 0

    def _list_quantities(self, number: float, first: int, after: int) -> list[Key]:
        """The quantity of a number and the first unit among these tokens."""
        units = (unit for at in range(first, min(after, len(self._all))) if (unit := self._find_unit(at, far=True)))
        return [("quantity", round(number * factor, 4), base) for base, factor in islice(units, 1)]

    # Dates and times

    def _read_date(self, at: int) -> int:
        month = self._find_month(at, alone=True)
        if month is None:
            return self._read_day_first(at)
        after = self._skip(at + 1, "the")
        day = self._read_amount(after) if self._joins(after, " ", ", ", ". ", "-") else None
        if day and day.is_whole and 1 <= day.value <= 31 and day.kind != "words":
            return self._add_day(at, day.after, month, day.value)
        year, after = self._read_year(at + 1)
        if not year and self._plain(at) in ("may", "march") and self._plain(at - 1) not in _BEFORE_MONTHS:
            return self._add(at, at + 1, "date", [[]], [("month", month)])  # perhaps a verb that opens a sentence
        return self._add(at, after, "date", [[("month", month), *_list_years(year)]], _list_eras(year))

    def _read_day_first(self, at: int) -> int:
        day = self._read_amount(at)
        if day is None or not day.is_whole or not 1 <= day.value <= 31:
            return 0
        after = self._skip(day.after, "day", "of")
        month = self._find_month(after, alone=False)
        if month is None or not self._joins(after):
            return 0
        return self._add_day(at, after + 1, month, day.value)

    def _add_day(self, at: int, after: int, month: float, day: float) -> int:
        year, after = self._read_year(after)
        return self._add(
            at, after, "date", [[("day", month, day), *_list_years(year)]], _list_day_keys(year, month, day)
        )

    def _read_year(self, at: int) -> tuple[float, int]:
        """The year that stands here, or 0, and where it ends."""
        if not self._joins(at, " ", ", ", ". ", "., "):
            return 0, at
        amount = self._read_amount(self._skip(at, "of", "in"))
        if amount and amount.is_whole and 1000 <= amount.value < 2200 and amount.kind != "ordinal":
            return amount.value, amount.after
        return 0, at

    def _find_month(self, at: int, *, alone: bool) -> float | None:
        """The month that a word names; a short form needs a number beside it."""
        plain = self._plain(at)
        month = _MONTHS.get(plain)
        if month is None or not self._all[at].text[0].isupper():
            return None
        is_short = len(plain) < 5 and plain not in ("may", "june", "july")
        if alone and is_short and not self._plain(at + 1)[:1].isdigit():
            return None
        return month

    def _skip_half_day(self, at: int) -> int:
        """Skip "o'clock", "am", "p.m."."""
        at += self._plain(at) in ("o'clock", "oclock")
        if self._plain(at) in ("am", "pm") and self._joins(at, " ", ""):
            return at + 1
        return (
            at + 2 if self._plain(at) in ("a", "p") and self._plain(at + 1) == "m" and self._gap(at + 1) == "." else at
        )

    def _read_time(self, at: int) -> int:
        plain, amount = self._plain(at), self._read_amount(at)
        if plain in ("noon", "midday", "midnight"):
            return self._add(at, at + 1, "time", [[("time", 0.0)], [("number", 12.0)]])
        share = at + (plain == "a")
        if self._plain(share) in FRACTIONS:
            minutes, after = 60 * FRACTIONS[self._plain(share)], share + 1
        elif amount and amount.is_whole and amount.kind != "ordinal":
            minutes, after = amount.value, self._skip(amount.after, "minutes")
        else:
            minutes, after = 60.0, at
        sign = _SIDES.get(self._plain(after), 0)
        hour = self._read_hour(after + 1) if sign and minutes < 60 else None
        if hour:
            numbers: list[Key] = [("number", minutes), ("number", hour.value)]
            ways: list[list[Key]] = [[("time", make_time(hour.value, sign * minutes))]]
            if sign < 0 and after == (amount or hour).after:  # "ten to twelve" may be men
                ways.append(numbers)
            return self._add(at, self._skip_half_day(hour.after), "time", ways, [*numbers, ("bare", hour.value)])
        if amount is None or amount.kind == "ordinal":
            return 0
        end = self._skip_half_day(amount.after)
        time = make_time(amount.value) if amount.is_whole and amount.value < 24 else amount.time
        if end > amount.after and time is not None:
            value = amount.value
            return self._add(at, end, "time", [[("time", time)], [("number", value)]], [("bare", value)])
        return self._read_spoken_time(at, amount)

    def _read_hour(self, at: int) -> Amount | None:
        hour = self._read_amount(at) if self._joins(at) else None
        is_hour = hour and hour.is_whole and 1 <= hour.value <= 12 and hour.kind != "ordinal"
        return hour if hour and is_hour and not self._find_unit(hour.after) else None

    def _read_spoken_time(self, at: int, hour: Amount) -> int:
        """Read "six thirty-five" and "six, three, five", which may also be numbers."""
        if hour.kind != "words" or not hour.is_whole or not 0 < hour.value <= 12:
            return 0
        after, digits = hour.after, ""
        minute = self._read_amount(after) if self._joins(after, " ", "-") else None
        if minute and minute.kind == "words" and 10 <= minute.value < 60 and not self._find_unit(minute.after):
            numbers, after, minutes = [hour.value, minute.value], minute.after, minute.value
        else:
            while len(digits) < 2 and self._plain(after) in DIGITS and self._joins(after, ", "):
                digits, after = digits + str(int(DIGITS[self._plain(after)])), after + 1
            numbers, minutes = [hour.value, *map(float, digits)], float(digits.ljust(2, "0"))
        if len(numbers) == 1 or minutes >= 60:
            return 0
        ways: list[list[Key]] = [[("time", make_time(hour.value, minutes))], [("number", each) for each in numbers]]
        return self._add(at, after, "number" if digits else "time", ways, [("bare", each) for each in numbers])

    # Quantities

    def _find_unit(self, at: int, *, far: bool = False) -> tuple[str, float] | None:
        """The unit that a word names; short forms are units directly behind digits only."""
        plain = self._plain(at)
        if plain == "per" and self._plain(at + 1) == "cent":
            return _UNIT["percent"]
        if plain not in _UNIT or plain in _RATES or (plain in ("$", "£", "€") and self._joins(at, " ")):
            return None
        if not far and not self._joins(at):
            return None
        if plain in _ABBREVIATED and (far or not self._plain(at - 1)[-1:].isdigit()):
            return None
        return None if far and plain in ("second", "$", "£", "€") else _UNIT[plain]

    def _read_quantity(self, at: int) -> int:
        quantity = self._read_one_quantity(at)
        if quantity is None:
            return self._read_unit(at)
        value, (base, factor), after = quantity
        numbers, units, total = [value], [factor], value * factor
        while (following := self._skip_and(after)) > 0:
            share = FRACTIONS.get(self._plain(following + 1), 0) if self._plain(following) == "a" else 0
            if share and not self._find_unit(following + 2):  # "an hour and a half"
                total, after = total + share * units[-1], following + 2
                break
            more = self._read_one_quantity(following)
            if more is None or more[1][0] != base or more[1][1] >= units[-1]:
                break
            numbers, units = [*numbers, more[0]], [*units, more[1][1]]
            total, after = total + numbers[-1] * units[-1], more[2]
        whole = round(total / units[-1], 4)
        key: Key = ("quantity", round(total, 4), base)
        is_one = total == factor and not self._plain(at)[0].isdigit()
        ways: list[list[Key]] = [[("unit", base, factor)]] if is_one else [[key], [("loose", whole)]]
        gives: list[Key] = [key, ("measured", whole), *(("number", number) for number in (*numbers, whole))]
        return self._add(at, after, "quantity", ways, [*gives, *(("unit", base, unit) for unit in units)])

    def _skip_and(self, at: int) -> int:
        """Where the next part of a sum would begin; 0 if none can."""
        return self._skip(at, "and") if self._joins(at, " ", ", ") else 0

    def _read_one_quantity(self, at: int) -> tuple[float, tuple[str, float], int] | None:
        """A number and its unit: value, unit, and where it ends."""
        plain = self._plain(at)
        if plain in ("$", "£", "€"):
            amount = self._read_amount(at + 1) if self._joins(at + 1, "", " ") else None
            return (amount.value, _UNIT[plain], amount.after) if amount and amount.value >= 0 else None
        if plain in FRACTIONS or (plain == "a" and self._plain(at + 1) in FRACTIONS):
            share = at + (plain == "a")
            after = self._skip(share + 1, "of", "a", "an")
            unit = self._find_unit(after)
            return (FRACTIONS[self._plain(share)], unit, after + 1) if unit and after > share + 1 else None
        if (
            plain in ("a", "an")
            and (unit := self._find_unit(at + 1))
            and self._plain(at + 1) not in ("second", "day", "foot", "degree", "pound")
        ):
            return 1.0, unit, at + 2
        amount = self._read_amount(at)
        if amount is None or amount.kind == "ordinal" or amount.value < 0:
            return None
        after = self._skip(amount.after, "more", "full", "whole", "square", "cubic", "us", "long", "solid", "old")
        unit = self._find_unit(after)
        if unit is None:
            return None
        return amount.value, unit, after + 1 + (self._plain(after) == "per")

    def _read_unit(self, at: int) -> int:
        """A unit without a number is not checked, and gives itself."""
        plain = self._plain(at)
        unit = _UNIT.get(plain)
        if unit is None or plain in _ABBREVIATED or plain == "second" or not plain.isalpha():
            return 0
        return self._add(at, at + 1, "quantity", [[]], [("unit", *unit)])

    # Words

    def _read_word(self, at: int) -> int:
        token = self._all[at]
        plain = token.plain
        day = _DAYS.get(plain.removesuffix("s")) if token.text[0].isupper() else None
        if day is not None:
            return self._add(at, at + 1, "weekday", [[("weekday", day)]])
        if plain in _DECADES:
            return self._add(at, at + 1, "date", [[("decade", _DECADES[plain])]])
        if numeral := self._read_roman(at):
            return self._add(at, at + 1, "ordinal", [[("number", numeral)]], [("bare", numeral)])
        if plain in DENYING or plain.endswith("n't"):
            words = tuple(self._list_denied(at))
            return self._add(at, at + 1, "negation", [[]], [("negation", *words)]) if words else 0
        return 0

    def _read_roman(self, at: int) -> float:
        token = self._all[at]
        before = self._all[at - 1] if at and self._joins(at, " ") else None
        if before is None or len(token.text) > 12 or not _ROMAN.fullmatch(token.text.lower()):
            return 0
        is_part = before.plain in _PARTS
        is_after_name = before.text[0].isupper() and len(token.text) > 1 and not set(token.text) - set("IVX")
        if not (is_part and token.text in (token.text.upper(), token.text.lower())) and not is_after_name:
            return 0
        signs = [_ROMAN_SIGNS[sign] for sign in token.text.lower()]
        return float(sum(-a if a < b else a for a, b in zip(signs, [*signs[1:], 0], strict=True)))

    def _list_denied(self, at: int) -> Iterator[str]:
        """The stems of up to three content words behind a negation, in its sentence; none of the answer "No," """
        left = 0 if self._gap(at + 1) != " " and self._plain(at) in ("no", "none", "nothing", "nobody") else 3
        for near in range(at + 1, min(at + 12, len(self._all))):
            if not left or (_CLAUSE if near > at + 1 else _END).search(self._gap(near)):
                return
            plain = self._all[near].plain
            if plain not in STOP and len(plain) > 1 and plain[0].isalpha():
                yield stem(plain)
                left -= 1


@lru_cache(maxsize=1 << 16)
def _may_begin(word: str) -> bool:
    """Whether a value other than a name may begin with a word; most words are skipped at once."""
    bases = {word, word.removesuffix("s"), word.removesuffix("s").removesuffix("th")}
    return not bases.isdisjoint(_BEGINNINGS) or (len(word) <= 12 and bool(_ROMAN.fullmatch(word)))


def _strip(word: str) -> str:
    """A word of a name in small letters, without the ending of a possessive or of the plural "VCRs"."""
    word = word.removesuffix("'s")
    return (word[:-1] if word[-1:] == "s" and word[:-1].isupper() and len(word) > 2 else word).lower()


def _list_number_keys(ways: Iterable[Iterable[float | str]]) -> list[list[Key]]:
    return [[("number", number) for number in way] for way in ways]


def _list_years(year: float) -> list[Key]:
    return [("number", year)] if year >= 1000 else []


def _list_eras(year: float) -> list[Key]:
    """The decade, in both spellings, and the century of a year."""
    if not 1000 <= year < 2200:
        return []
    decade = year // 10 * 10
    return [("decade", decade), ("decade", decade % 100), ("century", (year - 1) // 100 + 1)]


def _list_day_keys(year: float, month: float, day: float) -> list[Key]:
    keys: list[Key] = [("day", month, day), ("month", month), ("number", day)]
    for full in [year] if year >= 1000 else [1900 + year, 2000 + year] if year else []:
        keys += [("number", full), ("bare", full), *_list_eras(full)]
        try:
            keys.append(("weekday", float(date(int(full), int(month), int(day)).weekday())))
        except ValueError:
            continue  # no such day, as in a mistake of the text
    return keys


def _read_numeric_date(digits: str) -> Iterator[tuple[float, float, float]]:
    """Year, month and day of "1871-03-05"; those of "05.03.1871" in both orders that countries have."""
    parts = re.fullmatch(r"(\d{4})([-./])(\d\d?)\2(\d\d?)|(\d\d?)([-./])(\d\d?)\6(\d{4}|\d\d)", digits)
    if parts and parts[1]:
        orders = [(parts[1], parts[3], parts[4])]
    else:
        orders = [(parts[8], parts[5], parts[7]), (parts[8], parts[7], parts[5])] if parts else []
    for year, month, day in orders:
        if 1 <= int(month) <= 12 and 1 <= int(day) <= 31:
            yield float(year), float(month), float(day)
