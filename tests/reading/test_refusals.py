"""What a reader refuses: one line that names the file, the reason and, where there is one, the remedy."""

import sys
import zipfile

import pytest
from tests.reading.documents import ENCRYPTED_MAIL, ENCRYPTED_PDF, EPUB, LOCKED_OFFICE, OLD_OFFICE, write_zip

from tomewise.errors import MissingDependency, ReadingError
from tomewise.reading.formats import load_reader

NO_DOCUMENT = b"this is no document at all"
OFFICE = ("docx", "pptx", "xlsx")
NO_NOTEBOOKS = (b"{", b"[]", b"{}", b'{"cells": 3}', b"[" * 100_000)
NO_PASSWORD = "needs a password, because it is encrypted: save a copy without"


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        *((f"a.{kind}", NO_DOCUMENT, r"could not be converted: ") for kind in ("docx", "pptx", "xlsx", "odt", "ods")),
        ("a.pdf", NO_DOCUMENT, r"could not be converted: .*; repair it"),
        ("a.epub", NO_DOCUMENT, "could not be converted: File is not a zip file"),
        *((f"a.{kind}", OLD_OFFICE, "is a file of an old version of Office: save it") for kind in OFFICE),
        *((f"a.{kind}", LOCKED_OFFICE, NO_PASSWORD) for kind in OFFICE),
        ("a.pdf", ENCRYPTED_PDF, NO_PASSWORD),
        ("a.srt", b"The rain fell.", "holds no captions"),
        ("a.csv", b"a\0b", "is binary"),
        ("a.rtf", b"The rain fell.", "is not RTF"),
        ("a.eml", b"The rain fell.", "is not a message"),
        ("a.eml", ENCRYPTED_MAIL, "is an encrypted message"),
        ("a.mbox", b"The rain fell.", "holds no messages"),
        *(("a.ipynb", raw, "is not a notebook, because it") for raw in NO_NOTEBOOKS),
        ("a.html", b"<div>" * 20_000 + b"x", "is HTML but nested too deep: save it"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 12 else "",
)  # fmt: skip
def test_what_cannot_be_read_is_refused_in_one_line_that_names_it(name, raw, message, read_document, tmp_path):
    with pytest.raises(ReadingError, match=message) as caught:
        read_document(name, raw)
    assert str(tmp_path / name) in str(caught.value)
    assert "\n" not in str(caught.value)


def encrypt_epub(algorithm: str) -> str:
    return (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"'
        ' xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData>'
        f'<enc:EncryptionMethod Algorithm="{algorithm}"/></enc:EncryptedData></encryption>'
    )


NO_CHAPTERS = "<package><manifest/><spine/></package>"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"META-INF/encryption.xml": encrypt_epub("http://www.w3.org/2001/04/xmlenc#aes128-cbc")}, "protected by DRM"),
        ({"c.xhtml": None}, r"lacks 1 of its 1 chapters \(c.xhtml\): get the whole book"),
        ({"o.opf": NO_CHAPTERS}, "lists no chapters"),
        ({"META-INF/container.xml": "<container/>"}, "does not name a list of its chapters"),
        ({"META-INF/container.xml": None}, "could not be converted: .*container.xml"),
        ({"o.opf": None}, "could not be converted: .*o.opf"),
        ({"o.opf": "<package>"}, "could not be converted: "),
        ({"c.xhtml": "\x01\x02\x03\x00"}, "the chapter c.xhtml of .* is binary, not text"),
    ],
)
def test_a_book_that_cannot_be_read_is_refused_with_the_reason(changed, message, read_document, tmp_path):
    parts = {name: content for name, content in {**EPUB, **changed}.items() if content is not None}
    path = write_zip(tmp_path / "a.epub", parts)
    with pytest.raises(ReadingError, match=message) as caught:
        read_document(path.name)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_book_with_scrambled_fonts_is_not_protected(read_document, tmp_path):
    fonts = {"META-INF/encryption.xml": encrypt_epub("http://www.idpf.org/2008/embedding")}
    write_zip(tmp_path / "a.epub", {**EPUB, **fonts})
    assert "The rain fell." in read_document("a.epub").text


def test_an_encrypted_open_document_is_named_as_such(read_document, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.odt", "w") as archive:
        archive.writestr("META-INF/manifest.xml", "<manifest:encryption-data/>")
    with pytest.raises(ReadingError, match="needs a password"):
        read_document("a.odt")


@pytest.mark.parametrize(("format", "library"), [("pdf", "pypdfium2"), ("xlsx", "openpyxl")])
def test_without_the_extra_its_name_is_said(format, library, monkeypatch):
    for module in ("office", "pdf", "workbooks"):
        monkeypatch.delitem(sys.modules, f"tomewise.reading.{module}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    needed = rf"reading {format.upper()} needs .*pip install 'tomewise\[documents\]'"
    with pytest.raises(MissingDependency, match=needed):
        load_reader(format)
