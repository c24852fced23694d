import codecs
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.errors import ReadingError
from tomewise.reading.decode import decode

FRENCH = "Le garçon a mangé une crêpe à côté de la forêt où l'été s'achève. Où êtes-vous allés, mes frères ? " * 20
RUSSIAN = "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему. " * 20
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 20


@given(st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc")), min_size=1).filter(lambda text: text.strip()))
def test_unicode_comes_back_as_it_was(text):
    for encoding, mark in (
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-32-le", codecs.BOM_UTF32_LE),
        ("utf-32-be", codecs.BOM_UTF32_BE),
    ):
        assert decode(mark + text.encode(encoding), "it")[0] == text


@pytest.mark.parametrize(
    ("text", "encoding", "declared"),
    [
        # Guessed.
        (FRENCH, "cp1252", None),
        (RUSSIAN, "koi8-r", None),
        (JAPANESE, "shift_jis", None),
        ((FRENCH + "\n") * 700, "cp1252", None),  # from its beginning
        # Declared, which goes before a guess.
        ("œuvre à l'été", "cp1252", "cp1252"),
        ("สวัสดี", "tis-620", "tis-620"),
        *(("déjà", page, page) for page in ("cp437", "cp850")),
        ("čeština", "cp852", "cp852"),
        # In seven bits, which would be UTF-8 too.
        *((f"The cat: {JAPANESE}\n", form, None) for form in ("iso2022_jp", "iso2022_jp_2", "iso2022_jp_ext")),
        ("안녕하세요", "iso2022_kr", None),
        ("\x1b[31mred\x1b(B\x1b[m $5", "ascii", None),  # the colours of a terminal are no other alphabet
    ],
    ids=lambda value: str(value)[:12],
)
def test_other_encodings_are_declared_or_guessed(text, encoding, declared):
    assert decode(text.encode(encoding), "it", declared)[0] == text


@pytest.mark.parametrize("raw", [b"a\r\nb\rc\nd", b"\xef\xbb\xbfa\r\nb\rc\nd"])
def test_newlines_are_one_character(raw):
    assert decode(raw, "it")[0] == "a\nb\nc\nd"


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
NUL_IN_UTF16 = codecs.BOM_UTF16_LE + "a\0b".encode("utf-16-le")
NOISE = random.Random(1).randbytes(5000).replace(b"\0", b"\x01")
OUTSIDE = rb"caf\ud800 \q" + b"\xe9"


@pytest.mark.parametrize(
    ("raw", "declared", "message"),
    [
        *((raw, None, "is empty or holds only white space: ")
          for raw in (b"", b" \r\n\t ", b"\xef\xbb\xbf", b"\xff\xfe", b"\xef\xbb\xbf  ")),
        *((raw, None, "is binary, not text: ")
          for raw in (PNG, b"text with one \0 in it", b"\x01\x02\x03\x04abc", NUL_IN_UTF16, NOISE)),
        *((raw, None, "is binary, not text: ") for raw in (b"\0\1", bytes(range(20)) * 9)),
        # Damaged Unicode is named, and not guessed at.
        (FRENCH.encode()[:3] + b"\xff" + FRENCH.encode()[3:], None, "is UTF-8, but byte 3 is not: repair it"),
        (codecs.BOM_UTF16_LE + b"a\0\x00\xd8", None, "is UTF-16, but byte"),
        (codecs.BOM_UTF8 + b"ab\xff", None, "is UTF-8, but byte"),
        # A declaration that does not hold, and codecs that are no encodings of pages.
        *((b"caf\xe9", name, None) for name in ("ascii", "no-such-encoding", "hex", "undefined")),
        *((OUTSIDE, name, None) for name in ("unicode_escape", "raw_unicode_escape", "utf-7", "idna", "rot13", "zlib")),
        (OUTSIDE, "x" * 999, None),
        *((raw, None, "is in a form of ISO-2022 that cannot be read: save it as UTF-8")
          for raw in (b"\x1b$)A\x0e=;;;\x0f", b"\x1b$B\xff\xff", b"cut \x1b$B$")),
    ],
    ids=lambda value: str(value)[:24],
)  # fmt: skip
def test_what_is_no_text_is_refused(raw, declared, message):
    message = f"^it {message}" if message else "the encoding of it is unknown: save it as UTF-8"
    with pytest.raises(ReadingError, match=message):
        decode(raw, "it", declared)
