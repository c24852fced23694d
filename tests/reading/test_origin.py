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

from tomewise.reading.metadata import describe_origin, write_date
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


def make_office(path: Path) -> None:
    if path.suffix == ".xlsx":
        document = openpyxl.Workbook()
        document.active.append([WORDS])
        properties = document.properties
        properties.creator = "Ada Marsh"
    else:
        document = docx.Document() if path.suffix == ".docx" else pptx.Presentation()
        if path.suffix == ".docx":
            document.add_paragraph(WORDS)
        else:
            document.slides.add_slide(document.slide_layouts[0]).shapes.title.text = WORDS
        properties = document.core_properties
        properties.author = "Ada Marsh"
    properties.title, properties.language, properties.created = "The Harbour", "en-GB", MADE.replace(tzinfo=None)
    document.save(path)


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
    table = odfdo.Table("Harbour")
    table.set_values([[WORDS]])
    document.body.append(table if path.suffix == ".ods" else odfdo.Paragraph(WORDS))
    document.meta.title, document.meta.initial_creator, document.meta.language = "The Harbour", "Ada Marsh", "en-GB"
    document.meta.creation_date = MADE
    document.save(str(path))


INFO = r"{\info{\title The Harbour}{\author Ada Marsh}{\creatim\yr2024\mo5\dy1\hr12\min4}}"
HEAD = '<meta name="author" content="Ada Marsh"><meta property="article:published_time" content="2024-05-01T12:04Z">'
FIELDS = "From: Ada Marsh <ada@example.org>\nSubject: The Harbour\nDate: Wed, 1 May 2024 12:04:00 +0000"
TEXTS = {
    ".rtf": rf"{{\rtf1\ansi\ansicpg1252\deff0\deflang2057{INFO}\pard {WORDS}\par}}",
    ".html": f'<html lang="en-GB"><title>The Harbour</title>{HEAD}<main><p>{WORDS}</p></main></html>',
    ".eml": f"{FIELDS}\nContent-Language: en-GB\n\n{WORDS}",
}


MAKERS = {
    ".pdf": make_pdf,
    **dict.fromkeys((".docx", ".pptx", ".xlsx"), make_office),
    ".epub": make_epub,
    **dict.fromkeys((".odt", ".ods"), make_odf),
    **dict.fromkeys(TEXTS, lambda path: path.write_text(TEXTS[path.suffix])),
}


@pytest.fixture(scope="module")
def process():
    with ReaderProcess() as process:
        yield process


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of the libraries that make files
@pytest.mark.parametrize("suffix", MAKERS)
def test_a_file_of_each_format_keeps_what_it_says_of_itself(suffix, process, tmp_path):
    path = tmp_path / f"a{suffix}"
    MAKERS[suffix](path)
    (document,) = SourceReader(process).read(path).documents
    assert document.title == "The Harbour"
    assert document.metadata["author"] == "Ada Marsh"
    assert document.metadata["language"] == "en-GB"
    # ReportLab writes the time at which it makes the file.
    made = f"{datetime.now(UTC):%Y}" if suffix == ".pdf" else "2024-05-01 12:04"
    assert str(document.metadata["date"]).startswith(made)
    assert WORDS in document.text
    assert "first chapter of all" not in document.text, "a table of contents is no text"


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("D:20240501120400+02'00'", "2024-05-01 12:04"),
        ("D:2024", "2024"),
        ("2024-05", "2024-05"),
        ("2024-05-01T00:00:00Z", "2024-05-01"),
        ("2024-05-01T00:30:00Z", "2024-05-01 00:30"),
        ("2024-05-01T12:04:59.123456", "2024-05-01 12:04"),
        ("2024-05-01 12:04:00 +0000", "2024-05-01 12:04"),
        ("D:20240501120400Z", "2024-05-01 12:04"),
        ("202405", "2024-05"),
        # As it is written, where that is not a date.
        *((words, words) for words in ("5 May 2024", "20240501123", "2019-2021", "2024-13-45", "2023-02-29")),
        *((words, words) for words in ("2024/05/01", "2024-05-01 or later", "")),
    ],
)
def test_dates_have_one_form(written: str, date: str) -> None:
    assert write_date(written) == date


def test_several_authors_are_a_list_and_nobody_is_none() -> None:
    assert describe_origin(authors=["Ada  Marsh", "Ben", "Ada Marsh"]) == {"author": ["Ada Marsh", "Ben"]}
    assert describe_origin(authors=["python-docx", ""], language="en_GB") == {"language": "en-GB"}
