"""What a document takes in a tome is at most 20 kB and ten times its text, in every format and for every text."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

import openpyxl
import pptx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.reading.documents import EPUB, docx, draw_pdf, write_zip

from tomewise.errors import ReadingError
from tomewise.reading.process import ReaderProcess
from tomewise.reading.read import SourceReader
from tomewise.tome.tome import Tome
from tomewise.types import Document

FREE, TIMES = 20_000, 10
COPIES = 3  # of each document, because a database grows by whole pages


@dataclass(frozen=True)
class Block:
    """A heading of a level from 1 to 6, or a paragraph of level 0, so many times."""

    level: int
    words: str
    times: int


SHORT = ["x", "a b c d", "a-b-c", "!" * 129, "The rain fell. ", "日本語の文。", "😀", "1.5", "=" * 70]
REPEATED = st.sampled_from(["a ", "b-", "!", "word ", "名", '"'])
WORDS = st.one_of(
    st.text(alphabet="ab .-\"|#:;'", min_size=1, max_size=60),
    st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30),
    st.sampled_from(SHORT),
    st.builds(lambda word, times: word * times, REPEATED, st.integers(1, 1_000)),
)
BLOCK = st.builds(Block, st.integers(0, 6), WORDS, st.sampled_from([1, 3, 200, 2_000]))
BLOCKS = st.lists(BLOCK, min_size=1, max_size=5)
HOSTILE = (
    [Block(1, "a " * 10_000, 1), Block(0, "The rain fell. " * 50, 40)],
    [Block(level, "a b " * 30, 1) for level in range(1, 7)] + [Block(0, "a b c " * 100, 300)],
    [Block(level % 6 + 1, "x y z", 1) for level in range(2_000)],
    [Block(6, "x", 3_000)],
    [Block(0, "x", 10_000)],
    [Block(0, "!" * 129, 600)],
    [Block(1, "a-b-" * 100, 1), Block(0, "a-b-" * 100, 300)],
)


def spread(blocks: list[Block]) -> Iterator[tuple[int, str]]:
    room = 8_000  # characters, so that no example takes long
    most = max(block.times for block in blocks)
    for turn in range(most):
        for block in blocks:
            if turn < block.times and room > 0:
                room -= len(block.words)
                yield block.level, " ".join(block.words.split()) or "x"


def write_markdown(path: Path, blocks: list[Block]) -> None:
    title = blocks[0].words.replace("\n", " ")[:3_000]
    front = f"---\ntitle: {json.dumps(title)}\ntags: [{', '.join(['a'] * 5000)}]\nnote: {json.dumps(title * 9)}\n---\n"
    lines = "\n\n".join("#" * level + " " + words if level else words for level, words in spread(blocks))
    path.write_text(front + lines)


def write_text(path: Path, blocks: list[Block]) -> None:
    names = ["Ann", "Bob Ode de la Mer", "Cleo"]
    path.write_text("\n".join(f"{names[level % 3]}: {words}" for level, words in spread(blocks)))


def make_page(blocks: list[Block]) -> str:
    tagged = ((f"h{level}" if level else "p", escape(words)) for level, words in spread(blocks))
    rows = (f"<{tag}>{words}</{tag}>" for tag, words in tagged)
    return f"<html><head><title>{escape(blocks[0].words)}</title></head><body>{''.join(rows)}</body></html>"


def write_epub(path: Path, blocks: list[Block]) -> None:
    book = EPUB["o.opf"].replace("The Town", escape(blocks[0].words))
    write_zip(path, {**EPUB, "o.opf": book, "c.xhtml": make_page(blocks)})


def write_docx(path: Path, blocks: list[Block]) -> None:
    style = '<w:pPr><w:pStyle w:val="Heading{}"/></w:pPr>'
    docx(path, "".join(
        f"<w:p>{style.format(level) if level else ''}<w:r><w:t>{escape(words)}</w:t></w:r></w:p>"
        for level, words in spread(blocks)
    ))  # fmt: skip


def write_pptx(path: Path, blocks: list[Block]) -> None:
    show = pptx.Presentation()
    show.core_properties.title = blocks[0].words[:255]
    for level, words in list(spread(blocks))[:60]:
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = words
        slide.placeholders[1].text = words if level else "x"
    show.save(path)


def write_xlsx(path: Path, blocks: list[Block]) -> None:
    book = openpyxl.Workbook()
    for number, _ in enumerate(blocks[:3]):
        sheet = book.create_sheet("s" * 29 + str(number))
        sheet.append(["n" * 3_000, "value"])
        for level, words in list(spread(blocks))[:150]:
            sheet.append([words[:30_000], *["x"] * level])
    book.save(path)


def write_csv(path: Path, blocks: list[Block]) -> None:
    lines = [
        json.dumps("h" * 5_000) + ",b",
        *(f"{level or ''},{json.dumps(words)[1:-1]}" for level, words in spread(blocks)),
    ]
    path.write_text("\n".join(lines))


def write_rows(path: Path, blocks: list[Block]) -> None:
    turns = [{"speaker": f"{blocks[0].words}{level}", "content": words} for level, words in spread(blocks)]
    title, more = blocks[0].words * 9, {f"field {number}": "x" * number for number in range(900)}
    path.write_text(json.dumps({"id": "i" * 1_000, "title": title, "meeting_transcripts": turns, **more}))


def write_captions(path: Path, blocks: list[Block]) -> None:
    names = [escape(" ".join(block.words.split())) for block in blocks]
    cues = (
        f"{number // 60 % 60:02}:{number % 60:02}.000 --> 99:99.999\n<v {names[level % len(names)]}>{escape(words)}\n"
        for number, (level, words) in enumerate(spread(blocks))
    )
    path.write_text(f"WEBVTT - {names[0]}\n\n" + "\n".join(cues))


def make_mail(blocks: list[Block]) -> str:
    line = " ".join(blocks[0].words.encode("ascii", "replace").decode().split())
    head = f"From: {line[:900]} <a@b.example>\nTo: {'c@d.example, ' * 300}e@f.example\nSubject: {line}\n"
    body = "\n\n".join(words for _, words in spread(blocks))
    return f"{head}Content-Type: text/plain; charset=utf-8\n\n{body}\n"


def write_notebook(path: Path, blocks: list[Block]) -> None:
    sources = ((level, f"{'#' * level} {words}" if level else words) for level, words in spread(blocks))
    cells = [{"cell_type": "markdown" if level else "code", "source": source} for level, source in sources]
    path.write_text(json.dumps({"cells": cells, "metadata": {"title": blocks[0].words * 9}}))


def write_pdf(path: Path, blocks: list[Block]) -> None:
    pages = [re.sub(r"[^\w .!-]", "", words, flags=re.ASCII) or "x" for _, words in list(spread(blocks))[:150]]
    root = 4 + 2 * len(pages)  # the number of the object that lists the headings
    items = [
        f"<< /Title ({words[:3_000]}) /Parent {root} 0 R /Dest [{4 + 2 * number} 0 R /Fit]"
        + (f" /Next {root + number + 2} 0 R >>" if number + 1 < len(pages) else " >>")
        for number, words in enumerate(pages)
    ]
    outline = f"<< /Type /Outlines /First {root + 1} 0 R /Last {root + len(items)} 0 R >>"
    drawings = (f"BT /F1 9 Tf 20 720 Td ({words[:2_000]}) Tj ET" for words in pages)
    more = [item.encode() for item in [outline, *items]]
    path.write_bytes(draw_pdf(*drawings, catalog=b"/Outlines %d 0 R" % root, more=more))


WRITERS: dict[str, Callable[[Path, list[Block]], object]] = {
    "md": write_markdown, "txt": write_text, "html": lambda path, blocks: path.write_text(make_page(blocks)),
    "epub": write_epub, "docx": write_docx, "pptx": write_pptx, "xlsx": write_xlsx, "csv": write_csv,
    "jsonl": write_rows, "vtt": write_captions,
    "eml": lambda path, blocks: path.write_text(make_mail(blocks)),
    "mbox": lambda path, blocks: path.write_text(f"From a\n{make_mail(blocks)}"),
    "ipynb": write_notebook, "pdf": write_pdf,
}  # fmt: skip


def count_bytes(path: Path) -> int:
    """The bytes of the pages in use."""
    names = ("page_count", "freelist_count", "page_size")
    with closing(sqlite3.connect(path)) as database:
        pages, unused, size = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    return (pages - unused) * size


@pytest.fixture(scope="module")
def reader() -> Iterator[SourceReader]:
    with ReaderProcess() as process:
        yield SourceReader(process)


@pytest.fixture(scope="module")
def tome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tome]:
    with Tome.open(tmp_path_factory.mktemp("tome") / "a.tome", embedder="hash") as tome:
        tome.add(Document(id="first", text="The rain fell. " * 500))
        yield tome


def check_growth(tome: Tome, document: Document, number: Iterator[int]) -> None:
    path = Path(tome.store.address)
    before = count_bytes(path)
    copies = [replace(document, id=f"{document.id[:990]}/{next(number)}") for _ in range(COPIES)]
    report = tome.add(*copies)
    grown = (count_bytes(path) - before) / COPIES
    most = FREE + TIMES * len(document.text.encode())
    assert grown <= most, f"{grown / most:.2f} of {most:,}, {report.passages // COPIES} passages, {document!r}"


@pytest.mark.parametrize("suffix", WRITERS)
def test_no_file_takes_more_than_its_text_allows(
    suffix: str, reader: SourceReader, tome: Tome, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp(suffix)
    numbers = iter(range(10**9))

    @settings(max_examples=3, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(blocks=BLOCKS)
    def check(blocks: list[Block]) -> None:
        path = folder / f"{'long name ' * 20}{next(numbers)}.{suffix}"
        WRITERS[suffix](path, blocks)
        try:
            documents = reader.read(path).documents
        except ReadingError:  # for example nested too deep
            return
        for document in documents:
            check_growth(tome, document, numbers)

    for blocks in HOSTILE:
        check = example(blocks=blocks)(check)
    check()
