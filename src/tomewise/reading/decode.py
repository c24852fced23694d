"""Decode the bytes of a file to text. Equal texts get equal character offsets in every encoding."""

from __future__ import annotations

import codecs
import re

from tomewise.errors import ReadingError

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
# The encodings that a page may declare, without the Python codecs that unpack archives or escapes.
_DECLARABLE = frozenset(
    "utf-8 utf-16 utf-16-le utf-16-be ascii mac-roman mac-cyrillic koi8-r koi8-u tis-620 cp437 cp850 cp852 cp866 "
    "cp874 cp932 cp949 gb2312 gbk gb18030 hz big5 big5hkscs euc_jp euc_kr iso2022_jp iso2022_kr shift_jis".split()
    + [f"iso8859-{number}" for number in range(1, 17)]
    + [f"cp{number}" for number in range(1250, 1259)]
)
_SAMPLE_BYTES = 1_000_000  # of a file, to guess its encoding from; guessing takes seconds per megabyte


class EmptySource(ReadingError):
    """A source without text, such as a file that its user emptied."""


def decode_text(raw: bytes, name: str, declared: str | None = None) -> str:
    """The text of a file.

    The encoding comes from the byte order mark. Without a mark it is UTF-8 if that fits, else the encoding `declared`,
    or a guess if none is declared. The text has no mark, and each newline is `\\n`, so character offsets are stable.
    `name` is the name of the source in errors. Raises `ReadingError` if the file is empty, binary, damaged, or in an
    unknown encoding.
    """
    text = _decode_by_mark(raw, name)
    if text is None:
        text = _decode_unmarked(raw, name, declared)
    text = unify_newlines(text)
    if not text.strip():
        raise EmptySource(f"{name} is empty or holds only white space: give a source with text, or leave it out")
    return text


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


def _decode_unmarked(raw: bytes, name: str, declared: str | None) -> str:
    if b"\0" in raw:
        raise _make_binary_error(name)
    if shift := _SHIFTS.search(raw):
        return _decode_iso2022(raw, shift[0], name)
    if len(raw) - len(raw.translate(None, _CONTROLS)) > _BINARY_SHARE * len(raw):
        raise _make_binary_error(name)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        if _is_mostly_utf8(raw):
            raise _make_damage_error(name, "utf-8", error) from None
    encoding = _guess_encoding(raw) if declared is None else _find_codec(declared)
    try:
        return raw.decode(encoding or "utf-8")
    except UnicodeDecodeError:
        raise ReadingError(f"the encoding of {name} is unknown: save it as UTF-8") from None


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


def _find_codec(declared: str) -> str | None:
    """The Python name of the declared encoding; None if it is unknown or not allowed."""
    try:
        encoding = codecs.lookup(declared).name
    except (LookupError, ValueError):
        return None
    return encoding if encoding in _DECLARABLE else None


def _is_mostly_utf8(raw: bytes) -> bool:
    """Whether the text is UTF-8 with a few damaged bytes. A guessed encoding would spoil all its accented letters."""
    lenient = raw.decode(errors="replace")
    damaged_count = lenient.count("\ufffd")
    intact_count = sum(not character.isascii() for character in lenient) - damaged_count
    return intact_count > damaged_count


def _guess_encoding(raw: bytes) -> str | None:
    from charset_normalizer import from_bytes

    sample = raw
    if len(raw) > _SAMPLE_BYTES:  # end the sample at the end of a line, so that it cuts no character in two
        sample = raw[: raw.rfind(b"\n", 0, _SAMPLE_BYTES) + 1 or _SAMPLE_BYTES]
    best = from_bytes(sample).best()
    return best.encoding if best else None


def _make_binary_error(name: str) -> ReadingError:
    return ReadingError(f"{name} is binary, not text: convert it to text first, or leave it out")


def _make_damage_error(name: str, encoding: str, error: UnicodeDecodeError) -> ReadingError:
    encoding_name = encoding.removesuffix("-sig").upper()
    what = f"{name} is {encoding_name}, but byte {error.start} is not"
    return ReadingError(f"{what}: repair it, or save it again as UTF-8")
