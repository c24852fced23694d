"""Bytes to text that offsets can refer to."""

from __future__ import annotations

import codecs
import re

from tomewise.errors import ReadingError

_MARKS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\v\x1b")) + b"\x7f"
_BINARY_SHARE = 0.1  # of control characters, beyond which a file is no text
_SHIFTS = re.compile(rb"\x1b\$(?:[@AB]|[()][@-G])")  # to another alphabet in which characters take two bytes
_DECLARABLE = frozenset(  # what pages are written in; other codecs of Python unpack archives or escapes
    "utf-8 utf-16 utf-16-le utf-16-be ascii mac-roman mac-cyrillic koi8-r koi8-u tis-620 cp437 cp850 cp852 cp866 "
    "cp874 cp932 cp949 gb2312 gbk gb18030 hz big5 big5hkscs euc_jp euc_kr iso2022_jp iso2022_kr shift_jis".split()
    + [f"iso8859-{number}" for number in range(1, 17)]
    + [f"cp{number}" for number in range(1250, 1259)]
)
_GUESSED = 1_000_000  # bytes that the encoding is guessed from: guessing takes seconds per megabyte


def decoded(raw: bytes, name: str, declared: str | None = None) -> str:
    """The text of a file: by its byte order mark, else as UTF-8, else in the encoding `declared` or guessed.

    The mark is dropped and every newline is `\\n`, so that character offsets mean the same everywhere. `name` is what
    errors call the source. Raises `ReadingError` when it is empty, binary, or in no encoding that can be told.
    """
    marked = _by_mark(raw, name)
    text = plain(_unmarked(raw, name, declared) if marked is None else marked)
    if not text.strip():
        raise ReadingError(f"{name} is empty or holds only white space: give a source with text, or leave it out")
    return text


def plain(text: str) -> str:
    """The text with every newline as `\\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _by_mark(raw: bytes, name: str) -> str | None:
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            try:
                text = raw.decode(encoding)
            except UnicodeDecodeError as error:
                raise ReadingError(_damaged(name, encoding, error)) from None
            if "\0" in text:
                raise ReadingError(_binary(name))
            return text
    return None


def _unmarked(raw: bytes, name: str, declared: str | None) -> str:
    if b"\0" in raw:
        raise ReadingError(_binary(name))
    if shift := _SHIFTS.search(raw):
        return _shifted(raw, shift[0], name)
    if len(raw) - len(raw.translate(None, _CONTROLS)) > _BINARY_SHARE * len(raw):
        raise ReadingError(_binary(name))
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        if _mostly_utf8(raw):
            raise ReadingError(_damaged(name, "utf-8", error)) from None
    encoding = _guessed(raw) if declared is None else _declarable(declared)
    try:
        return raw.decode(encoding or "utf-8")
    except UnicodeDecodeError:
        raise ReadingError(f"{name} is in no encoding that could be told: save it as UTF-8") from None


def _shifted(raw: bytes, shift: bytes, name: str) -> str:
    """The text of a file in ISO-2022, which is all ASCII and looks like UTF-8; `shift` is the first to be found."""
    for encoding in ("iso2022_kr",) if shift.startswith(b"\x1b$)") else ("iso2022_jp_ext", "iso2022_jp_2"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise ReadingError(f"{name} is in a form of ISO-2022 that cannot be read: save it as UTF-8")


def _declarable(declared: str) -> str | None:
    try:
        encoding = codecs.lookup(declared).name
    except (LookupError, ValueError):
        return None
    return encoding if encoding in _DECLARABLE else None


def _mostly_utf8(raw: bytes) -> bool:
    """Whether a few bytes of UTF-8 are damaged; guessing would then turn every accent of the text into rubbish."""
    lenient = raw.decode(errors="replace")
    broken = lenient.count("\ufffd")
    return sum(not character.isascii() for character in lenient) - broken > broken


def _guessed(raw: bytes) -> str | None:
    from charset_normalizer import from_bytes

    sample = raw
    if len(raw) > _GUESSED:
        sample = raw[: raw.rfind(b"\n", 0, _GUESSED) + 1 or _GUESSED]  # no character is cut at the end of a line
    best = from_bytes(sample).best()
    return best.encoding if best else None


def _binary(name: str) -> str:
    return f"{name} is binary, not text: convert it to text first, or leave it out"


def _damaged(name: str, encoding: str, error: UnicodeDecodeError) -> str:
    claimed = encoding.removesuffix("-sig").upper()
    return f"{name} is {claimed} but for byte {error.start}: mend it, or save it again as UTF-8"
