"""ODT and ODS, made by odfdo."""

import zipfile
from datetime import date
from pathlib import Path

import odfdo
import pytest

from tomewise.errors import ReadingError
from tomewise.reading.open_documents import read_ods, read_odt


def save(document: odfdo.Document, path: Path, *elements: odfdo.Element) -> Path:
    document.body.clear()
    for element in elements:
        document.body.append(element)
    document.save(str(path))
    return path


def test_headings_lists_tables_and_notes_are_read_and_comments_are_not(tmp_path: Path) -> None:
    noted = odfdo.Paragraph("The rain fell.")
    noted.insert_note(after="rain", note_id="n", citation="1", body="It was warm.")
    noted.insert_annotation(after="fell", body="Is this so?", creator="Ben")
    table = odfdo.Table("T", 2, 1)
    table.set_values([["ship", "Ada"]])
    parts = [odfdo.Header(1, "One"), noted, odfdo.Header(2, "Two"), odfdo.List(["wind", "ice"]), table]
    (document,) = read_odt(save(odfdo.Document("text"), tmp_path / "a.odt", *parts))
    assert document.text == "# One\n\nThe rain fell.\n\nIt was warm.\n\n## Two\n\n- wind\n- ice\n\n| ship | Ada |"
    assert [place.chapter for _, place in document.marks] == [("One",), ("One", "Two")]


def test_a_box_in_a_box_is_read_once_and_notes_of_headings_are_kept(tmp_path: Path) -> None:
    def box(*inner: str) -> str:
        paragraphs = "".join(f"<text:p>{each}</text:p>" for each in inner)
        return f"<draw:frame><draw:text-box>{paragraphs}</draw:text-box></draw:frame>"

    header = odfdo.Header(1, "One")
    header.insert_note(after="One", note_id="n", citation="1", body="It was warm.")
    boxed = odfdo.Element.from_tag(f"<text:p>The rain fell.{box('outer', 'more' + box('inner'))}</text:p>")
    ruby = odfdo.Element.from_tag(
        "<text:p><text:ruby><text:ruby-base>雨</text:ruby-base><text:ruby-text>あめ</text:ruby-text></text:ruby></text:p>"
    )
    (document,) = read_odt(save(odfdo.Document("text"), tmp_path / "a.odt", header, boxed, ruby))
    assert document.text == "# One\n\nIt was warm.\n\nThe rain fell.\n\nouter\n\nmore\n\ninner\n\n雨"


def test_a_table_of_contents_is_no_text(tmp_path: Path) -> None:
    document = odfdo.Document("text")
    contents = odfdo.TOC(title="What is in it")
    path = save(document, tmp_path / "a.odt", odfdo.Header(1, "One"), contents, odfdo.Paragraph("The rain fell."))
    contents.fill(document)
    document.save(str(path))
    (read,) = read_odt(path)
    assert read.text == "# One\n\nThe rain fell."


def test_sheets_are_chapters_and_cells_have_their_values(tmp_path: Path) -> None:
    table = odfdo.Table("Harbour")
    table.set_values([["ship", "year", "seen"], ["Ada", 1911, date(2020, 5, 1)], ["", "", ""], ["Bea", 12.5, None]])
    (document,) = read_ods(save(odfdo.Document("spreadsheet"), tmp_path / "a.ods", table, odfdo.Table("Empty")))
    assert document.text == "# Harbour\n\nship: Ada; year: 1911; seen: 2020-05-01\n\nship: Bea; year: 12.5"
    assert [(place.chapter, place.row) for _, place in document.marks] == [(("Harbour",), 2), (("Harbour",), 4)]


def test_rows_that_a_file_repeats_without_end_are_refused(tmp_path: Path) -> None:
    table = odfdo.Table("Harbour")
    table.set_values([["ship"]])
    table.get_elements("table:table-row")[0].set_attribute("table:number-rows-repeated", "99999999")
    with pytest.raises(ReadingError, match="rows behind row"):
        read_ods(save(odfdo.Document("spreadsheet"), tmp_path / "a.ods", table))


def test_an_encrypted_document_is_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "a.odt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/manifest.xml", "<manifest:encryption-data/>")
    with pytest.raises(ReadingError, match="needs a password"):
        read_odt(path)


@pytest.mark.parametrize("reader", [read_odt, read_ods])
def test_a_damaged_document_is_refused(reader, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"this is no document at all")
    with pytest.raises(ReadingError, match="could not be converted: "):
        reader(tmp_path / "a")
