"""Bombs in all formats: each is read or refused within the bounds, with one line, and then the next file is read."""

from __future__ import annotations

import io
import json
import re
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import openpyxl
import pptx
import pytest
from tests.reading.documents import (
    EPUB,
    LAUGHS,
    change_parts,
    docx,
    draw_pdf,
    draw_stream,
    repeat_part,
    write_zip,
)
from tests.reading.processes import list_readers

from tomewise.errors import ReadingError
from tomewise.reading.process import Bounds, ReaderProcess
from tomewise.reading.read import SourceReader
from tomewise.types import Document

BOUNDS = Bounds(seconds=2, memory=200, characters=1_000_000, documents=5_000)
LAUGHING = f"<!DOCTYPE a [{LAUGHS}]>"
RAIN = "BT /F1 12 Tf 72 720 Td (Rain.) Tj ET"

SHEET = "xl/worksheets/sheet1.xml"
SLIDE = "ppt/slides/slide1.xml"
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


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


def draw_headings(count: int) -> bytes:
    """An outline with so many long headings."""
    items = [
        b"<< /Title (%s) /Parent 6 0 R /Next %d 0 R /Dest [4 0 R /Fit] >>" % (b"rain" * 100, 8 + number)
        for number in range(count)
    ]
    return draw_pdf(RAIN, catalog=b"/Outlines 6 0 R", more=[b"<< /Type /Outlines /First 7 0 R >>", *items])


WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
OPEN = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table", "meta")
)
TABLE = '<table:table table:name="S">{}</table:table>'
ROW = (
    '<table:table-row table:number-rows-repeated="{}"><table:table-cell table:number-columns-repeated="{}"><text:p>rain'
)
ROW_END = "</text:p></table:table-cell></table:table-row>"
SPACES = '<text:s text:c="2000000000"/>'
OUTSIDE = '<a><rootfile full-path="../../../../etc/passwd"/></a>'
PARAGRAPH = "<w:p><w:r><w:t>The rain fell.</w:t></w:r></w:p>"
CELL = {"cell_type": "markdown", "source": "rain"}


def write_word(tmp: Path, body: str, head: str = "") -> bytes:
    """A DOCX with this body."""
    content = f"{head}<w:document {WORD}><w:body>{body}</w:body></w:document>"
    return change_parts(docx(tmp / "a.docx").read_bytes(), {"word/document.xml": content})


def write_open(tmp: Path, kind: str, body: str, head: str = "") -> bytes:
    """An ODT or ODS with this body."""
    mime = f"application/vnd.oasis.opendocument.{kind}"
    content = f"<office:body><office:{kind}>{body}</office:{kind}></office:body>"
    manifest = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
    parts = {
        "mimetype": mime,
        "content.xml": f"{head}<office:document-content {OPEN}>{content}</office:document-content>",
        "meta.xml": f"<office:document-meta {OPEN}><office:meta/></office:document-meta>",
        "styles.xml": f"<office:document-styles {OPEN}/>",
        "META-INF/manifest.xml": f'<manifest:manifest xmlns:manifest="{manifest}"><manifest:file-entry '
        f'manifest:full-path="/" manifest:media-type="{mime}"/></manifest:manifest>',
    }
    return write_zip(tmp / "a.zip", parts).read_bytes()


def write_book(tmp: Path, page: str, times: int = 1, names: int = 1) -> bytes:
    """An EPUB that lists so many pages, each so many times."""
    items = "".join(f'<item id="c{number}" href="c{number}.xhtml"/>' for number in range(names))
    spine = "".join(f'<itemref idref="c{number % names}"/>' for number in range(names * times))
    package = f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>"
    pages = {f"c{number}.xhtml": page for number in range(names)}
    return write_zip(tmp / "a.epub", {**EPUB, "o.opf": package, **pages}).read_bytes()


def write_container(tmp: Path, content: str) -> bytes:
    """An EPUB with this file that names its package."""
    return change_parts(write_book(tmp, "rain"), {"META-INF/container.xml": content})


