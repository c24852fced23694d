"""Decode the bytes of a file to text. Equal texts get equal character offsets in every encoding."""

from __future__ import annotations

import codecs
import re
from collections import Counter

from tomewise.errors import ReadingError
from tomewise.types import Metadata

_BYTE_ORDER_MARKS = (  # UTF-32 first, because the mark of UTF-32-LE begins with the mark of UTF-16-LE
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\v\x1b")) + b"\x7f"
_BINARY_SHARE = 0.1  # a file with a larger share of control characters is binary
# The escape sequences of ISO-2022 that switch to an alphabet of two-byte characters.
_SHIFTS = re.compile(rb"\x1b\$(?:[@AB]|[()][@-G])")
# Encodings of texts by the names that Python has for them. Others that it knows unpack archives or take very long.
_DECLARABLE = re.compile(
    r"ascii|utf-(?:8|16|32)(?:-[bl]e|-sig)?|iso8859-\d+|cp(?:125\d|437|85\d|866|874|932|949|950)|koi8-[rtu]|mac-\w+|tis-620"
    r"|shift_jis\w*|euc_\w+|iso2022_\w+|gb2312|gbk|gb18030|hz|big5\w*|johab"
)
_SAMPLE_BYTES = 200_000  # of a file, to guess its encoding from
_ZEROS = 0.6  # of every second byte, at least, in UTF-16
_LEAST = 4  # characters of a file that is taken for UTF-16
_HIGH = re.compile(rb"[\x80-\xff]+")
_HIGH_RUNS = re.compile(rb"[\x80-\xff]{3,}")  # rare in languages that are written in Latin letters
_LETTERS = re.compile(rb"[A-Za-z\x80-\xff]")
_LATIN_PAGES = tuple("cp1252 cp1250 cp1254 cp1257 cp1258 mac-roman cp850 cp852 iso8859-2".split())
_OTHER_PAGES = tuple(
    "koi8-r koi8-u cp866 cp874 cp932 cp949 gb18030 big5hkscs euc_jis_2004 cp1251 cp1253 cp1255 cp1256 iso8859-5 "
    "iso8859-7 mac-cyrillic".split()
)
_RARE_PAGES = frozenset("cp850 cp852 cp866 mac-roman mac-cyrillic cp1258".split())
# Of pages, fitted with the exponent in `_rate` on sentences of 27 languages: tests/reading/test_encodings.py.
_COMMON, _FEW, _RARE = 1.15, 0.5, 0.7
_WEST = (  # of French, Spanish, Portuguese, German, Swedish, Danish, Italian, Dutch, Icelandic, Catalan
    "àâæçéèêëîïôœùûüÿ áéíóúñüçºª áâãàçéêíóôõúüºª äöüßé åäöéáà æøåéöôó àèéìíîòóùú éëïöüèáóêíúçäâîôûàñ áéíóúýðþæö "
    "àçèéíïòóúü"
).split()
_EAST = "ąćęłńóśźżé áäčďéěíĺľňóôŕřšťúůýž áéíóöőúüű čćđšž ăâîşţ äöüßé".split()
_ALPHABETS = {
    "cp1252": _WEST,
    "mac-roman": _WEST,
    "cp850": _WEST,
    "cp1250": _EAST,
    "iso8859-2": _EAST,
    "cp852": _EAST,
    "cp1254": ["çğıöşüâîû"],
    "cp1257": "ąčęėįšųūž āčēģīķļņšūž äõöüšž".split(),
}
ENCODING = "encoding"  # in metadata
GUESSED = " (guessed)"  # at its end
_stated = [""]  # what the user says of the files that this process reads


class EmptySource(ReadingError):
    """A source without text, such as a file that its user emptied."""


def decode(raw: bytes, name: str, declared: str | None = None) -> tuple[str, Metadata]:
    """The text of a file, and as metadata the encoding if that is a guess.

    The encoding comes from the byte order mark. Without a mark it is UTF-8 if that fits, else the one that the user has
    stated, else the encoding `declared`, else UTF-16 if every second byte is zero, or a guess. The text has no mark,
    and each newline is `\\n`, so character offsets are stable. `name` is the name of the source in errors. Raises
    `ReadingError` if the file is empty, binary, damaged, or in an unknown encoding.
    """
    text, guessed = _decode_by_mark(raw, name), ""
    if text is None:
        text, guessed = _decode_unmarked(raw, name, _stated[-1] or declared)
    text = unify_newlines(text)
    if not text.strip():
        raise EmptySource(f"{name} is empty or holds only white space: give a source with text, or leave it out")
    return text, {ENCODING: guessed + GUESSED} if guessed else {}


def state_encoding(encoding: str) -> None:
    """Read the next files that are not UTF-8 in this encoding, whatever they declare; empty takes it back."""
    _stated[:] = [encoding]


def find_codec(declared: str) -> str | None:
    """The Python name of the declared encoding; None if it is unknown or not allowed."""
    try:
        encoding = codecs.lookup(declared).name
    except (LookupError, ValueError):
        return None
    return encoding if _DECLARABLE.fullmatch(encoding) else None


def unify_newlines(text: str) -> str:
    """The text with every newline as `\\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def join_words(text: str) -> str:
    """The text in one line, with one blank for each run of white space."""
    return " ".join(text.split())


def _decode_by_mark(raw: bytes, name: str) -> str | None:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            try:
                text = raw.decode(encoding)
            except UnicodeDecodeError as error:
                raise _make_damage_error(name, encoding, error) from None
            if "\0" in text:
                raise _make_binary_error(name)
            return text
    return None


def _decode_unmarked(raw: bytes, name: str, declared: str | None) -> tuple[str, str]:
    """The text, and its encoding if that is a guess."""
    stated = find_codec(declared) if declared else None
    if b"\0" in raw:
        wide = stated if stated and stated.startswith("utf-16") else _find_wide(raw)
        if wide is None:
            raise _make_binary_error(name)
        try:
            text = raw.decode(wide)
        except UnicodeDecodeError as error:
            raise _make_damage_error(name, wide, error) from None
        if len(text) - len(text.translate(dict.fromkeys(_CONTROLS))) > _BINARY_SHARE * len(text):
            raise _make_binary_error(name)
        return text, "" if wide == stated else wide
    if shift := _SHIFTS.search(raw):
        return _decode_iso2022(raw, shift[0], name), ""
    if len(raw) - len(raw.translate(None, _CONTROLS)) > _BINARY_SHARE * len(raw):
        raise _make_binary_error(name)
    try:
        return raw.decode(), ""
    except UnicodeDecodeError as error:
        if _is_mostly_utf8(raw):
            raise _make_damage_error(name, "utf-8", error) from None
    encoding = guess_encoding(raw) if declared is None else stated
    try:
        return raw.decode(encoding or "utf-8"), "" if stated else encoding or ""
    except UnicodeDecodeError:
        raise ReadingError(f"the encoding of {name} is unknown: save it as UTF-8") from None


def _find_wide(raw: bytes) -> str | None:
    """UTF-16 without a mark: nearly every second byte is zero, and hardly any of the others."""
    half = len(raw) // 2
    if half < _LEAST:
        return None
    even, odd = raw[::2].count(0), raw[1::2].count(0)
    if len(raw) % 2 or max(even, odd) < _ZEROS * half or min(even, odd) > (1 - _ZEROS) * half / 10:
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _decode_iso2022(raw: bytes, shift: bytes, name: str) -> str:
    """The text of a file in ISO-2022. `shift` is its first escape sequence.

    All bytes of such a file are ASCII, so it would also decode as UTF-8, to the wrong text.
    """
    for encoding in ("iso2022_kr",) if shift.startswith(b"\x1b$)") else ("iso2022_jp_ext", "iso2022_jp_2"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise ReadingError(f"{name} is in a form of ISO-2022 that cannot be read: save it as UTF-8")


def _is_mostly_utf8(raw: bytes) -> bool:
    """Whether the text is UTF-8 with a few damaged bytes. A guessed encoding would spoil all its accented letters."""
    lenient = raw.decode(errors="replace")
    damaged_count = lenient.count("\ufffd")
    intact_count = sum(not character.isascii() for character in lenient) - damaged_count
    return intact_count > damaged_count


def guess_encoding(raw: bytes) -> str | None:
    """The most likely encoding of a text that is not UTF-8.

    chardet knows how often two letters follow each other in each language. It does not know which letters one language
    has together, nor that Windows-1252 is by far the most frequent, nor that words mix no alphabets: we do.
    """
    from chardet import detect_all

    sample = raw
    if len(raw) > _SAMPLE_BYTES:  # end the sample at the end of a line, so that it cuts no character in two
        sample = raw[: raw.rfind(b"\n", 0, _SAMPLE_BYTES) + 1 or _SAMPLE_BYTES]
    high = sum(map(len, _HIGH.findall(sample)))
    is_latin = sum(map(len, _HIGH_RUNS.findall(sample))) < 0.3 * high and high < 0.6 * len(_LETTERS.findall(sample))
    candidates = detect_all(
        sample,
        include_encodings=_LATIN_PAGES + (() if is_latin else _OTHER_PAGES),
        prefer_superset=True,
        compat_names=False,
        ignore_threshold=True,
    )
    ratings = [(_rate(sample, page, each["confidence"]), page) for each in candidates if (page := each["encoding"])]
    return max(ratings)[1] if ratings else None


def _rate(sample: bytes, page: str, confidence: float) -> float:
    """How likely a page is: chardet's confidence, and how many of the letters are in one alphabet of that page."""
    few = _FEW / max(1, sum(map(len, _HIGH.findall(sample))))
    prior = _COMMON + few if page == "cp1252" else _RARE if page in _RARE_PAGES else 1
    alphabets = _ALPHABETS.get(page, ())
    letters = Counter(character for character in sample.decode(page, "replace").lower() if character > "\x7f")
    counts = {letter: count for letter, count in letters.items() if letter.isalpha()}
    whole = sum(counts.values())
    if not whole or not alphabets:
        return prior * confidence
    fitting = max(sum(count for letter, count in counts.items() if letter in alphabet) for alphabet in alphabets)
    return prior * confidence * (fitting / whole) ** 4


def _make_binary_error(name: str) -> ReadingError:
    return ReadingError(f"{name} is binary, not text: convert it to text first, or leave it out")


def _make_damage_error(name: str, encoding: str, error: UnicodeDecodeError) -> ReadingError:
    encoding_name = encoding.removesuffix("-sig").upper()
    what = f"{name} is {encoding_name}, but byte {error.start} is not"
    return ReadingError(f"{what}: repair it, or save it again as UTF-8")
