import sys
from pathlib import Path

import pytest
from tests.reading.documents import docx, pdf

from tomewise.errors import MissingDependency, ReadingError
from tomewise.reading import office
from tomewise.reading.formats import load_reader
from tomewise.reading.office import read_docx, read_pdf


def test_pdf(tmp_path: Path) -> None:
    path = tmp_path / "a.PDF"
    path.write_bytes(pdf("The rain fell on the town."))
    (document,) = read_pdf(path)
    assert document.text.strip() == "The rain fell on the town."
    assert (document.id, document.source, document.title) == (path.as_posix(), path.as_posix(), "")


def test_a_pdf_is_marked_with_its_pages(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf("The rain fell.", "", "The wind rose."))
    (document,) = read_pdf(path)
    assert [place.page for _, place in document.marks] == [1, 2, 3]
    (_, start), (_, second), (third, _) = [(start, start) for start, _ in document.marks]
    assert document.text[start:second].strip() == "The rain fell."
    assert document.text[third:].strip() == "The wind rose."


def test_pages_that_cannot_be_told_are_not_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf("The rain fell.", "The wind rose."))
    monkeypatch.setattr(office, "_count_pages", lambda _: 3)
    assert read_pdf(path)[0].marks == ()


def test_a_docx_is_marked_with_its_headings(tmp_path: Path) -> None:
    heading = '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>After</w:t></w:r></w:p>'
    (document,) = read_docx(docx(tmp_path / "a.docx", heading))
    assert [(document.text[start:], place.chapter) for start, place in document.marks] == [("# After", ("After",))]


def test_docx(tmp_path: Path) -> None:
    (document,) = read_docx(docx(tmp_path / "a.docx"))
    assert document.text == "The rain fell.\n\nThe wind rose."


@pytest.mark.parametrize("reader", [read_pdf, read_docx])
def test_a_damaged_document_is_refused(reader, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"this is no document at all")
    with pytest.raises(ReadingError, match="could not be converted: ") as caught:
        reader(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("format", ["pdf", "docx"])
def test_without_the_extra_its_name_is_said(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tomewise.reading.office")
    monkeypatch.setitem(sys.modules, "markitdown", None)
    with pytest.raises(MissingDependency, match=r"pip install 'tomewise\[documents\]'"):
        load_reader(format)