def overlap_parts(tmp: Path, entries: int) -> bytes:
    """A DOCX whose directory names one part so many times, with other names."""
    path = tmp / "a.docx"
    path.write_bytes(write_word(tmp, PARAGRAPH * 500))
    return repeat_part(path, "word/document.xml", [f"word/{number:012}" for number in range(entries)]).read_bytes()


def lie_about_size(tmp: Path) -> bytes:
    """A DOCX whose archive says that its text is short."""
    raw = write_word(tmp, " " * 50_000_000)
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        size = archive.getinfo("word/document.xml").file_size
    return raw.replace(size.to_bytes(4, "little"), (1_000).to_bytes(4, "little"))


def nest_messages(levels: int) -> bytes:
    return b"Subject: rain\nContent-Type: message/rfc822\n\n" * levels + b"Subject: last\n\nrain\n"


def list_rows(count: int) -> bytes:
    return b"".join(b'{"text": "rain %d"}\n' % number for number in range(count))


def write_cues(count: int) -> bytes:
    return b"".join(b"%d\n00:00:01,000 --> 00:00:02,000\nrain\n\n" % number for number in range(count))


BOMBS: dict[str, Callable[[Path], bytes]] = {
    "spaces.docx": lambda tmp: write_word(tmp, f"<w:p><w:r><w:t>{' ' * 20_000_000}</w:t></w:r></w:p>"),
    "many-paragraphs.docx": lambda tmp: write_word(tmp, "<w:p/>" * 300_000),
    "nested-tables.docx": lambda tmp: write_word(
        tmp, "<w:tbl><w:tr><w:tc>" * 20_000 + PARAGRAPH + "</w:tc></w:tr></w:tbl>" * 20_000
    ),
    "laughs.docx": lambda tmp: write_word(tmp, "<w:p><w:r><w:t>&l9;</w:t></w:r></w:p>", LAUGHING),
    "outside.docx": lambda tmp: write_word(
        tmp, "<w:p><w:r><w:t>&x;</w:t></w:r></w:p>", '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    ),
    "attributes.docx": lambda tmp: write_word(tmp, "<w:p " + " ".join(f'a{n}="x"' for n in range(100_000)) + "/>"),
    "wide-cell.docx": lambda tmp: write_word(
        tmp, f'<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2000000000"/></w:tcPr>{PARAGRAPH}</w:tc></w:tr></w:tbl>'
    ),
    "wide-gap.docx": lambda tmp: write_word(
        tmp, f'<w:tbl><w:tr><w:trPr><w:gridBefore w:val="2000000000"/></w:trPr><w:tc>{PARAGRAPH}</w:tc></w:tr></w:tbl>'
    ),
    "self-noted.docx": lambda tmp: write_word(
        tmp, f'{PARAGRAPH}<w:p><w:r><w:footnoteReference w:id="0"/></w:r></w:p>' + "<m:f>" * 20_000 + "</m:f>" * 20_000
    ),
    "based-on-itself.docx": lambda tmp: change_parts(
        write_word(tmp, f'<w:p><w:pPr><w:pStyle w:val="a"/></w:pPr></w:p>{PARAGRAPH}'),
        {
            "word/_rels/document.xml.rels": '<a><b Type="x/styles" Target="styles.xml"/></a>',
            "word/styles.xml": f'<w:styles {WORD}><w:style w:styleId="a"><w:basedOn w:val="a"/></w:style></w:styles>',
        },
    ),
    "overlapping-parts.docx": lambda tmp: overlap_parts(tmp, 5_000),
    "false-size.docx": lie_about_size,
    "archive-in-archive.docx": lambda tmp: write_zip(tmp / "a.zip", {"a.zip": "PK\3\4" * 10_000_000}).read_bytes(),
    "spaces.odt": lambda tmp: write_open(tmp, "text", "<text:p>a" + SPACES * 50_000 + "b</text:p>"),
    "nested.odt": lambda tmp: write_open(
        tmp, "text", "<text:section>" * 50_000 + "<text:p>rain</text:p>" + "</text:section>" * 50_000
    ),
    "laughs.odt": lambda tmp: write_open(tmp, "text", "<text:p>&l9;</text:p>", LAUGHING),
    "rows.ods": lambda tmp: write_open(tmp, "spreadsheet", TABLE.format(ROW.format(10**9, 16_384) + ROW_END)),
    "columns.ods": lambda tmp: write_open(
        tmp, "spreadsheet", TABLE.format((ROW.format(1, 10**9) + ROW_END) * 2_000)
    ),
    "slides.odp": lambda tmp: write_open(tmp, "presentation", "<text:p>rain</text:p>" * 100_000),
    "one-page.epub": lambda tmp: write_book(tmp, "<p>The rain fell.</p>" * 20_000, times=5_000),
    "many-pages.epub": lambda tmp: write_book(tmp, "<p>rain</p>", names=2_000),
    "big-pages.epub": lambda tmp: write_book(tmp, "<p>The rain fell.</p>" * 10_000, names=50),
    "laughs.epub": lambda tmp: write_container(tmp, f"{LAUGHING}<container>&l9;</container>"),
    "outside.epub": lambda tmp: write_container(tmp, OUTSIDE),
    "loop.pdf": lambda _: draw_pdf("").replace(b"/Kids [4 0 R] /Count 1", b"/Kids [2 0 R] /Count 1000000000"),
    "groups.rtf": lambda _: rb"{\rtf1 " + rb"{\b " * 200_000 + b"rain" + b"}" * 200_001,
    "binary.rtf": lambda _: rb"{\rtf1 \bin2000000000 rain}",
    "words.rtf": lambda _: rb"{\rtf1 " + rb"\u8232?\'ff" * 100_000 + b"}",
    "nested.html": lambda _: b"<div>" * 50_000 + b"rain",
    "wide-cells.html": lambda _: b"<table>" + b"<tr>" * 1_000 + b"<td colspan=1000000000 rowspan=1000000000>x",
    "attributes.html": lambda _: b"<p " + b" ".join(b"a%d=x" % number for number in range(400_000)) + b">rain",
    "comments.html": lambda _: b"<p>rain" + b"<!--" * 100_000,
    "declarations.html": lambda _: b"<p>rain" + b"<![" * 50_000 + b"<?" * 50_000,
    "entities.html": lambda _: b"<p>" + b"&amp" * 100_000 + b"&" * 100_000,
    "lists.html": lambda _: b"<ul><li>" * 250 + b"<p>rain</p>" * 300,
    "parts.eml": lambda _: b"Subject: rain\nContent-Type: multipart/mixed; boundary=x\n\n"
    + b"--x\nContent-Type: multipart/mixed; boundary=x\n\n" * 1_500,
    "messages-in-messages.eml": lambda _: nest_messages(2_000),
    "encoded-subject.eml": lambda _: b"From: a\nSubject: " + b"=?utf-8?q?a?= " * 50_000 + b"\n\nrain\n",
    "base64.eml": lambda _: b"Subject: rain\nContent-Transfer-Encoding: base64\n\n" + b"QUFB" * 3_000_000,
    "empty-messages.mbox": lambda _: b"From a\nSubject: x\n\nbody\n\n" * 60_000,
    "voice.vtt": lambda _: b"WEBVTT\n\n00:00.000 --> 00:01.000\n" + b"<v a" * 200_000,
    "cues.srt": lambda _: write_cues(20_000),
    "columns.csv": lambda _: b"a" + b"," * 1_000_000 + b"\n" + b'"' * 500_001,
    "rows.csv": lambda _: b"name\n" + b"\n" * 2_000_000 + b"rain\n",
    "nested.ipynb": lambda _: b'{"cells":' + b'[{"source":' * 5_000 + b'"x"' + b"}]" * 5_000 + b"}",
    "cells.ipynb": lambda _: json.dumps({"cells": [CELL] * 200_000}).encode(),
    "ticks.ipynb": lambda _: json.dumps({"cells": [{"cell_type": "code", "source": "`" * 500_000}]}).encode(),
    "rows.jsonl": lambda _: list_rows(100_000),
    "one-row.jsonl": lambda _: b'{"text": "' + b"rain " * 4_000_000 + b'"}\n',
    "nested.jsonl": lambda _: b'{"text": "rain", "a": ' + b"[" * 4_000_000 + b"}\n",
    "number.jsonl": lambda _: b'{"text": "rain", "id": ' + b"1" * 4_000_000 + b"}\n",
    "fields.jsonl": lambda _: json.dumps({"text": "rain", **{f"a{n}": n for n in range(60_000)}}).encode(),
    "nested.json": lambda _: b"[" * 200_000 + b"]" * 200_000,
    "aliases.md": lambda _: b"---\na: &a [x]\n" + b"b: *a\n" * 5_000 + b"---\nrain\n",
    "brackets.md": lambda _: b"---\na: " + b"[" * 60_000 + b"\n---\nrain\n",
    "headings.md": lambda _: b"# rain\n" * 40_000,
    "fences.md": lambda _: b"`" * 300_000 + b"\n" + b"#" * 300_000 + b"\n" + b"# " * 200_000,
    "quotes.md": lambda _: b">" * 200_000 + b" q\n" + b"- " * 100_000 + b"\n" + b"|" * 200_000,
    "line.txt": lambda _: b"a" * 900_000,
    "turns.txt": lambda _: b"A a " * 200_000 + b": rain\n" + b"Ann: rain\n" * 10_000,
    "zeros.txt": lambda _: bytes(900_000),
    "halves.txt": lambda _: b"\xff\xfe" + b"\x00\xd8" * 400_000,
    "accents.txt": lambda _: b"e" + b"\xcc\x81" * 400_000,
    "directions.txt": lambda _: "\u202e\u2066".encode() * 200_000 + b"rain",
    "unknown-encoding.txt": lambda _: bytes(range(128, 256)) * 4_000 + b"rain\n",
    "laughs.xml": lambda _: f"{LAUGHING}<a>&l9;</a>".encode(),
    "attribute.svg": lambda _: b"<svg a='" + b"x" * 900_000 + b"'/>",
    "archive.gz": lambda _: b"\x1f\x8b\x08" + bytes(1_000_000),
    "rows-far-apart.xlsx": lambda _: fill_sheet("".join(put_row(n, "A") for n in range(1, 10**6, 900))),
    "row-at-the-end.xlsx": lambda _: fill_sheet(put_row(1048576, "XFD")),
    "row-far-outside.xlsx": lambda _: fill_sheet(put_row(999999999999, "A")),
    "wide-rows.xlsx": lambda _: fill_sheet("".join(put_row(n, "XFD") for n in range(1, 100_000))),
    "column-far-outside.xlsx": lambda _: fill_sheet(put_row(1, "ZZZZZZZZ")),
    "many-cells.xlsx": lambda _: fill_sheet(f"<row>{'<c><v>1</v></c>' * 3_000_000}</row>"),
    "empty-rows.xlsx": lambda _: fill_sheet("<row/>" * 9_000_000),
    "dimension.xlsx": lambda _: fill_sheet(f"<row>{cell('A1')}</row>", '<dimension ref="A1:XFD1048576"/>'),
    "shared-strings.xlsx": lambda _: share_strings("<si><t>rain</t></si>" * 4_000_000),
    "big-string.xlsx": lambda _: share_strings(f"<si><t>{'a' * 50_000_000}</t></si>"),
    "big-part.xlsx": lambda _: change_parts(make_book(), {SHEET: b" " * (101 * 2**20)}),
    "laughs.xlsx": lambda _: change_parts(make_book(), {SHEET: f"{LAUGHING}<worksheet {MAIN}>&l9;</worksheet>"}),
    "laughing-strings.xlsx": lambda _: share_strings("<si><t>&l9;</t></si>", LAUGHING),
    "nested.xlsx": lambda _: change_parts(make_book(), {SHEET: "<a>" * 1_000_000}),
    "styles.xlsx": lambda _: change_parts(
        make_book(), {"xl/styles.xml": f"<styleSheet {MAIN}><fonts>{'<font/>' * 2_000_000}</fonts></styleSheet>"}
    ),
    "huge-number.xlsx": lambda _: fill_sheet(f"<row>{cell('A1', '9' * 1_000_000)}</row>"),
    "many-shapes.pptx": lambda _: draw_slide(SHAPE.format("<a:p><a:r><a:t>rain</a:t></a:r></a:p>") * 100_000),
    "many-paragraphs.pptx": lambda _: draw_slide(SHAPE.format("<a:p><a:r><a:t>rain</a:t></a:r></a:p>" * 400_000)),
    "long-text.pptx": lambda _: draw_slide(SHAPE.format(f"<a:p><a:r><a:t>{'rain ' * 9_000_000}</a:t></a:r></a:p>")),
    "nested-groups.pptx": lambda _: draw_slide(GROUP * 200 + "</p:grpSp>" * 200),
    "deep-groups.pptx": lambda _: draw_slide("<p:grpSp>" * 500_000),
    "laughs.pptx": lambda _: draw_slide(SHAPE.format("<a:p><a:r><a:t>&l9;</a:t></a:r></a:p>"), LAUGHING),
    "big-part.pptx": lambda _: change_parts(make_show(), {SLIDE: b" " * (101 * 2**20)}),
    "big-picture.pptx": lambda _: change_parts(
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
    "pages-in-circles.pdf": lambda _: nest_pages(20),
    "forms-in-forms.pdf": lambda _: draw_forms(9),
    "form-in-itself.pdf": lambda _: draw_forms(1).replace(b"BT /F1 12", b"/X7 Do /X6 Do BT /F1 12"),
    "huge-page.pdf": lambda _: draw_pdf(RAIN).replace(b"[0 0 612 792]", b"[-1e9 -1e9 1e9 1e9]"),
    "many-words.pdf": lambda _: draw_stream(b"BT /F1 12 Tf 72 720 Td (Rain.) Tj ET\n", 300_000),
    "one-word.pdf": lambda _: draw_stream(b"BT /F1 12 Tf 72 720 Td (" + b"r" * 4_000_000 + b") Tj ET", 1),
    "many-lines.pdf": lambda _: draw_stream(b"0 0 m 9 9 l S\n", 2_000_000),
    "deep-array.pdf": lambda _: draw_pdf(RAIN, more=[b"[" * 1_000_000]),
    "deep-catalog.pdf": lambda _: draw_pdf(RAIN, catalog=b"/Names " + b"<< /Kids [" * 200_000),
    "many-pages.pdf": lambda _: draw_pdf(*["" for _ in range(8_000)]),
    "squeezed-five-times.pdf": lambda _: draw_stream(b" " * 2**20, 400, squeezed=5),
    "number.pdf": lambda _: draw_pdf(RAIN).replace(b"/Count 1", b"/Count " + b"9" * 100_000),
    "headings.pdf": lambda _: draw_headings(10_000),
    "one-line.mbox": lambda _: b"From a\nSubject: rain\n\n" + b"x" * 150_000_000,
    "many-parts.eml": lambda _: b"Subject: a\nContent-Type: multipart/mixed; boundary=b\n\n"
    + b"--b\n\nrain\n" * 300_000,
    "long-header.eml": lambda _: b"Subject: rain\nTo: " + b"<a@b.example>, " * 100_000 + b"\n\nrain\n",
    "many-headers.eml": lambda _: b"Subject: rain\n" + b"To: a@b.example\n" * 500_000 + b"\nrain\n",
    "long-speaker.vtt": lambda _: b"WEBVTT\n\n" + b"00:01.000 --> 00:02.000\n<v %s>rain\n\n" % (b"a" * 900) * 9_000,
    "wide.csv": lambda _: b",".join(b"name%d" % n for n in range(20_000)) + b"\n" + b"1," * 20_000 * 9,
    "long-name.csv": lambda _: b"n" * 500_000 + b",b\n" + b"1,2\n" * 9_000,
}  # fmt: skip


@pytest.fixture(scope="module")
def reader() -> Iterator[SourceReader]:
    with ReaderProcess(BOUNDS) as process:
        yield SourceReader(process)


def read_or_refuse(reader: SourceReader, path: Path) -> tuple[tuple[Document, ...], str]:
    """The documents, or the reason why there are none."""
    try:
        return tuple(reader.read(path).documents), ""
    except ReadingError as error:
        return (), str(error)


class Peak:
    """The most kilobytes that a reader process had in this context; Linux says it, elsewhere it stays 0.

    The count of the system for ended children is of no use: a child begins with what its parent had.
    """

    def __init__(self) -> None:
        self.kilobytes = 0
        self._ended = Event()
        self._thread = Thread(target=self._watch)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.1):
            for reader in list_readers():
                with suppress(OSError):  # it has just ended
                    status = Path("/proc", str(reader), "status").read_bytes()
                    found = re.search(rb"VmHWM:\s+(\d+) kB", status)  # of a process that ends: nothing
                    self.kilobytes = max(self.kilobytes, int(found[1]) if found else 0)


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_read_or_refused_within_the_bounds(name: str, reader: SourceReader, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(BOMBS[name](tmp_path))
    (tmp_path / "next.html").write_text("<p>Rain")
    begun, started = time.process_time(), time.monotonic()
    with Peak() as peak:
        documents, reason = read_or_refuse(reader, path)
    assert time.process_time() - begun < 20  # of this process: the other is ended after `seconds`
    assert time.monotonic() - started < BOUNDS.seconds + 120  # with the start of a process on a busy machine
    assert bool(documents) != bool(reason)
    assert len(reason.splitlines()) <= 1
    assert path.name in (reason or path.name)
    assert sum(len(document.text) for document in documents) <= BOUNDS.characters
    assert all(len(document.title) <= 200 for document in documents)
    assert len(documents) <= BOUNDS.documents
    assert [document.text for document in reader.read(tmp_path / "next.html").documents] == ["Rain"]
    assert peak.kilobytes <= 600_000  # with the libraries


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it")
def test_the_memory_of_bombs_is_measured(reader: SourceReader, tmp_path: Path) -> None:
    path = tmp_path / "next.csv"
    path.write_text("name,number\n" + "rain,1\n" * 10_000)
    with Peak() as peak:
        reader.read(path)
    assert peak.kilobytes > 20_000


def test_the_command_says_one_line_of_each(here, command, monkeypatch, tmp_path) -> None:
    read = ("aliases.md", "binary.rtf", "wide-cell.docx")
    refused = ("empty-messages.mbox", "laughs.docx", "loop.pdf", "outside.epub", "rows.jsonl", "rows.ods", "zeros.txt")
    folder = here / "files"
    folder.mkdir()
    for name in (*read, *refused):
        (folder / name).write_bytes(BOMBS[name](tmp_path))
    (folder / "rain.txt").write_text("The rain fell.")
    monkeypatch.setenv("TOMEWISE_READ_DOCUMENTS", "1000")
    ran = command("add", "files")
    lines = (ran.out + ran.err).splitlines()
    assert ran.code == 0
    assert any(line.startswith("added 4 documents: ") for line in lines)
    for name in refused:
        (line,) = [line for line in lines if name in line]
        assert line.startswith(f"passed over {name}: ")
    too_many = "holds more than 1,000 documents: raise the setting `read_documents`, or leave it out"
    assert sum(line.endswith(too_many) for line in lines) == 2
    assert len(lines) == len(refused) + 3  # what was added, its passages, and what to do next
