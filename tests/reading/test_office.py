"""DOCX, PPTX, XLSX, ODT, ODS and RTF."""

import zipfile
from datetime import date

import odfdo
import openpyxl
import pptx
import pytest
from pptx.util import Inches
from tests.reading.documents import docx

from tomewise.types import Place

TITLED = '<w:p><w:pPr><w:pStyle w:val="{}"/></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>'
CELL = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"


def test_a_docx_has_paragraphs_headings_tables_and_the_stated_title(read_document, tmp_path):
    body = f"{TITLED.format('Heading1', 'After')}<w:tbl><w:tr>{CELL.format('Oil')}{CELL.format(12)}</w:tr></w:tbl>"
    path = docx(tmp_path / "a.docx", body)
    assert read_document("a.docx").title == ""
    core = '<p:coreProperties xmlns:p="p" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Rain</dc:title></p:coreProperties>'
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("docProps/core.xml", core)
    document = read_document("a.docx")
    assert document.title == "Rain"
    assert document.text.startswith("The rain fell.\n\nThe wind rose.\n\n# After\n\n")
    assert "| Oil | 12 |" in document.text
    assert document.marks == ((document.text.index("# After"), Place(chapter=("After",))),)


def test_slides_have_headings_tables_groups_and_notes(read_document, tmp_path):
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
    document = read_document("a.pptx")
    assert document.title == "Harbour"
    assert document.text == (
        "# The Town\n\nThe rain fell.\nThe wind rose.\n\nNotes: Pause here.\n\n"
        "Grouped.\n\n| Item | Price |\n| Oil | 12 |"
    )
    assert document.marks == (
        (0, Place(slide=1, chapter=("The Town",))),
        (document.text.index("Grouped"), Place(slide=3)),
    )


def test_the_points_of_a_slide_are_a_list(read_document, tmp_path):
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.placeholders[1].text = "Rain up\nWind down\nNew boats"
    deck.save(tmp_path / "a.pptx")
    assert read_document("a.pptx").text == "- Rain up\n- Wind down\n- New boats"


def test_sheets_are_read_by_rows_with_the_names_of_columns(read_document, tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Boats"
    rows = (["Gull", 4.0, date(1911, 5, 2), True], [], ["Tern", 2.5, None, False])
    for row in (["Name", "Oars", "Built", "Paid"], *rows):
        sheet.append(row)
    book.create_sheet("Empty")
    book.create_sheet("Hidden").append(["only this"])
    book["Hidden"].sheet_state = "hidden"
    book.properties.title = "Harbour"
    book.save(tmp_path / "a.xlsx")
    document = read_document("a.xlsx")
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


@pytest.fixture
def read_open(read_document, tmp_path):
    """Save an open document with these elements, and read it."""

    def save_and_read(kind: str, *elements: odfdo.Element):
        document = odfdo.Document(kind)
        document.body.clear()
        for element in elements:
            document.body.append(element)
        for element in elements:
            if isinstance(element, odfdo.TOC):
                element.fill(document)
        name = "a.odt" if kind == "text" else "a.ods"
        document.save(str(tmp_path / name))
        return read_document(name)

    return save_and_read


def test_headings_lists_tables_and_notes_are_read_and_comments_and_contents_are_not(read_open):
    noted = odfdo.Paragraph("The rain fell.")
    noted.insert_note(after="rain", note_id="n", citation="1", body="It was warm.")
    noted.insert_annotation(after="fell", body="Is this so?", creator="Ben")
    frame = "<draw:frame><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    boxed = odfdo.Element.from_tag(f"<text:p>In a box:{frame.format('outer' + frame.format('inner'))}</text:p>")
    table = odfdo.Table("T", 2, 1)
    table.set_values([["ship", "Ada"]])
    contents = odfdo.TOC(title="What is in it")
    parts = [odfdo.Header(1, "One"), contents, noted, boxed, odfdo.Header(2, "Two"), odfdo.List(["wind", "ice"]), table]
    document = read_open("text", *parts)
    first = "# One\n\nThe rain fell.\n\nIt was warm.\n\nIn a box:\n\nouter\n\ninner"
    assert document.text == f"{first}\n\n## Two\n\n- wind\n- ice\n\n| ship | Ada |"
    assert [place.chapter for _, place in document.marks] == [("One",), ("One", "Two")]


def test_sheets_are_chapters_and_cells_have_their_values(read_open):
    table = odfdo.Table("Harbour")
    table.set_values([["ship", "year", "seen"], ["Ada", 1911, date(2020, 5, 1)], ["", "", ""], ["Bea", 12.5, None]])
    document = read_open("spreadsheet", table, odfdo.Table("Empty"))
    assert document.text == "# Harbour\n\nship: Ada; year: 1911; seen: 2020-05-01\n\nship: Bea; year: 12.5"
    assert [(place.chapter, place.row) for _, place in document.marks] == [(("Harbour",), 2), (("Harbour",), 4)]


def test_rtf_is_read_as_text_without_its_tables_of_fonts(read_document):
    document = read_document(
        "a.rtf",
        r"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\froman Times New Roman;}}{\colortbl;\red255;}"
        r"{\info{\title The caf\'e9}{\author Zo\'eb}}\pard The \b rain\b0  fell on the caf\'e9 \u8212- twice.\par"
        r"{\*\generator Msftedit;}The wind{\footnote From {\i the} west.} rose.\par}",
    )
    assert document.text == "The rain fell on the café — twice.\nThe wind rose.\n From the west."
    assert (document.title, document.metadata["author"]) == ("The café", "Zoë")
