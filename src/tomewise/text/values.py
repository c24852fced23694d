"""Find the values of a text, whatever their spelling: names, numbers, dates, times, quantities, negations.

A text is written plainly first: without accents, and with its numbers in figures. Patterns find the rest.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Literal

from tomewise.text.lexicon import HONORIFICS, WEEKDAY
from tomewise.text.names import find_names, opens_sentence
from tomewise.text.stop_words import STOP
from tomewise.text.words import WORD, list_terms

Kind = Literal["name", "number", "ordinal", "date", "weekday", "time", "quantity", "negation"]
Key = tuple[str | float, ...]
"""What is compared: a sort, such as `number` or `day`, and what tells one of its kind from another."""
Reading = frozenset[Key]

_MOST_DIGITS = 300  # of a number
_SMALL = 2  # number words up to this are too common ("one of", "both") to be missed
_ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen"""
_TENS = dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True))
_FIRST = """zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
    fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"""
_ORDINALS = {word: n for n, word in enumerate(_FIRST.split())} | {ten[:-1] + "ieth": n for ten, n in _TENS.items()}
_SHARES = {"half an": 0.5, "half a": 0.5, "and a half": 0.5, "and a quarter": 0.25}
_NOON = dict.fromkeys(("noon", "midday", "midnight"), 12)
_NUMBERS = {word: n for n, word in enumerate(_ONES.split())} | _TENS | _ORDINALS | _SHARES | _NOON | {"a": 1, "an": 1}
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
NUMBER_WORDS = [word for word in (*_NUMBERS, *_SCALES) if word not in ("a", "an")]
_SCALE = "(?:dozen|hundred|thousand|million|billion|trillion)"
_NUMBER_WORD = re.compile(
    rf"(?<![^\W_])(?:(?<![\d.,])\d++(?:[.,]\d++)*+(?=[ -]{_SCALE}\b)"
    rf"|an?(?= (?:{_SCALE}|hour|minute|week|month|year|mile)\b)"
    rf"|{'|'.join(sorted(_NUMBERS.keys() - {'a', 'an'}, key=len, reverse=True))}|{_SCALE}(?:th)?)(?![^\W_])",
    re.IGNORECASE,
)
# Each base unit, then its multiples with their spellings. Months have no fixed length in days.
_MEASURES = """
    second: 1 seconds sec secs, 60 minute min mins, 3600 hour hr hrs h, 86400 day, 604800 week, 1209600 fortnight
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
    degree: 1 degree
    percent: 1 percent %
    knot: 1 knot
    fathom: 1 fathom"""
_UNITS: dict[str, tuple[str, float]] = {
    name: (base.strip(), float(factor))
    for base, _, multiples in (line.partition(":") for line in _MEASURES.strip().split("\n"))
    for factor, *names in map(str.split, multiples.split(","))
    for word in names
    for name in ((word, word + "s") if len(word) > 2 else (word,))
}
_UNIT = rf"(?:{'|'.join(sorted(_UNITS.keys() - set('$£€'), key=len, reverse=True))}|per[ ]cent)(?![^\W\d_])"
_NUMBER = re.compile(
    rf"""(?P<minus>(?<![^\s(])-|\bminus\ )?(?:(?P<sign>[$£€])\ ?)?(?P<amount>(?<!\d)(?<!\d[.,'])\d++(?:[.,']\d++)*+)
    (?:(?P<ordinal>st|nd|rd|th)\b|(?P<decade>'?s\b)|(?:[\ -](?:more|full|whole|square|cubic|long|solid))?[\ -]?
    (?P<unit>{_UNIT}))?""",
    re.VERBOSE | re.IGNORECASE,
)
_GROUPED = re.compile(r"(?<!\d)\d{1,3}(?: \d{3}){1,5}(?![\d.,:/–-]?\d)")  # 205 000
_YEARS = re.compile(r"(?<!\d)(\d\d)\d\d[–/-](\d\d)(?![\d/–-])")  # 1914-18
_SHORT = re.compile(r"(?<=[$£€]) ?\d[\d.,]*(k|mn?|bn?|tn)\b", re.IGNORECASE)  # $3.5m
_SCALE_SIGNS = {"k": " thousand", "m": " million", "b": " billion", "t": " trillion"}
_PART = re.compile(r"(?<=\d)[¼½¾⅛⅜⅝⅞]")  # 3½
_WRAPPED = re.compile(r"(?<=[\w,])\n(?=\w)")
_POINT = re.compile(r"(?<=\d) point (?=\d)")
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH = r"""(?P<month>Jan(?:uary|\b\.?)|Feb(?:ruary|\b\.?)|Mar(?:ch|\b\.?)|Apr(?:il|\b\.?)|May|June?|July?|Aug(?:ust
    |\b\.?)|Sept?(?:ember|\b\.?)|Oct(?:ober|\b\.?)|Nov(?:ember|\b\.?)|Dec(?:ember|\b\.?))(?![^\W_])"""
