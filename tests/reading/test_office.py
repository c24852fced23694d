import sys
import zipfile
from datetime import date
from pathlib import Path

import openpyxl
import pptx
import pytest
from pptx.util import Inches
from tests.reading.documents import docx

from tomewise.errors import MissingDependency, ReadingError
from tomewise.reading.formats import load_reader
from tomewise.reading.office import read_docx, read_pptx
from tomewise.reading.workbooks import read_xlsx
from tomewise.types import Place


def test_a_docx_is_marked_with_its_headings(tmp_path: Path) -> None:
    heading = '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>After</w:t></w:r></w:p>'
    (document,) = read_docx(docx(tmp_path / "a.docx", heading))
    assert [(document.text[start:], place.chapter) for start, place in document.marks] == [("# After", ("After",))]


def test_docx(tmp_path: Path) -> None:
    (document,) = read_docx(docx(tmp_path / "a.docx"))
    assert document.text == "The rain fell.\n\nThe wind rose."


@pytest.mark.parametrize("reader", [read_docx, read_pptx, read_xlsx])
def test_a_damaged_document_is_refused(reader, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"this is no document at all")
    with pytest.raises(ReadingError, match="could not be converted: ") as caught:
        reader(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("format", "library"), [("pdf", "pypdfium2"), ("docx", "mammoth"), ("pptx", "pptx"), ("xlsx", "openpyxl")]
)
def test_without_the_extra_its_name_is_said(format: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("office", "pdf", "workbooks"):
        monkeypatch.delitem(sys.modules, f"tomewise.reading.{module}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        MissingDependency, match=rf"reading {format.upper()} needs .*pip install 'tomewise\[documents\]'"
    ):
        load_reader(format)


@pytest.mark.parametrize("reader", [read_docx, read_pptx, read_xlsx])
def test_an_encrypted_or_old_file_of_office_is_named_as_such(reader, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600))
    with pytest.raises(ReadingError, match="is a file of an old version of Office: save it in the format"):
        reader(path)
    path.write_bytes(path.read_bytes() + "EncryptedPackage".encode("utf-16-le"))
    with pytest.raises(ReadingError, match="needs a password, because it is encrypted: save a copy without"):
        reader(path)


def test_a_docx_has_title_lists_tables_and_notes(tmp_path: Path) -> None:
    body = (
        '<w:p><w:pPr><w:pStyle w:val="Title"/></w:pPr><w:r><w:t>The Town</w:t></w:r></w:p>'
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Oil</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>12</w:t></w:r></w:p></w:tc>"
        "</w:tr></w:tbl>"
    )
    path = docx(tmp_path / "a.docx", body)
    core = '<p:coreProperties xmlns:p="p" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Rain</dc:title></p:coreProperties>'
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("docProps/core.xml", core)
    (document,) = read_docx(path)
    assert document.title == "Rain"
    assert "| Oil | 12 |" in document.text


def test_slides_have_headings_tables_groups_and_notes(tmp_path: Path) -> None:
    deck = pptx.Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[1])
    first.shapes.title.text = "The Town"
    first.placeholders[1].text = "The rain fell.\nThe wind rose."
    first.notes_slide.notes_text_frame.text = "Pause here."
    deck.slides.add_slide(deck.slide_layouts[6])  # empty
    third = deck.slides.add_slide(deck.slide_layouts[6])
    size = (Inches(1),) * 4
    third.shapes.add_group_shape().shapes.add_textbox(*size).text_frame.text = "Grouped."
    table = third.shapes.add_table(2, 2, *size).table
    for number, word in enumerate(("Item", "Price", "Oil", "12")):
        table.cell(number // 2, number % 2).text = word
    deck.core_properties.title = "Harbour"
    deck.save(tmp_path / "a.pptx")
    (document,) = read_pptx(tmp_path / "a.pptx")
    assert document.title == "Harbour"
    assert document.text == (
        "# The Town\n\nThe rain fell.\nThe wind rose.\n\nNotes: Pause here.\n\n"
        "Grouped.\n\n| Item | Price |\n| Oil | 12 |"
    )
    assert document.marks == (
        (0, Place(slide=1, chapter=("The Town",))),
        (document.text.index("Grouped"), Place(slide=3)),
    )


def test_sheets_are_read_by_rows_with_the_names_of_columns(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Boats"
    for row in (
        ["Name", "Oars", "Built", "Paid"],
        ["Gull", 4.0, date(1911, 5, 2), True],
        [],
        ["Tern", 2.5, None, False],
    ):
        sheet.append(row)
    book.create_sheet("Empty")
    book.create_sheet("Hidden").append(["only this"])
    book["Hidden"].sheet_state = "hidden"
    book.properties.title = "Harbour"
    book.save(tmp_path / "a.xlsx")
    (document,) = read_xlsx(tmp_path / "a.xlsx")
    assert document.title == "Harbour"
    assert document.text == (
        "# Boats\n\nName: Gull; Oars: 4; Built: 1911-05-02; Paid: True\n\n"
        "Name: Tern; Oars: 2.5; Paid: False\n\n# Hidden\n\nonly this"
    )
    assert [(document.text[start:].split("\n")[0][:10], place) for start, place in document.marks] == [
        ("# Boats", Place(chapter=("Boats",), row=2)),
        ("Name: Tern", Place(chapter=("Boats",), row=4)),
        ("# Hidden", Place(chapter=("Hidden",), row=1)),
    ]


def test_a_cell_in_the_last_corner_of_a_sheet_takes_no_time(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = "first", "last"
    book.save(tmp_path / "a.xlsx")
    (document,) = read_xlsx(tmp_path / "a.xlsx")
    assert [place.row for _, place in document.marks] == [1048576]
    assert "last" in document.text
