"""Title, author, date and language of files as the usual libraries make them."""

from datetime import UTC, datetime
from pathlib import Path

import docx
import odfdo
import openpyxl
import pptx
import pytest
from ebooklib import epub
from reportlab.pdfgen import canvas

from tomewise.reading.origin import describe_origin, write_date
from tomewise.reading.process import ReaderProcess
from tomewise.reading.read import SourceReader

MADE = datetime(2024, 5, 1, 12, 4, tzinfo=UTC)
WORDS = "The rain fell on the harbour all night."


def make_pdf(path: Path) -> None:
    page = canvas.Canvas(str(path), lang="en-GB")
    page.setAuthor("Ada Marsh")
    page.setTitle("The Harbour")
    page.drawString(72, 720, WORDS)
    page.save()


def make_office(document: object, path: Path) -> None:
    properties = document.core_properties  # type: ignore[attr-defined]
    properties.author, properties.title, properties.language = "Ada Marsh", "The Harbour", "en-GB"
    properties.created = MADE.replace(tzinfo=None)
    document.save(path)  # type: ignore[attr-defined]


def make_docx(path: Path) -> None:
    document = docx.Document()
    document.add_paragraph(WORDS)
    make_office(document, path)


def make_pptx(path: Path) -> None:
    show = pptx.Presentation()
    show.slides.add_slide(show.slide_layouts[0]).shapes.title.text = WORDS
    make_office(show, path)


def make_xlsx(path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append([WORDS])
    book.properties.creator, book.properties.title, book.properties.language = "Ada Marsh", "The Harbour", "en-GB"
    book.properties.created = MADE.replace(tzinfo=None)
    book.save(path)


def make_epub(path: Path) -> None:
    book = epub.EpubBook()
    book.set_title("The Harbour")
    book.set_language("en-GB")
    book.add_author("Ada Marsh")
    book.add_metadata("DC", "date", "2024-05-01T12:04:00Z")
    chapter = epub.EpubHtml(title="One", file_name="one.xhtml")
    chapter.content = f"<h1>One</h1><p>{WORDS}</p>"
    book.add_item(chapter)
    book.toc = (epub.Link("one.xhtml", "The first chapter of all", "one"),)
    book.add_item(epub.EpubNcx())
    book.add_item(epub.EpubNav())
    book.spine = ["nav", chapter]
    epub.write_epub(str(path), book)


def make_odf(path: Path) -> None:
    document = odfdo.Document("spreadsheet" if path.suffix == ".ods" else "text")
    document.body.clear()
    if path.suffix == ".ods":
        table = odfdo.Table("Harbour")
        table.set_values([[WORDS]])
        document.body.append(table)
    else:
        document.body.append(odfdo.Paragraph(WORDS))
    document.meta.title, document.meta.initial_creator, document.meta.language = "The Harbour", "Ada Marsh", "en-GB"
    document.meta.creation_date = MADE
    document.save(str(path))


def make_rtf(path: Path) -> None:
    info = r"{\info{\title The Harbour}{\author Ada Marsh}{\creatim\yr2024\mo5\dy1\hr12\min4}}"
    path.write_text(rf"{{\rtf1\ansi\ansicpg1252\deff0\deflang2057{info}\pard {WORDS}\par}}")


def make_html(path: Path) -> None:
    head = (
        '<meta name="author" content="Ada Marsh"><meta property="article:published_time" content="2024-05-01T12:04Z">'
    )
    path.write_text(f'<html lang="en-GB"><title>The Harbour</title>{head}<main><p>{WORDS}</p></main></html>')


def make_mail(path: Path) -> None:
    fields = ["From: Ada Marsh <ada@example.org>", "Subject: The Harbour", "Date: Wed, 1 May 2024 12:04:00 +0000"]
    path.write_text("\n".join([*fields, "Content-Language: en-GB", "", WORDS]))


MAKERS = {
    ".pdf": make_pdf,
    ".docx": make_docx,
    ".pptx": make_pptx,
    ".xlsx": make_xlsx,
    ".epub": make_epub,
    ".odt": make_odf,
    ".ods": make_odf,
    ".rtf": make_rtf,
    ".html": make_html,
    ".eml": make_mail,
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of the libraries that make files
@pytest.mark.parametrize("suffix", MAKERS)
def test_a_file_of_each_format_keeps_what_it_says_of_itself(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    MAKERS[suffix](path)
    with ReaderProcess() as process:
        (document,) = SourceReader(process).read(path).documents
    assert document.title == "The Harbour"
    assert document.metadata["author"] == "Ada Marsh"
    assert document.metadata["language"] == "en-GB"
    # ReportLab writes the time at which it makes the file.
    made = f"{datetime.now(UTC):%Y}" if suffix == ".pdf" else "2024-05-01 12:04"
    assert str(document.metadata["date"]).startswith(made)
    assert WORDS in document.text
    assert "first chapter of all" not in document.text, "a table of contents is no text"


def test_what_libraries_write_unasked_is_left_out(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph(WORDS)
    document.save(str(tmp_path / "a.docx"))
    with ReaderProcess() as process:
        (read,) = SourceReader(process).read(tmp_path / "a.docx").documents
    assert (read.title, read.metadata) == ("", {})


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("D:20240501120400+02'00'", "2024-05-01 12:04"),
        ("D:2024", "2024"),
        ("2024-05", "2024-05"),
        ("2024-05-01T00:00:00Z", "2024-05-01"),
        ("2024-05-01T12:04:59.123456", "2024-05-01 12:04"),
        ("5 May 2024", "5 May 2024"),
        ("20240501123", "20240501123"),
        ("2024-05-01 12:04:00 +0000", "2024-05-01 12:04"),
        ("D:20240501120400Z", "2024-05-01 12:04"),
        ("202405", "2024-05"),
        ("2019-2021", "2019-2021"),
        ("2024-13-45", "2024-13-45"),
        ("2023-02-29", "2023-02-29"),
        ("2024/05/01", "2024/05/01"),
        ("2024-05-01 or later", "2024-05-01 or later"),
        ("", ""),
    ],
)
def test_dates_have_one_form(written: str, date: str) -> None:
    assert write_date(written) == date


def test_several_authors_are_a_list_and_nobody_is_none() -> None:
    assert describe_origin(authors=["Ada  Marsh", "Ben", "Ada Marsh"]) == {"author": ["Ada Marsh", "Ben"]}
    assert describe_origin(authors=["python-docx", ""], language="en_GB") == {"language": "en-GB"}
