"""Find the values of a text, whatever their spelling: names, numbers, dates, times, quantities, negations."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

from tomewise.text.lexicon import NO_NAMES
from tomewise.text.names import find_names, opens_sentence
from tomewise.text.stop_words import STOP
from tomewise.text.words import stem

Kind = Literal["name", "number", "ordinal", "date", "weekday", "time", "quantity", "negation"]
Key = tuple[str | float, ...]
"""What is compared: a sort, such as `number` or `day`, and what tells one of its kind from another."""
Reading = frozenset[Key]

_TOKEN = re.compile(r"(?<!\d)\d{1,3}(?: \d{3})+(?![\d.,:/–-]?\d)|\d+(?:[.,:'/–-]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)*|[%$£€°]")
_JOINTS = frozenset((" ", "-", "", ". ", ".-"))
_SMALL = 2  # number words up to this are too common ("one of", "both") to be missed


def _number(words: str, start: float, step: float = 1) -> dict[str, float]:
    return {word: start + step * at for at, word in enumerate(words.split())}


_UNITS = _number("zero one two three four five six seven eight nine", 0)
_TEENS = _number("ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen", 10)
_TENS = _number("twenty thirty forty fifty sixty seventy eighty ninety", 20, 10)
_SCALES: dict[str, float] = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PLAIN = _UNITS | _TEENS | _TENS
_DECADES = {ten[:-1] + "ies": value for ten, value in _TENS.items()}
_ORDINALS = {
    **_number("first second third fourth fifth sixth seventh eighth ninth", 1),
    **_number("tenth eleventh twelfth", 10),
    **{word + "th": value for word, value in _TEENS.items() if value > 12},
    **{ten[:-1] + "ieth": value for ten, value in _TENS.items()},
}
_NUMBERS = _PLAIN | _ORDINALS
_FRACTIONS = {"half": 0.5, "quarter": 0.25}
_MONTHS = _number("january february march april may june july august september october november december", 1)
_MONTHS |= {name[:3]: value for name, value in _MONTHS.items()} | {"sept": 9}
_DAYS = _number("monday tuesday wednesday thursday friday saturday sunday", 0)
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
_SIDES = {"past": 1, "after": 1, "to": -1, "before": -1, "till": -1}  # of the hour
_DENYING = frozenset("not never no none nobody nothing nor neither without cannot nowhere".split())
_ACTS = frozenset(
    """came went gave took made saw got began became kept left found knew met ran set put let sat stood held
    brought read lost won fell felt led sent paid""".split()
)
_END = re.compile(r"[.!?;:…\n]")
_CLAUSE = re.compile(r"[.!?;:,…\n]")


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
        signs: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        for at, sign in enumerate(self.text):
            parts = sign if sign.isascii() else _decompose(sign, signs[-1:])
            signs += parts
            starts += [at] * len(parts)
            ends += [at + 1] * len(parts)
            if ends and unicodedata.category(sign) == "Mn":
                ends[-1] = at + 1
        self.text, self._starts, self._ends = "".join(signs), starts, ends


def _decompose(sign: str, before: list[str]) -> str:
    """What takes the place of a sign behind another: 1/2 behind a digit is ".5", an accent is nothing."""
    if sign.isdecimal():
        return str(unicodedata.decimal(sign))
    category = unicodedata.category(sign)
    if category == "No":
        share = unicodedata.numeric(sign)
        if share >= 1:
            return " "  # a mark such as that of a note
        return f"{share:.3f}"[0 if not before or not before[-1].isdigit() else 1 :].rstrip("0")
    return "".join(
        part for part in unicodedata.normalize("NFKD", sign) if unicodedata.category(part) not in ("Mn", "Cf")
    )


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int
    end: int
    plain: str


@dataclass(frozen=True, slots=True)
class _Amount:
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


def _read_digits(digits: str) -> tuple[tuple[float | str, ...], ...]:
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


class _Scan:
    """Reads one folded text from left to right, each word a bounded number of times."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [
            _Token(m[0], m.start(), m.end(), m[0].lower().removesuffix("'s")) for m in _TOKEN.finditer(text)
        ]
        self._values: list[Value] = []

    def find(self) -> list[Value]:
        at = 0
        while at < len(self._tokens):
            at = self._read_at(at)
        taken = bytearray(len(self._text))
        for value in self._values:
            taken[value.start : value.end] = b"\x01" * (value.end - value.start)
        return sorted([*self._values, *self._find_names(taken)], key=lambda value: value.start)

    def _find_names(self, taken: bytearray) -> Iterator[Value]:
        for mention in find_names(self._text):
            words = [
                token
                for token in _TOKEN.finditer(mention.text)
                if not any(taken[mention.start + token.start() : mention.start + token.end()])
            ]
            words = [word for word in words if word[0][0].isupper()]
            if (
                len(words) > 1
                and self._text.startswith(" of ", mention.start + words[0].end())
                and opens_sentence(self._text, mention.start)
            ):
                words = words[1:]  # "Suspicion of Brown" has its capital from its place
            if not words or mention.text[0] > "ɏ":
                continue
            plain = [_strip(word[0]) for word in words]
            if len(plain) == 1 and plain[0].partition("'")[0] in STOP:
                continue
            readings = [frozenset(("name", word) for word in plain)]
            initials = "".join(word[0] for word in plain)
            if len(plain) > 2:
                readings.append(frozenset({("acronym", initials)}))
            start, end = mention.start + words[0].start(), mention.start + words[-1].end()
            gives = readings[0] | {("name", initials)}
            taken[start:end] = b"\x01" * (end - start)
            yield Value(self._text[start:end], start, end, "name", tuple(readings), gives)
        for at, token in enumerate(self._tokens):
            if not taken[token.start] and self._may_be_name(at):
                key = frozenset({("name", token.plain)})
                yield Value(token.text, token.start, token.end, "name", (key,), key)

    def _may_be_name(self, at: int) -> bool:
        """Whether a word that opens a sentence could be a name that acts: "Napoleon came"."""
        token = self._tokens[at]
        if not token.text[0].isupper() or not token.text[1:].islower() or self._plain(at + 1) not in _ACTS:
            return False
        if token.plain in STOP or token.plain in NO_NAMES or token.plain.endswith("s"):
            return False
        return self._gap(at + 1) == " " and opens_sentence(self._text, token.start)

    def _read_at(self, at: int) -> int:
        token = self._tokens[at]
        if token.text[0].isdigit() and (after := self._read_chunk(at)):
            return after
        for read in (self._read_date, self._read_time, self._read_quantity, self._read_number, self._read_word):
            if after := read(at):
                return after
        return at + 1

    # What the readers share

    def _plain(self, at: int) -> str:
        return self._tokens[at].plain if at < len(self._tokens) else ""

    def _gap(self, at: int) -> str:
        """The signs before a token; a long gap is as good as a full stop."""
        if not 0 < at < len(self._tokens):
            return "."
        gap = self._text[self._tokens[at - 1].end : self._tokens[at].start][:4]
        return " " if gap.isspace() and gap.count("\n") < 2 else gap

    def _joins(self, at: int, *gaps: str) -> bool:
        return self._gap(at) in (gaps or _JOINTS)

    def _skip(self, at: int, *words: str) -> int:
        """Skip these words, each if it is there."""
        for word in words:
            if self._plain(at) == word and self._joins(at):
                at += 1
        return at

    def _add(
        self, first: int, after: int, kind: Kind, readings: Iterable[Iterable[Key]], gives: Iterable[Key] = ()
    ) -> int:
        self._add_span(self._tokens[first].start, self._tokens[after - 1].end, kind, readings, gives)
        return after

    def _add_span(
        self, start: int, end: int, kind: Kind, readings: Iterable[Iterable[Key]], gives: Iterable[Key] = ()
    ) -> None:
        ways = tuple(map(frozenset, readings))
        given = frozenset(key for key in frozenset(gives).union(*ways) if key[0] != "loose")
        self._values.append(Value(self._text[start:end], start, end, kind, ways, given))

    # Numbers

    def _read_amount(self, at: int) -> _Amount | None:
        if at >= len(self._tokens):
            return None
        token = self._tokens[at]
        if token.text[0].isdigit():
            return self._read_digit_amount(at)
        if token.plain in ("a", "an") and self._plain(at + 1) in (*_SCALES, "dozen") and self._joins(at + 1, " "):
            return self._read_words(at + 1)
        return self._read_words(at)

    def _read_digit_amount(self, at: int) -> _Amount | None:
        token = self._tokens[at]
        if re.search(r"[:/–-]", token.text):
            return None
        readings = _read_digits(token.text)
        if self._joins(at + 1, "") and self._plain(at + 1) in ("st", "nd", "rd", "th"):
            return _Amount(readings, at + 2, "ordinal")
        clock = re.fullmatch(r"(\d\d?)\.([0-5]\d)", token.text)
        time = _make_time(float(clock[1]), float(clock[2])) if clock and float(clock[1]) < 24 else None
        after = at + 1
        while (scale := 12 if self._plain(after) == "dozen" else _SCALES.get(self._plain(after))) and self._joins(
            after
        ):
            readings = tuple(
                tuple(round(n * scale, 6) if not isinstance(n, str) else n for n in way) for way in readings
            )
            after += 1
        return self._add_fraction(_Amount(readings, after, "digits", time))

    def _add_fraction(self, amount: _Amount) -> _Amount:
        """Add "and a half", or the digits behind "point"."""
        after, value = amount.after, amount.value
        if self._plain(after) == "and" and self._plain(after + 1) in ("a", "one"):
            share = _FRACTIONS.get(self._plain(after + 2))
            if share and self._joins(after + 2, " ", "-"):
                scale = _SCALES.get(self._plain(after + 3), 0) if self._joins(after + 3, " ") else 0
                readings = (((value + share) * (scale or 1),),)
                return replace(amount, readings=readings, after=after + 4 if scale else after + 3, kind="words")
        if self._plain(after) == "point" and self._joins(after, " "):
            digits, end = "", after + 1
            while self._plain(end) in _UNITS and self._joins(end, " "):
                digits, end = digits + str(int(_UNITS[self._plain(end)])), end + 1
                if len(digits) > 6:
                    break
            if digits:
                return replace(amount, readings=((float(f"{value:.0f}.{digits}"),),), after=end, kind="words")
        return amount

    def _read_words(self, at: int) -> _Amount | None:
        """Read a run of words as one number, as far as it is one: "eight five-pound notes" begins with 8."""
        return self._read_two_words(at) or self._read_sum(at)

    def _read_two_words(self, at: int) -> _Amount | None:
        """Read "five-and-twenty", and the year "nineteen twelve"; both may also be two numbers."""
        first = _PLAIN.get(self._plain(at), 0)
        ten = _TENS.get(self._plain(at + 2), 0) if self._plain(at + 1) == "and" else 0
        if 0 < first < 10 and ten and self._joins(at + 1) and self._joins(at + 2):
            return _Amount(((ten + first,), (first, ten)), at + 3, "words")
        year = self._read_sum(at + 1) if 10 <= first <= 20 and self._joins(at + 1, " ", "-") else None
        if year and year.kind == "words" and 10 <= year.value < 100:
            return replace(year, readings=((first * 100 + year.value,), (first, year.value)))
        return None

    def _read_sum(self, at: int) -> _Amount | None:
        total = group = 0.0
        least = float("inf")  # the last scale
        after, kind = at, "words"
        while after < len(self._tokens) and kind == "words":
            here = after
            if after > at:
                if self._plain(here) == "and" and not group % 100 and self._plain(here + 1) not in _SCALES:
                    here += 1
                if not self._joins(here, " ", "-") and (group or not self._joins(here, ", ")):
                    break
            word = self._plain(here)
            base = word if word in _NUMBERS or word in _SCALES else word.removesuffix("s").removesuffix("th")
            scale, value = _SCALES.get(base), _NUMBERS.get(word, _ORDINALS.get(word.removesuffix("s")))
            if scale and scale < least and (scale > 100 or group < 100):
                if scale == 100:
                    group = (group or 1) * 100
                else:
                    total, group, least = total + (group or 1) * scale, 0.0, scale
            elif value is not None and (not group % 100 or (group % 100 in _TENS.values() and 0 < value < 10)):
                group += value
            else:
                break
            kind = "ordinal" if word in _ORDINALS or word.endswith(("th", "ths")) else "words"
            after = here + 1
        if kind == "words" and self._plain(after) == "dozen" and not total:
            return _Amount((((group or 1) * 12,),), after + 1, "words")
        if after == at:
            return None
        amount = _Amount(((total + group,),), after, "ordinal" if kind == "ordinal" else "words")
        return amount if kind == "ordinal" else self._add_fraction(amount)

    def _read_number(self, at: int) -> int:
        amount = self._read_amount(at)
        if amount is None:
            return 0
        plain = self._plain(amount.after)
        if plain in ("century", "centuries") and amount.kind == "ordinal":
            return self._add(at, amount.after + 1, "date", [[("century", amount.value)]], [("number", amount.value)])
        ways = _list_number_keys(amount.readings)
        if amount.time is not None:
            ways.append([("time", amount.time)])
        # Units that stand further away: "five or six men and three miles".
        gives: list[Key] = [("bare", number) for _, number in ways[0]]
        for near in range(amount.after, min(amount.after + 7, len(self._tokens))):
            if (unit := self._find_unit(near, far=True)) is not None:
                gives.append(("quantity", round(amount.value * unit[1], 4), unit[0]))
                break
        gives += _list_eras(amount.value) if amount.is_whole else []
        kind: Kind = "ordinal" if amount.kind == "ordinal" else "number"
        if amount.kind != "digits" and 0 <= amount.value <= _SMALL:
            ways, gives = [[]], [*gives, *ways[0]]
        return self._add(at, amount.after, kind, ways, gives)

    def _read_chunk(self, at: int) -> int:
        """Read digits with signs between: a date, a time, a range, or numbers."""
        token = self._tokens[at]
        if dates := list(_read_numeric_date(token.text)):
            readings = [[("day", month, day), *_list_years(year)] for year, month, day in dates]
            gives = [key for year, month, day in dates for key in _list_day_keys(year, month, day)]
            return self._add(at, at + 1, "date", readings, gives)
        if clock := re.fullmatch(r"(\d\d?):([0-5]\d)(?::[0-5]\d)?", token.text):
            time = _make_time(float(clock[1]), float(clock[2]))
            return self._add(
                at,
                self._skip_half_day(at + 1),
                "time",
                [[("time", time)]],
                [("number", float(part)) for part in clock.groups()],
            )
        if self._plain(at + 1) == "s" and self._joins(at + 1, "", "'") and re.fullmatch(r"(\d\d)?\d0", token.text):
            decade = float(token.text)
            return self._add(at, at + 2, "date", [[("decade", decade)]], [("decade", decade % 100)])
        pieces = list(re.finditer(r"[^:/–-]+", token.text))
        if len(pieces) == 1:
            return 0
        unit = self._find_unit(at + 1)
        for number, piece in enumerate(pieces):
            ways = _read_digits(piece[0])
            if number == 1 and len(pieces[0][0]) == 4 and len(piece[0]) == 2:  # the second year of "1914-18"
                ways = ((float(pieces[0][0][:2] + piece[0]),), *ways)
            given: list[Key] = [("bare", each) for way in ways for each in way]
            for each in ways[0]:
                if not isinstance(each, str):
                    given += [*_list_eras(each), *([("quantity", round(each * unit[1], 4), unit[0])] if unit else [])]
            start = token.start + piece.start()
            self._add_span(start, start + len(piece[0]), "number", _list_number_keys(ways), given)
        return at + 1

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
        if not year and not self._is_month_alone(at):
            return self._add(at, at + 1, "date", [[]], [("month", month)]) if self._tokens[at].text[0].isupper() else 0
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
        if month is None or not self._tokens[at].text[0].isupper():
            return None
        is_short = len(plain) < 5 and plain not in ("may", "june", "july")
        if alone and is_short and not self._plain(at + 1)[:1].isdigit():
            return None
        return month

    def _is_month_alone(self, at: int) -> bool:
        """Whether "May" or "March" is a month here and not a verb that opens a sentence."""
        token = self._tokens[at]
        if token.plain not in ("may", "march"):
            return True
        return self._plain(at - 1) in (
            "in",
            "of",
            "since",
            "until",
            "till",
            "last",
            "next",
            "by",
            "this",
            "from",
            "to",
            "and",
            "late",
            "early",
            "during",
        )

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
        if self._plain(share) in _FRACTIONS:
            minutes, after = 60 * _FRACTIONS[self._plain(share)], share + 1
        elif amount and amount.is_whole and amount.kind != "ordinal":
            minutes, after = amount.value, self._skip(amount.after, "minutes")
        else:
            minutes, after = 60.0, at
        sign = _SIDES.get(self._plain(after), 0)
        hour = self._read_hour(after + 1) if sign and minutes < 60 else None
        if hour:
            numbers: list[Key] = [("number", minutes), ("number", hour.value)]
            ways: list[list[Key]] = [[("time", _make_time(hour.value, sign * minutes))]]
            if sign < 0 and after == (amount or hour).after:  # "ten to twelve" may be men
                ways.append(numbers)
            return self._add(at, self._skip_half_day(hour.after), "time", ways, [*numbers, ("bare", hour.value)])
        if amount is None or amount.kind == "ordinal":
            return 0
        end = self._skip_half_day(amount.after)
        time = _make_time(amount.value) if amount.is_whole and amount.value < 24 else amount.time
        if end > amount.after and time is not None:
            value = amount.value
            return self._add(at, end, "time", [[("time", time)], [("number", value)]], [("bare", value)])
        return self._read_spoken_time(at, amount)

    def _read_hour(self, at: int) -> _Amount | None:
        hour = self._read_amount(at) if self._joins(at) else None
        is_hour = hour and hour.is_whole and 1 <= hour.value <= 12 and hour.kind != "ordinal"
        return hour if hour and is_hour and not self._find_unit(hour.after) else None

    def _read_spoken_time(self, at: int, hour: _Amount) -> int:
        """Read "six thirty-five" and "six, three, five", which may also be numbers."""
        if hour.kind != "words" or not hour.is_whole or not 0 < hour.value <= 12:
            return 0
        after, digits = hour.after, ""
        minute = self._read_amount(after) if self._joins(after, " ", "-") else None
        if minute and minute.kind == "words" and 10 <= minute.value < 60 and not self._find_unit(minute.after):
            numbers, after, minutes = [hour.value, minute.value], minute.after, minute.value
        else:
            while len(digits) < 2 and self._plain(after) in _UNITS and self._joins(after, ", "):
                digits, after = digits + str(int(_UNITS[self._plain(after)])), after + 1
            numbers, minutes = [hour.value, *map(float, digits)], float(digits.ljust(2, "0"))
        if len(numbers) == 1 or minutes >= 60:
            return 0
        ways: list[list[Key]] = [[("time", _make_time(hour.value, minutes))], [("number", each) for each in numbers]]
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
        total = value * factor
        numbers: list[Key] = [("number", value)]
        smallest = factor
        while True:
            following = self._skip(after, "and") if self._joins(after, " ", ", ") else after
            if (
                following > after
                and self._plain(following) == "a"
                and (share := _FRACTIONS.get(self._plain(following + 1)))
            ):
                if self._find_unit(following + 2):
                    break
                total, after = total + share * factor, following + 2
                continue
            more = self._read_one_quantity(following) if self._joins(following, " ", ", ") else None
            if more is None or more[1][0] != base or more[1][1] >= smallest:
                break
            total, smallest, after = total + more[0] * more[1][1], more[1][1], more[2]
            numbers.append(("number", more[0]))
        key: Key = ("quantity", round(total, 4), base)
        numbers.append(("number", round(total / smallest, 4)))
        ways: list[list[Key]] = [[key], [("loose", round(total / smallest, 4))]]
        plain = self._plain(at)
        if total == factor and not plain[0].isdigit():
            ways = [[("unit", base, factor)]]
        return self._add(
            at,
            after,
            "quantity",
            ways,
            [key, *numbers, ("unit", base, factor), *(("measured", number) for _, number in numbers)],
        )

    def _read_one_quantity(self, at: int) -> tuple[float, tuple[str, float], int] | None:
        """A number and its unit: value, unit, and where it ends."""
        plain = self._plain(at)
        if plain in ("$", "£", "€"):
            amount = self._read_amount(at + 1) if self._joins(at + 1, "", " ") else None
            return (amount.value, _UNIT[plain], amount.after) if amount and amount.value >= 0 else None
        if plain in _FRACTIONS or (plain == "a" and self._plain(at + 1) in _FRACTIONS):
            share = at + (plain == "a")
            after = self._skip(share + 1, "of", "a", "an")
            unit = self._find_unit(after)
            return (_FRACTIONS[self._plain(share)], unit, after + 1) if unit and after > share + 1 else None
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
        token = self._tokens[at]
        plain = token.plain
        day = _DAYS.get(plain.removesuffix("s")) if token.text[0].isupper() else None
        if day is not None:
            return self._add(at, at + 1, "weekday", [[("weekday", day)]])
        if plain in _DECADES:
            return self._add(at, at + 1, "date", [[("decade", _DECADES[plain])]])
        if numeral := self._read_roman(at):
            return self._add(at, at + 1, "ordinal", [[("number", numeral)]], [("bare", numeral)])
        if plain in _DENYING or plain.endswith("n't"):
            words = tuple(self._list_denied(at))
            return self._add(at, at + 1, "negation", [[]], [("negation", *words)]) if words else 0
        return 0

    def _read_roman(self, at: int) -> float:
        token = self._tokens[at]
        before = self._tokens[at - 1] if at and self._joins(at, " ") else None
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
        for near in range(at + 1, min(at + 12, len(self._tokens))):
            if not left or (_CLAUSE if near > at + 1 else _END).search(self._gap(near)):
                return
            plain = self._tokens[near].plain
            if plain not in STOP and len(plain) > 1 and plain[0].isalpha():
                yield stem(plain)
                left -= 1


def _strip(word: str) -> str:
    """A word of a name in small letters, without the ending of a possessive or of the plural "VCRs"."""
    word = word.removesuffix("'s")
    return (word[:-1] if word[-1:] == "s" and word[:-1].isupper() and len(word) > 2 else word).lower()


def _make_time(hour: float, minute: float = 0) -> float:
    """The minutes since noon or midnight."""
    return (60 * hour + minute) % 720


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
    parts = re.fullmatch(r"(\d{1,4})([-./])(\d{1,2})\2(\d{1,4})", digits)
    if parts is None:
        return
    first, second, last = parts[1], parts[3], parts[4]
    if len(first) == 4 and len(last) <= 2:
        orders = [(first, second, last)]
    elif len(first) <= 2 and len(last) in (2, 4):
        orders = [(last, first, second), (last, second, first)]
    else:
        return
    for year, month, day in orders:
        if 1 <= int(month) <= 12 and 1 <= int(day) <= 31:
            yield float(year), float(month), float(day)