_DAY = r"(?<![\d.,])(?P<day>\d\d?)(?:st|nd|rd|th)?(?![^\W_]|[.,:]\d)"
_YEAR = r"(?:,?\ (?:of\ |in\ )?(?P<year>1\d{3}|2[01]\d\d)(?![\w]|[.,]\d))"
_DATES = [
    re.compile(pattern, re.VERBOSE)
    for pattern in (
        r"(?<!\d)(?P<year>\d{4})([-./])(?P<month>\d\d?)\2(?P<day>\d\d?)(?!\d)",
        r"(?<!\d)(?P<day>\d\d?)([-./])(?P<month>\d\d?)\2(?P<year>\d{4}|\d\d)(?!\d)",
        rf"{_DAY}[\ -](?:day\ )?(?:of\ )?{_MONTH}{_YEAR}?",
        rf"\b{_MONTH}(?:,?\ |-)(?:the\ )?{_DAY}{_YEAR}?",
        rf"\b{_MONTH}{_YEAR}?",
    )
]
_NEAR = 60  # characters between a month and its day, as in "in April ... on the 22nd"
_NEAR_DAY = re.compile(r"(?<![\d.,:])\d\d?(?!\d|[.,:]\d)")
_TIMES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![\d:.,])(?P<hour>\d\d?):(?P<minutes>[0-5]\d)(?::[0-5]\d)?(?![\d:])",
        r"\b(?P<minutes>half|(?:a )?quarter|\d\d?)(?: minutes)? (?P<side>past|after|to|before|till) "
        rf"(?P<hour>1[0-2]|[1-9])\b(?![.,:]\d|[ -]{_UNIT})",
    )
]
DAYS = "Mon Tue Wed Thu Fri Sat Sun".split()
_WEEKDAY = re.compile(rf"\b{WEEKDAY}(?=s?\b)")
_DENIAL = re.compile(
    r"(?<![^\W_])(?:not|never|no|none|nobody|nothing|nor|neither|without|cannot|nowhere|[a-z]+n't)(?![^\W_])",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[^.!?;:,…\n]{0,100}")


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


def list_number_words(number: float) -> list[str]:
    """Small words of which a text that spells this number out has one at least: "twelve" of 1200, or "hundred"."""
    whole = int(abs(number))
    groups = [whole // 10**power % 100 for power in range(len(str(whole)))]
    parts = {part for group in groups for part in (group, group % 10, group // 10 * 10)} | {whole}
    shares = () if number == whole else _SHARES
    return [*_SCALES, *shares, *(word for word in NUMBER_WORDS if _NUMBERS.get(word) in parts)]


def find_values(text: str) -> list[Value]:
    """Find the values of a text, in order: the numbers of all languages in digits, the rest in English."""
    return PlainText(text).find_values()


class PlainText:
    """A text without accents, with its numbers in figures, which knows where its signs come from."""

    def __init__(self, original: str) -> None:
        self._original = original
        self._values: list[Value] = []
        self._starts: Sequence[int] = range(len(original))
        self._ends: Sequence[int] = range(1, len(original) + 1)
        self.text = _WRAPPED.sub(" ", original.replace("’", "'").replace("−", "-"))
        self._rewrite((*match.span(1), _SCALE_SIGNS[match[1][0].lower()]) for match in _SHORT.finditer(self.text))
        if not self.text.isascii():
            self._rewrite(
                (*match.span(), f"{unicodedata.numeric(match[0]):g}"[1:]) for match in _PART.finditer(self.text)
            )
            accented = re.finditer(r".[\u0300-\u036f]+|[^\x00-\x7f]", self.text)
            self._rewrite((*match.span(), _fold(match[0])) for match in accented)
        self._rewrite((*match.span(), match[0].replace(" ", "")) for match in _GROUPED.finditer(self.text))
        self._rewrite(_write_figures(self.text))
        self._rewrite((*match.span(2), match[1] + match[2]) for match in _YEARS.finditer(self.text))
        self._rewrite((*match.span(), ".") for match in _POINT.finditer(self.text))

    def find_values(self) -> list[Value]:
        """The values, in order, with their places in the original."""
        text = self.text
        for pattern, read in (
            *((pattern, self._read_date) for pattern in _DATES),
            *((pattern, self._read_time) for pattern in _TIMES),
            (_NUMBER, self._read_number),
            (_WEEKDAY, self._read_weekday),
            (_DENIAL, self._read_denial),
        ):
            # What is read belongs to one value.
            text = pattern.sub(partial(_blank, read), text)
        for mention in find_names(text):
            words = [word for word in WORD.findall(mention.text) if word[0].isupper() and word[0] <= "ɏ"]
            start = mention.start
            if len(words) > 1 and opens_sentence(text, start) and text.startswith(f"{words[0]} of ", start):
                start += len(words.pop(0)) + 4  # "Suspicion of Brown" has its capital from its place
            if len(words) > 1 or (words and words[0].lower().partition("'")[0] not in STOP):
                self._add_name(words, start, mention.end)
        return sorted(self._values, key=lambda value: value.start)

    def _rewrite(self, changes: Iterable[tuple[int, int, str]]) -> None:
        """Write other signs in some places, each from a start to an end."""
        pieces: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        at = 0
        for start, end, signs in changes:
            pieces += [self.text[at:start], signs]
            starts += [*self._starts[at:start], *[self._starts[start]] * len(signs)]
            ends += [*self._ends[at:start], *[self._ends[end - 1]] * len(signs)]
            at = end
        if at:
            self._starts, self._ends = [*starts, *self._starts[at:]], [*ends, *self._ends[at:]]
            self.text = "".join([*pieces, self.text[at:]])

    def _add(
        self, match: re.Match[str], kind: Kind, readings: Iterable[Iterable[Key]], gives: Iterable[Key] = ()
    ) -> bool:
        self._add_span(*match.span(), kind, readings, gives)
        return True

    def _add_span(
        self, start: int, end: int, kind: Kind, readings: Iterable[Iterable[Key]], gives: Iterable[Key]
    ) -> None:
        ways = tuple(map(frozenset, readings))
        start, end = self._starts[start], self._ends[end - 1]
        given = frozenset(key for key in frozenset(gives).union(*ways) if key[0] != "loose")
        self._values.append(Value(self._original[start:end], start, end, kind, ways, given))

    def _read_date(self, match: re.Match[str]) -> bool:
        found = match.groupdict()
        written, day, year = found["month"], int(found.get("day") or 0), int(found["year"] or 0)
        month = int(written) if written.isdigit() else MONTHS.index(written[:3].lower()) + 1
        years: list[Key] = [("number", year)] if year >= 1000 else []
        if day:
            orders = [(month, day), (day, month)]  # the second is that of some countries
            orders = orders[: 1 + (written.isdigit() and match.start("day") < match.start("month"))]
            orders = [order for order in orders if 1 <= order[0] <= 12 and 1 <= order[1] <= 31]
            readings: list[list[Key]] = [[("day", *order), *years] for order in orders]
            gives = [key for order in orders for key in _list_keys(year, *order)]
            return bool(orders) and self._add(match, "date", readings, gives)
        if not (year or written == "May" or written[3:].isalpha()):
            return False  # "Jan" may be a name
        around = self.text[max(0, match.start() - _NEAR) : match.end() + _NEAR]
        days: list[Key] = [("day", month, int(day)) for day in _NEAR_DAY.findall(around)]
        # "May" may be a verb that opens a sentence.
        is_sure = years or written not in ("May", "March") or not opens_sentence(self.text, match.start())
        own: Key = ("month", month)
        return self._add(match, "date", [[own, *years] if is_sure else []], [own, *days, *_list_decades(year)])

    def _read_time(self, match: re.Match[str]) -> bool:
        written, side, hour = match["minutes"].lower(), match.groupdict().get("side", "").lower(), float(match["hour"])
        minutes = float(written) if written.isdigit() else 30 if written == "half" else 15
        numbers: list[Key] = [("number", each) for each in (hour, minutes)[: 1 + written.isdigit()]]
        time = (60 * hour + (-minutes if side in ("to", "before", "till") else minutes)) % 720
        ways: list[list[Key]] = [[("time", time)]]
        if side and written.isdigit():
            ways.append(numbers)  # "ten to twelve" may be men
        elif not minutes:
            ways.append(numbers[:1])
        return self._add(match, "time", ways, [*numbers, ("bare", hour)])

    def _read_number(self, match: re.Match[str]) -> bool:
        sign = -1 if match["minus"] else 1
        numbers = [[sign * number for number in way] for way in read_digits(match["amount"])]
        first, is_spelled = numbers[0][0], self._original[self._starts[match.start("amount")]].isalpha()
        ways: list[list[Key]] = [[("number", number) for number in way] for way in numbers]
        gives = [key for way in ways for key in way]
        if written := match["sign"] or match["unit"]:
            base, factor = _UNITS[written.lower().replace(" ", "")]
            key: Key = ("quantity", round(first * factor, 4), base)
            ways = [[]] if is_spelled and first == 1 else [[key], [("loose", first)]]
            return self._add(match, "quantity", ways, [key, ("measured", first), *gives])
        gives += [*(("bare", number) for way in numbers for number in way), *_list_decades(first)]
        if match["decade"] and first >= 1000 and not first % 10:
            return self._add(match, "date", [[("decade", first // 10)]], gives)
        clock = re.fullmatch(r"(1?\d)(\.?)([0-5]\d)", match["amount"])
        if clock and (clock[2] or is_spelled):
            ways.append([("time", (60 * float(clock[1]) + float(clock[3])) % 720)])
        if is_spelled and 0 <= first <= _SMALL:
            ways = [[]]
        return self._add(match, "ordinal" if match["ordinal"] else "number", ways, gives)

    def _read_weekday(self, match: re.Match[str]) -> bool:
        return self._add(match, "weekday", [[("weekday", DAYS.index(match[0][:3]))]])

    def _read_denial(self, match: re.Match[str]) -> bool:
        """A denial, with the first content word behind it in its clause: the answer "No," denies nothing."""
        clause = _CLAUSE.match(self.text, match.end())
        denied = [term for term in list_terms(clause[0]) if not term.isdigit()] if clause else []  # "no one"
        return bool(denied) and self._add(match, "negation", [[]], [("negation", denied[0])])

    def _add_name(self, words: Sequence[str], start: int, end: int) -> None:
        """A name is there if all its words are, but titles, or the acronym that they spell out."""
        plain = list(map(_strip, words))
        initials = "".join(word[0] for word in plain)
        own: Reading = frozenset(("name", word) for word in plain)
        bare = frozenset(("name", word) for word in plain if word not in HONORIFICS) or own
        readings = [bare, frozenset({("acronym", initials)})][: 1 + (len(plain) > 2)]
        self._add_span(start, end, "name", readings, [*own, ("name", initials)])


def _blank(read: Callable[[re.Match[str]], bool], match: re.Match[str]) -> str:
    return "_" * len(match[0]) if read(match) else match[0]


def read_digits(digits: str) -> list[list[float]]:
    """The numbers of each way in which some country reads these: "1.234" is 1234 or 1.234."""
    digits = digits.replace("'", "")
    pieces = re.split("[.,]", digits)
    marks = [sign for sign in digits if sign in ".,"]
    whole, decimal = "".join(pieces), "".join(pieces[:-1]) + "." + pieces[-1]
    if not marks:
        return [[int(digits[-_MOST_DIGITS:])]]
    if len(set(marks)) == 2 and marks.count(marks[-1]) == 1:
        return [[float(decimal)]]
    is_grouped = len(pieces[0]) <= 3 and all(len(piece) == 3 for piece in pieces[1:])
    readings = [[float(whole)]] if is_grouped else []
    if len(marks) == 1:
        readings.append([float(decimal)])
    readings.sort(reverse=marks[0] == ",")
    return readings or [list(map(float, pieces))]


def _write_figures(text: str) -> Iterator[tuple[int, int, str]]:
    """The numbers in words of a text, each with its place and in figures: "eight five-pound notes" has 8 and 5."""
    words = list(_NUMBER_WORD.finditer(text))
    at = 0
    while at < len(words):
        first, total, group, least, is_ordinal = at, 0.0, 0.0, 10**13, False
        while at < len(words) and not is_ordinal:
            plain = words[at][0].lower()
            gap = text[words[at - 1].end() : words[at].start()].replace("-", " ") if at > first else " "
            scale, ten = _SCALES.get(plain.removesuffix("th"), 0), plain in _TENS
            value = read_digits(plain)[0][0] if plain[0].isdigit() else _NUMBERS.get(plain, 0)
            if gap not in (" ", " and ") or (scale and (scale >= least or gap != " " or scale <= 100 <= group)):
                break
            if scale:
                group = (group or 1) * scale
                if scale > 100:
                    total, group, least = total + group, 0.0, scale
            elif not group % 100 or value < 1:
                group += value
            elif (ten and group < 10) if gap == " and " else (value < 10 and group % 100 in _TENS.values()):
                group += value  # "five and twenty", "twenty-five"
            elif gap == " " and not total and group <= 20 and value >= 10:
                group = 100 * group + value  # the year "nineteen twelve", the time "six thirty"
            else:
                break
            is_ordinal = plain in _ORDINALS or plain.endswith("th")
            at += 1
        number = total + group
        figures = f"{number:.0f}" if number.is_integer() else f"{number:.15g}"
        yield words[first].start(), words[at - 1].end(), figures + "th" * is_ordinal


def _fold(sign: str) -> str:
    """What takes the place of a sign with its accents; "№" would read as a denial."""
    if unicodedata.category(sign[0]) in ("No", "So"):
        return " "
    parts = (part for part in unicodedata.normalize("NFKD", sign) if unicodedata.category(part) not in ("Mn", "Cf"))
    return "".join(str(unicodedata.decimal(part, part)) for part in parts)


def _strip(word: str) -> str:
    """A word of a name in small letters, without the ending of a possessive or of the plural "VCRs"."""
    word = word.removesuffix("'s")
    return (word[:-1] if word[-1:] == "s" and word[:-1].isupper() and len(word) > 2 else word).lower()


def _list_decades(year: float) -> list[Key]:
    return [("decade", year // 10)] if 1000 <= year < 2200 else []


def _list_keys(year: int, month: int, day: int) -> Iterator[Key]:
    """What a date gives."""
    yield from (("day", month, day), ("month", month), ("number", day))
    for full in [year] if year >= 1000 else [1900 + year, 2000 + year] if year else []:
        yield from (("number", full), ("bare", full), *_list_decades(full))
        try:
            yield "weekday", date(full, month, day).weekday()
        except ValueError:
            continue  # no such day, as in a mistake of the text
