"""Bombs in the formats that `test_office_bombs` leaves out: each ends within the bounds, with one line."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from tests.hostile.test_office_bombs import BOUNDS, LAUGHS, Peak, read_or_refuse
from tests.reading.documents import EPUB, docx, draw_pdf, write_zip

from tomewise.reading.bounds import Bounds
from tomewise.reading.process import ReaderProcess
from tomewise.reading.read import SourceReader

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


def replace_part(raw: bytes, name: str, content: str) -> bytes:
    """The archive with another part of this name."""
    new = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as changed:
        for part in old.namelist():
            changed.writestr(part, content if part == name else old.read(part))
    return new.getvalue()


def write_word(tmp: Path, body: str, head: str = "") -> bytes:
    """A DOCX with this body."""
    raw = docx(tmp / "a.docx").read_bytes()
    return replace_part(raw, "word/document.xml", f"{head}<w:document {WORD}><w:body>{body}</w:body></w:document>")


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


def overlap(tmp: Path, entries: int) -> bytes:
    """A DOCX whose directory names one part so many times, with other names."""
    raw = write_word(tmp, PARAGRAPH * 500)
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        start, part = archive.start_dir, archive.getinfo("word/document.xml")
    directory, end = raw[start : raw.rindex(b"PK\5\6")], raw[raw.rindex(b"PK\5\6") :]
    name = part.filename.encode()
    entry = directory[directory.index(name) - 46 : directory.index(name) + len(name)]
    more = b"".join(entry.replace(name, b"word/%012d" % number) for number in range(entries))
    count = (len(archive.namelist()) + entries).to_bytes(2, "little")
    size = (len(directory) + len(more)).to_bytes(4, "little")
    return raw[:start] + directory + more + end[:8] + count + count + size + end[16:]


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
    "laughs.docx": lambda tmp: write_word(tmp, "<w:p><w:r><w:t>&l9;</w:t></w:r></w:p>", LAUGHS),
    "outside.docx": lambda tmp: write_word(
        tmp, "<w:p><w:r><w:t>&x;</w:t></w:r></w:p>", '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    ),
    "attributes.docx": lambda tmp: write_word(tmp, "<w:p " + " ".join(f'a{n}="x"' for n in range(100_000)) + "/>"),
    "wide-cell.docx": lambda tmp: write_word(
        tmp, f'<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2000000000"/></w:tcPr>{PARAGRAPH}</w:tc></w:tr></w:tbl>'
    ),
    "overlapping-parts.docx": lambda tmp: overlap(tmp, 5_000),
    "false-size.docx": lie_about_size,
    "archive-in-archive.docx": lambda tmp: write_zip(tmp / "a.zip", {"a.zip": "PK\3\4" * 10_000_000}).read_bytes(),
    "spaces.odt": lambda tmp: write_open(tmp, "text", "<text:p>a" + SPACES * 50_000 + "b</text:p>"),
    "nested.odt": lambda tmp: write_open(
        tmp, "text", "<text:section>" * 50_000 + "<text:p>rain</text:p>" + "</text:section>" * 50_000
    ),
    "laughs.odt": lambda tmp: write_open(tmp, "text", "<text:p>&l9;</text:p>", LAUGHS),
    "rows.ods": lambda tmp: write_open(tmp, "spreadsheet", TABLE.format(ROW.format(10**9, 16_384) + ROW_END)),
    "columns.ods": lambda tmp: write_open(
        tmp, "spreadsheet", TABLE.format((ROW.format(1, 10**9) + ROW_END) * 2_000)
    ),
    "slides.odp": lambda tmp: write_open(tmp, "presentation", "<text:p>rain</text:p>" * 100_000),
    "one-page.epub": lambda tmp: write_book(tmp, "<p>The rain fell.</p>" * 20_000, times=5_000),
    "many-pages.epub": lambda tmp: write_book(tmp, "<p>rain</p>", names=2_000),
    "big-pages.epub": lambda tmp: write_book(tmp, "<p>The rain fell.</p>" * 10_000, names=50),
    "laughs.epub": lambda tmp: replace_part(
        write_book(tmp, "rain"), "META-INF/container.xml", f"{LAUGHS}<container>&l9;</container>"
    ),
    "outside.epub": lambda tmp: replace_part(
        write_book(tmp, "rain"), "META-INF/container.xml", OUTSIDE
    ),
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
    "cues.srt": lambda _: write_cues(50_000),
    "columns.csv": lambda _: b"a" + b"," * 1_000_000 + b"\n" + b'"' * 500_001,
    "rows.csv": lambda _: b"name\n" + b"\n" * 2_000_000 + b"rain\n",
    "nested.ipynb": lambda _: b'{"cells":' + b'[{"source":' * 5_000 + b'"x"' + b"}]" * 5_000 + b"}",
    "cells.ipynb": lambda _: json.dumps({"cells": [CELL] * 200_000}).encode(),
    "ticks.ipynb": lambda _: json.dumps({"cells": [{"cell_type": "code", "source": "`" * 500_000}]}).encode(),
    "rows.jsonl": lambda _: list_rows(100_000),
    "one-row.jsonl": lambda _: b'{"text": "' + b"rain " * 4_000_000 + b'"}\n',
    "nested.jsonl": lambda _: b'{"text": "rain", "a": ' + b"[" * 4_000_000 + b"}\n",
    "number.jsonl": lambda _: b'{"text": "rain", "id": ' + b"1" * 4_000_000 + b"}\n",
    "fields.jsonl": lambda _: json.dumps({"text": "rain", **{f"a{n}": n for n in range(200_000)}}).encode(),
    "nested.json": lambda _: b"[" * 200_000 + b"]" * 200_000,
    "aliases.md": lambda _: b"---\na: &a [x]\n" + b"b: *a\n" * 5_000 + b"---\nrain\n",
    "brackets.md": lambda _: b"---\na: " + b"[" * 60_000 + b"\n---\nrain\n",
    "headings.md": lambda _: b"# rain\n" * 100_000,
    "fences.md": lambda _: b"`" * 300_000 + b"\n" + b"#" * 300_000 + b"\n" + b"# " * 200_000,
    "quotes.md": lambda _: b">" * 200_000 + b" q\n" + b"- " * 100_000 + b"\n" + b"|" * 200_000,
    "line.txt": lambda _: b"a" * 900_000,
    "turns.txt": lambda _: b"A a " * 200_000 + b": rain\n" + b"Ann: rain\n" * 10_000,
    "zeros.txt": lambda _: bytes(900_000),
    "halves.txt": lambda _: b"\xff\xfe" + b"\x00\xd8" * 400_000,
    "accents.txt": lambda _: b"e" + b"\xcc\x81" * 400_000,
    "directions.txt": lambda _: "\u202e\u2066".encode() * 200_000 + b"rain",
    "unknown-encoding.txt": lambda _: bytes(range(128, 256)) * 4_000 + b"rain\n",
    "laughs.xml": lambda _: f"{LAUGHS}<a>&l9;</a>".encode(),
    "attribute.svg": lambda _: b"<svg a='" + b"x" * 900_000 + b"'/>",
    "archive.gz": lambda _: b"\x1f\x8b\x08" + bytes(1_000_000),
}  # fmt: skip


@pytest.fixture(scope="module")
def process() -> Iterator[ReaderProcess]:
    bounds = {field.name: getattr(BOUNDS, field.name) for field in fields(Bounds)}
    with ReaderProcess(Bounds(**{**bounds, "documents": 5_000})) as process:
        yield process


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_read_or_refused_within_the_bounds(name: str, process: ReaderProcess, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(BOMBS[name](tmp_path))
    begun = time.process_time()
    with Peak(process) as peak:
        documents, reason = read_or_refuse(SourceReader(process), path)
    assert time.process_time() - begun < 20  # of this process: the other is ended after `seconds`
    assert bool(documents) != bool(reason)
    assert len(reason.splitlines()) <= 1
    assert path.name in (reason or path.name)
    assert sum(len(document.text) for document in documents) <= BOUNDS.characters
    assert len(documents) <= process.bounds.documents
    assert peak.kilobytes <= 600_000  # with the libraries


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
