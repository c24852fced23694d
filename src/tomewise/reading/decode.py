"""Decode the bytes of a file to text, in one form in which character offsets are stable."""

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
_BINARY_SHARE = 0.1  # a file with a larger share of control characters is binary
_SHIFTS = re.compile(
    rb"\x1b\$(?:[@AB]|[()][@-G])"
)  # escape sequences that switch to an alphabet of two-byte characters
_DECLARABLE = frozenset(  # encodings that a page may declare; some other Python codecs unpack archives or escapes
    "utf-8 utf-16 utf-16-le utf-16-be ascii mac-roman mac-cyrillic koi8-r koi8-u tis-620 cp437 cp850 cp852 cp866 "
    "cp874 cp932 cp949 gb2312 gbk gb18030 hz big5 big5hkscs euc_jp euc_kr iso2022_jp iso2022_kr shift_jis".split()
    + [f"iso8859-{number}" for number in range(1, 17)]
    + [f"cp{number}" for number in range(1250, 1259)]
)
_SAMPLE_BYTES = 1_000_000  # the encoding is guessed from so many bytes: guessing takes seconds per megabyte


def decode_text(raw: bytes, name: str, declared: str | None = None) -> str:
    """The text of a file: by its byte order mark, else as UTF-8, else in the encoding `declared` or a guessed one.

    The mark is dropped and every newline becomes `\\n`, so that character offsets mean the same everywhere. `name` is
    the name of the source in errors. Raises `ReadingError` if the file is empty, binary, or in an unknown encoding.
    """
    marked = _decode_by_mark(raw, name)
    text = unify_newlines(_decode_unmarked(raw, name, declared) if marked is None else marked)
    if not text.strip():
        raise ReadingError(f"{name} is empty or holds only white space: give a source with text, or leave it out")
    return text


def unify_newlines(text: str) -> str:
    """The text with every newline as `\\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decode_by_mark(raw: bytes, name: str) -> str | None:
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            try:
                text = raw.decode(encoding)
            except UnicodeDecodeError as error:
                raise ReadingError(_describe_damage(name, encoding, error)) from None
            if "\0" in text:
                raise ReadingError(_describe_binary(name))
            return text
    return None


def _decode_unmarked(raw: bytes, name: str, declared: str | None) -> str:
    if b"\0" in raw:
        raise ReadingError(_describe_binary(name))
    if shift := _SHIFTS.search(raw):
        return _decode_iso2022(raw, shift[0], name)
    if len(raw) - len(raw.translate(None, _CONTROLS)) > _BINARY_SHARE * len(raw):
        raise ReadingError(_describe_binary(name))
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        if _is_mostly_utf8(raw):
            raise ReadingError(_describe_damage(name, "utf-8", error)) from None
    encoding = _guess_encoding(raw) if declared is None else _find_codec(declared)
    try:
        return raw.decode(encoding or "utf-8")
    except UnicodeDecodeError:
        raise ReadingError(f"the encoding of {name} is unknown: save it as UTF-8") from None


def _decode_iso2022(raw: bytes, shift: bytes, name: str) -> str:
    """The text of a file in ISO-2022, which is all ASCII and looks like UTF-8; `shift` is its first escape sequence."""
    for encoding in ("iso2022_kr",) if shift.startswith(b"\x1b$)") else ("iso2022_jp_ext", "iso2022_jp_2"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise ReadingError(f"{name} is in a form of ISO-2022 that cannot be read: save it as UTF-8")


def _find_codec(declared: str) -> str | None:
    """The Python name of the declared encoding; None if it is unknown or not allowed."""
    try:
        encoding = codecs.lookup(declared).name
    except (LookupError, ValueError):
        return None
    return encoding if encoding in _DECLARABLE else None


def _is_mostly_utf8(raw: bytes) -> bool:
    """Whether the text is UTF-8 with a few damaged bytes. A guessed encoding would then spoil every accent."""
    lenient = raw.decode(errors="replace")
    broken = lenient.count("\ufffd")
    return sum(not character.isascii() for character in lenient) - broken > broken


def _guess_encoding(raw: bytes) -> str | None:
    from charset_normalizer import from_bytes

    sample = raw
    if len(raw) > _SAMPLE_BYTES:  # cut behind a line, where no character is cut in two
        sample = raw[: raw.rfind(b"\n", 0, _SAMPLE_BYTES) + 1 or _SAMPLE_BYTES]
    best = from_bytes(sample).best()
    return best.encoding if best else None


def _describe_binary(name: str) -> str:
    return f"{name} is binary, not text: convert it to text first, or leave it out"


def _describe_damage(name: str, encoding: str, error: UnicodeDecodeError) -> str:
    claimed = encoding.removesuffix("-sig").upper()
    return f"{name} is {claimed}, but byte {error.start} is not: repair it, or save it again as UTF-8"
