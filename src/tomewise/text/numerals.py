"""Find the numbers of a text, in digits and in words."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = {word: 10 * (at + 2) for at, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split())}
_FROM_THIRD = (
    "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth "
    "seventeenth eighteenth nineteenth"
).split()
_ORDINALS = {
    **{word: at for at, word in enumerate(_FROM_THIRD, start=3)},
    **{ten[:-1] + "ieth": value for ten, value in _TENS.items()},
    "hundredth": 100,
    "thousandth": 1000,
}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12}
_PLAIN = {**{word: at for at, word in enumerate(_UNITS)}, **_TENS, **_ORDINALS}
_WORDS = sorted({*_PLAIN, *_SCALES, *(word + "s" for word in _SCALES)}, key=len, reverse=True)
_WORD = "(?:" + "|".join(_WORDS) + ")"
_DIGITS = r"\d+(?:[,\u00a0\u202f']\d{3})*(?:\.\d+)?"
_NUMBER = re.compile(
    rf"(?<!\w)(?P<words>{_WORD}(?:(?:[ -]|,? and ){_WORD})*)(?!\w)"
    rf"|(?P<digits>{_DIGITS})(?:[ -](?P<scale>{'|'.join(_SCALES)})(?!\w))?",
    re.IGNORECASE,
)
_YEARS = re.compile(r"(?<!\d)(\d{2})\d{2}[-–—/](\d{2})(?!\d)")
_SMALL = 2  # number words up to this are too common ("one of", "both") to identify anything


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written. `values[0]` is its value; the rest are those of its parts ("three" in "three million")."""

    text: str
    start: int
    values: tuple[float, ...]


def find_numbers(text: str) -> list[Number]:
    """Find the numbers of a text; number words up to two are left out, and digits of all scripts count."""
    text = "".join(str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in text)
    found = [number for match in _NUMBER.finditer(text) if (number := _read_number(match))]
    # The second year of "1914-18".
    found += [Number(m[0], m.start(), (float(m[1] + m[2]), float(m[2]))) for m in _YEARS.finditer(text)]
    return sorted(found, key=lambda number: number.start)


def _read_number(match: re.Match[str]) -> Number | None:
    if match["digits"]:
        value = float(re.sub(r"[,\u00a0\u202f']", "", match["digits"]))
        scale = _SCALES.get((match["scale"] or "").lower())
        values = (value * scale, value, float(scale)) if scale else (value,)
        return Number(match[0], match.start(), values)
    words = [word for word in re.findall(r"[a-z]+", match[0].lower()) if word != "and"]
    parts, value = map(_read_word, words), _add_up(words)
    if value <= _SMALL:
        return None
    return Number(match[0], match.start(), (value, *(part for part in parts if part > _SMALL)))


def _read_word(word: str) -> float:
    return float(_PLAIN[word] if word in _PLAIN else _SCALES[word.removesuffix("s")])


def _add_up(words: list[str]) -> float:
    """Add up number words: "two hundred and five thousand" is 205000; the year "nineteen twelve" is 1912."""
    if len(words) == 2 and 10 <= _read_word(words[0]) < 100 and _read_word(words[1]) >= 10 and words[1] in _PLAIN:
        return 100 * _read_word(words[0]) + _read_word(words[1])
    total = group = 0.0
    for word in words:
        part = _read_word(word)
        if word in _PLAIN:
            group += part
        elif part < 1000:
            group = max(group, 1.0) * part
        else:
            total += max(group, 1.0) * part
            group = 0.0
    return total + group
