import codecs
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.errors import ReadingError
from tomewise.reading.decode import decode_text

FRENCH = "Le garçon a mangé une crêpe à côté de la forêt où l'été s'achève. Où êtes-vous allés, mes frères ? " * 20
RUSSIAN = "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему. " * 20
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 20


@given(st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc")), min_size=1).filter(lambda text: text.strip()))
def test_unicode_comes_back_as_it_was(text: str) -> None:
    for encoding, mark in (
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-32-le", codecs.BOM_UTF32_LE),
        ("utf-32-be", codecs.BOM_UTF32_BE),
    ):
        assert decode_text(mark + text.encode(encoding), "it") == text


@pytest.mark.parametrize(("text", "encoding"), [(FRENCH, "cp1252"), (RUSSIAN, "koi8-r"), (JAPANESE, "shift_jis")])
def test_other_encodings_are_guessed(text: str, encoding: str) -> None:
    assert decode_text(text.encode(encoding), "it") == text


def test_a_long_file_is_guessed_from_its_beginning() -> None:
    text = (FRENCH + "\n") * 700
    assert decode_text(text.encode("cp1252"), "it") == text


def test_a_declared_encoding_goes_before_a_guess() -> None:
    assert decode_text("œuvre à l'été".encode("cp1252"), "it", "cp1252") == "œuvre à l'été"


@pytest.mark.parametrize("raw", [b"a\r\nb\rc\nd", b"\xef\xbb\xbfa\r\nb\rc\nd"])
def test_newlines_are_one_character(raw: bytes) -> None:
    assert decode_text(raw, "it") == "a\nb\nc\nd"


@pytest.mark.parametrize("raw", [b"", b" \r\n\t ", b"\xef\xbb\xbf", b"\xff\xfe", b"\xef\xbb\xbf  "])
def test_emptiness_is_refused(raw: bytes) -> None:
    with pytest.raises(ReadingError, match=r"^it is empty or holds only white space: "):
        decode_text(raw, "it")


@pytest.mark.parametrize(
    "raw",
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"text with one \0 in it",
        b"\x01\x02\x03\x04abc",
        codecs.BOM_UTF16_LE + "a\0b".encode("utf-16-le"),
        random.Random(1).randbytes(5000).replace(b"\0", b"\x01"),
    ],
    ids=["png", "nul", "controls", "utf-16 nul", "noise"],
)
def test_binary_is_refused(raw: bytes) -> None:
    with pytest.raises(ReadingError, match=r"^it is binary, not text: "):
        decode_text(raw, "it")


def test_damaged_unicode_is_named_not_guessed_at() -> None:
    raw = FRENCH.encode()
    with pytest.raises(ReadingError, match="it is UTF-8, but byte 3 is not: repair it"):
        decode_text(raw[:3] + b"\xff" + raw[3:], "it")
    with pytest.raises(ReadingError, match="it is UTF-16, but byte"):
        decode_text(codecs.BOM_UTF16_LE + b"a\0\x00\xd8", "it")
    with pytest.raises(ReadingError, match="it is UTF-8, but byte"):
        decode_text(codecs.BOM_UTF8 + b"ab\xff", "it")


@pytest.mark.parametrize("declared", ["ascii", "no-such-encoding", "hex", "undefined"])
def test_a_declaration_that_does_not_hold_is_refused(declared: str) -> None:
    with pytest.raises(ReadingError, match="the encoding of it is unknown: save it as UTF-8"):
        decode_text(b"caf\xe9", "it", declared)


@pytest.mark.parametrize(
    "declared", ["unicode_escape", "raw_unicode_escape", "utf-7", "idna", "rot13", "zlib", "x" * 999]
)
def test_codecs_that_are_no_encodings_of_pages_are_refused(declared: str) -> None:
    with pytest.raises(ReadingError, match="the encoding of it is unknown: save it as UTF-8"):
        decode_text(rb"caf\ud800 \q" + b"\xe9", "it", declared)


@pytest.mark.parametrize(
    ("text", "declared"),
    [("สวัสดี", "tis-620"), ("déjà", "cp437"), ("déjà", "cp850"), ("čeština", "cp852")],
)
def test_code_pages_of_old_machines_are_declared(text: str, declared: str) -> None:
    assert decode_text(text.encode(declared), "it", declared) == text


@pytest.mark.parametrize("encoding", ["iso2022_jp", "iso2022_jp_2", "iso2022_jp_ext"])
def test_japanese_in_seven_bits_is_decoded(encoding: str) -> None:
    assert decode_text(f"The cat: {JAPANESE}\n".encode(encoding), "it") == f"The cat: {JAPANESE}\n"


def test_korean_in_seven_bits_is_decoded() -> None:
    assert decode_text("안녕하세요".encode("iso2022_kr"), "it") == "안녕하세요"


@pytest.mark.parametrize("raw", [b"\x1b$)A\x0e=;;;\x0f", b"\x1b$B\xff\xff", b"cut \x1b$B$"])
def test_damaged_text_in_seven_bits_is_refused(raw: bytes) -> None:
    with pytest.raises(ReadingError, match="it is in a form of ISO-2022 that cannot be read: save it as UTF-8"):
        decode_text(raw, "it")


def test_the_colours_of_a_terminal_are_no_other_alphabet() -> None:
    assert decode_text(b"\x1b[31mred\x1b(B\x1b[m $5", "it") == "\x1b[31mred\x1b(B\x1b[m $5"
