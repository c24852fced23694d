"""Bombs as PDF, XLSX, PPTX, mail and tables: each is read or refused within 6 seconds and 200 MB, then the next is."""

from __future__ import annotations

import io
import re
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import openpyxl
import pptx
import pytest
from tests.reading.documents import draw_pdf

from tomewise.errors import ReadingError
from tomewise.reading.bounds import Bounds
from tomewise.reading.process import ReaderProcess
from tomewise.reading.read import SourceReader
from tomewise.types import Document

BOUNDS = Bounds(seconds=6, memory=200, characters=1_000_000)
SHEET = "xl/worksheets/sheet1.xml"
SLIDE = "ppt/slides/slide1.xml"
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
LAUGHS = (
    '<!DOCTYPE a [<!ENTITY l0 "ha">' + "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10)) + "]>"
)
RAIN = "BT /F1 12 Tf 72 720 Td (Rain.) Tj ET"


def change_parts(raw: bytes, parts: Mapping[str, str | bytes]) -> bytes:
    """The archive with other or further parts, squeezed."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name not in parts:
                new.writestr(name, old.read(name))
        for name, content in parts.items():
            new.writestr(name, content)
    return changed.getvalue()


def make_book() -> bytes:
    book, raw = openpyxl.Workbook(), io.BytesIO()
    book.active.append(["Rain", "Wind"])
    book.save(raw)
    return raw.getvalue()


def make_show() -> bytes:
    show, raw = pptx.Presentation(), io.BytesIO()
    show.slides.add_slide(show.slide_layouts[1]).shapes.title.text = "Rain"
    show.save(raw)
    return raw.getvalue()


def fill_sheet(rows: str, head: str = "") -> bytes:
    return change_parts(make_book(), {SHEET: f"<worksheet {MAIN}>{head}<sheetData>{rows}</sheetData></worksheet>"})


def cell(place: str, value: str = "1") -> str:
    return f'<c r="{place}"><v>{value}</v></c>'


def put_row(number: int, column: str) -> str:
    return f'<row r="{number}">{cell(f"{column}{number}")}</row>'


def share_strings(strings: str, head: str = "") -> bytes:
    """A workbook with these strings and two cells that show the first of them."""
    rows = '<row><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>0</v></c></row>'
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    with zipfile.ZipFile(io.BytesIO(make_book())) as book:
        types = book.read("[Content_Types].xml").decode()
    if "sharedStrings" not in types:
        types = types.replace("</Types>", f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>')
    assert package in types
    return change_parts(
        make_book(),
        {
            "[Content_Types].xml": types,
            "xl/sharedStrings.xml": f"{head}<sst {MAIN}>{strings}</sst>",
            SHEET: f"<worksheet {MAIN}><sheetData>{rows}</sheetData></worksheet>",
        },
    )


def draw_slide(inside: str, head: str = "") -> bytes:
    names = (
        'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    )
    tree = f"<p:cSld><p:spTree><p:nvGrpSpPr/><p:grpSpPr/>{inside}</p:spTree></p:cSld>"
    return change_parts(make_show(), {SLIDE: f"{head}<p:sld {names}>{tree}</p:sld>"})


NAMED = '<p:cNvPr id="9" name="x"/>'
GROUP = f"<p:grpSp><p:nvGrpSpPr>{NAMED}<p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>"
SHAPE = f"<p:sp><p:nvSpPr>{NAMED}<p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/>{{}}</p:txBody></p:sp>"


def draw_stream(raw: bytes, times: int) -> bytes:
    """A PDF whose page is drawn by these bytes, so many times."""
    squeeze = zlib.compressobj(9)
    stream = b"".join(squeeze.compress(raw) for _ in range(times)) + squeeze.flush()
    head = b"<< /Length %d /Filter /FlateDecode >>\nstream\n" % len(stream)
    return draw_pdf("x").replace(b"<< /Length 1 >>\nstream\nx", head + stream)


def draw_forms(levels: int) -> bytes:
    """Forms that each draw the next one ten times."""
    last = 5 + levels
    form = (
        b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Length %d /Resources << /XObject << /X%d %d 0 R >>"
        b" /Font << /F1 3 0 R >> >> >>\nstream\n%s\nendstream"
    )
    bodies = {
        number: b"/X%d Do " % (number + 1) * 10 if number < last else RAIN.encode() for number in range(6, last + 1)
    }
    forms = [form % (len(body), number + 1, min(number + 1, last), body) for number, body in bodies.items()]
    page = draw_pdf("/X6 Do", more=forms)
    return page.replace(b"/Font << /F1 3 0 R >> >> >>\nendobj", b"/XObject << /X6 6 0 R >> >> >>\nendobj", 1)


def nest_pages(levels: int) -> bytes:
    """A tree of pages in which each node lists the next one three times, and the last one the root."""
    nodes = [
        b"<< /Type /Pages /Count 999999 /Kids [%s] >>" % (b"%d 0 R " % (n + 1 if n < 5 + levels else 2) * 3)
        for n in range(6, 6 + levels)
    ]
    return draw_pdf(RAIN, more=nodes).replace(b"/Kids [4 0 R] /Count 1", b"/Kids [4 0 R 6 0 R] /Count 999999")


BOMBS: dict[str, Callable[[], bytes]] = {
    "rows-far-apart.xlsx": lambda: fill_sheet("".join(put_row(n, "A") for n in range(1, 10**6, 900))),
    "row-at-the-end.xlsx": lambda: fill_sheet(put_row(1048576, "XFD")),
    "row-far-outside.xlsx": lambda: fill_sheet(put_row(999999999999, "A")),
    "wide-rows.xlsx": lambda: fill_sheet("".join(put_row(n, "XFD") for n in range(1, 100_000))),
    "column-far-outside.xlsx": lambda: fill_sheet(put_row(1, "ZZZZZZZZ")),
    "many-cells.xlsx": lambda: fill_sheet(f"<row>{'<c><v>1</v></c>' * 3_000_000}</row>"),
    "empty-rows.xlsx": lambda: fill_sheet("<row/>" * 9_000_000),
    "dimension.xlsx": lambda: fill_sheet(f"<row>{cell('A1')}</row>", '<dimension ref="A1:XFD1048576"/>'),
    "shared-strings.xlsx": lambda: share_strings("<si><t>rain</t></si>" * 4_000_000),
    "big-string.xlsx": lambda: share_strings(f"<si><t>{'a' * 50_000_000}</t></si>"),
    "big-part.xlsx": lambda: change_parts(make_book(), {SHEET: b" " * (101 * 2**20)}),
    "laughs.xlsx": lambda: change_parts(make_book(), {SHEET: f"{LAUGHS}<worksheet {MAIN}>&l9;</worksheet>"}),
    "laughing-strings.xlsx": lambda: share_strings("<si><t>&l9;</t></si>", LAUGHS),
    "nested.xlsx": lambda: change_parts(make_book(), {SHEET: "<a>" * 1_000_000}),
    "styles.xlsx": lambda: change_parts(
        make_book(), {"xl/styles.xml": f"<styleSheet {MAIN}><fonts>{'<font/>' * 2_000_000}</fonts></styleSheet>"}
    ),
    "huge-number.xlsx": lambda: fill_sheet(f"<row>{cell('A1', '9' * 1_000_000)}</row>"),
    "many-shapes.pptx": lambda: draw_slide(SHAPE.format("<a:p><a:r><a:t>rain</a:t></a:r></a:p>") * 100_000),
    "many-paragraphs.pptx": lambda: draw_slide(SHAPE.format("<a:p><a:r><a:t>rain</a:t></a:r></a:p>" * 400_000)),
    "long-text.pptx": lambda: draw_slide(SHAPE.format(f"<a:p><a:r><a:t>{'rain ' * 9_000_000}</a:t></a:r></a:p>")),
    "nested-groups.pptx": lambda: draw_slide(GROUP * 200 + "</p:grpSp>" * 200),
    "deep-groups.pptx": lambda: draw_slide("<p:grpSp>" * 500_000),
    "laughs.pptx": lambda: draw_slide(SHAPE.format("<a:p><a:r><a:t>&l9;</a:t></a:r></a:p>"), LAUGHS),
    "big-part.pptx": lambda: change_parts(make_show(), {SLIDE: b" " * (101 * 2**20)}),
    "big-picture.pptx": lambda: change_parts(
        make_show(),
        {
            "ppt/media/image1.png": bytes(300 * 2**20),
            "ppt/slides/_rels/slide1.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
            'relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
            'relationships/slideLayout" Target="../slideLayouts/slideLayout2.xml"/><Relationship Id="rId2" '
            'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/image" '
            'Target="../media/image1.png"/></Relationships>',
        },
    ),
    "pages-in-circles.pdf": lambda: nest_pages(20),
    "forms-in-forms.pdf": lambda: draw_forms(9),
    "form-in-itself.pdf": lambda: draw_forms(1).replace(b"BT /F1 12", b"/X7 Do /X6 Do BT /F1 12"),
    "huge-page.pdf": lambda: draw_pdf(RAIN).replace(b"[0 0 612 792]", b"[-1e9 -1e9 1e9 1e9]"),
    "many-words.pdf": lambda: draw_stream(b"BT /F1 12 Tf 72 720 Td (Rain.) Tj ET\n", 300_000),
    "one-word.pdf": lambda: draw_stream(b"BT /F1 12 Tf 72 720 Td (" + b"r" * 4_000_000 + b") Tj ET", 1),
    "many-lines.pdf": lambda: draw_stream(b"0 0 m 9 9 l S\n", 2_000_000),
    "deep-array.pdf": lambda: draw_pdf(RAIN, more=[b"[" * 1_000_000]),
    "deep-catalog.pdf": lambda: draw_pdf(RAIN, catalog=b"/Names " + b"<< /Kids [" * 200_000),
    "many-pages.pdf": lambda: draw_pdf(*["" for _ in range(8_000)]),
    "squeezed-five-times.pdf": lambda: squeeze_often(5),
    "number.pdf": lambda: draw_pdf(RAIN).replace(b"/Count 1", b"/Count " + b"9" * 100_000),
    "headings.pdf": lambda: draw_headings(10_000),
    "one-line.mbox": lambda: b"From a\nSubject: rain\n\n" + b"x" * 150_000_000,
    "many-parts.eml": lambda: b"Subject: a\nContent-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nrain\n" * 300_000,
    "long-header.eml": lambda: b"Subject: rain\nTo: " + b"<a@b.example>, " * 100_000 + b"\n\nrain\n",
    "many-headers.eml": lambda: b"Subject: rain\n" + b"To: a@b.example\n" * 500_000 + b"\nrain\n",
    "long-speaker.vtt": lambda: b"WEBVTT\n\n" + b"00:01.000 --> 00:02.000\n<v %s>rain\n\n" % (b"a" * 900) * 9_000,
    "wide.csv": lambda: b",".join(b"name%d" % n for n in range(20_000)) + b"\n" + b"1," * 20_000 * 9,
    "long-name.csv": lambda: b"n" * 500_000 + b",b\n" + b"1,2\n" * 9_000,
}  # fmt: skip


def squeeze_often(times: int) -> bytes:
    """A PDF whose page is 400 MB of blanks, squeezed again and again."""
    squeeze = zlib.compressobj(9)
    stream = b"".join(squeeze.compress(b" " * 2**20) for _ in range(400)) + squeeze.flush()
    for _ in range(times - 1):
        stream = zlib.compress(stream, 9)
    head = b"<< /Length %d /Filter [%s] >>\nstream\n" % (len(stream), b"/FlateDecode " * times)
    return draw_pdf("x").replace(b"<< /Length 1 >>\nstream\nx", head + stream)


def draw_headings(count: int) -> bytes:
    """An outline with so many long headings."""
    items = [
        b"<< /Title (%s) /Parent 6 0 R /Next %d 0 R /Dest [4 0 R /Fit] >>" % (b"rain" * 100, 8 + number)
        for number in range(count)
    ]
    return draw_pdf(RAIN, catalog=b"/Outlines 6 0 R", more=[b"<< /Type /Outlines /First 7 0 R >>", *items])


@pytest.fixture(scope="module")
def process():
    with ReaderProcess(BOUNDS) as process:
        yield process


def read_or_refuse(reader: SourceReader, path: Path) -> tuple[tuple[Document, ...], str]:
    """The documents, or the reason why there are none."""
    try:
        return tuple(reader.read(path).documents), ""
    except ReadingError as error:
        return (), str(error)


class Peak:
    """The most kilobytes that the reader process had in this context; Linux says it, elsewhere it stays 0.

    The count of the system for ended children is of no use: a child begins with what its parent had.
    """

    def __init__(self, process: ReaderProcess) -> None:
        self.kilobytes = 0
        self._process = process
        self._ended = Event()
        self._thread = Thread(target=self._watch)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.01):
            if worker := self._process._worker:
                with suppress(OSError):  # it has just ended
                    status = Path("/proc", str(worker._process.pid), "status").read_bytes()
                    found = re.search(rb"VmHWM:\s+(\d+) kB", status)  # of a process that ends: nothing
                    self.kilobytes = max(self.kilobytes, int(found[1]) if found else 0)


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_read_or_refused_within_the_bounds(name: str, process: ReaderProcess, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(BOMBS[name]())
    (tmp_path / "next.html").write_text("<p>Rain")
    reader = SourceReader(process)
    started = time.monotonic()
    with Peak(process) as peak:
        documents, reason = read_or_refuse(reader, path)
    assert bool(documents) != bool(reason)
    assert path.name in (reason or path.name)
    assert sum(len(document.text) for document in documents) <= BOUNDS.characters
    assert all(len(document.title) <= 200 for document in documents)
    assert time.monotonic() - started < BOUNDS.seconds + 120  # with the start of a process on a busy machine
    assert [document.text for document in reader.read(tmp_path / "next.html").documents] == ["Rain"]
    assert peak.kilobytes <= 600_000  # with the libraries


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it")
def test_the_memory_of_bombs_is_measured(process: ReaderProcess, tmp_path: Path) -> None:
    path = tmp_path / "next.csv"
    path.write_text("name,number\n" + "rain,1\n" * 10_000)
    with Peak(process) as peak:
        SourceReader(process).read(path)
    assert peak.kilobytes > 20_000
