"""A folder of over 60 hostile files: each is read or is one line with the reason, within bounds; nothing is lost."""

from __future__ import annotations

import gzip
import io
import os
import re
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.reading.documents import (
    ENCRYPTED_MAIL,
    ENCRYPTED_PDF,
    EPUB,
    LAUGHS,
    LOCKED_OFFICE,
    OLD_OFFICE,
    docx,
    draw_pdf,
    draw_stream,
    pdf,
    read_zip,
    repeat_part,
    write_zip,
)

from tomewise.tome.tome import Tome

DOCTYPE = '<!DOCTYPE a [<!ENTITY secret SYSTEM "file://{secret}">{laughs}]>'
SECRET = "the words of the secret file"
CUES = "WEBVTT\n\n" + "".join(f"00:{n // 60:02}:{n % 60:02}.000 --> 99:99:99.999\nword\n\n" for n in range(3000))

REASONS = {
    "bomb.pdf": "takes more than 200 MB of memory to read",
    "kids-loop.pdf": "",
    "encrypted.pdf": "needs a password, because it is encrypted",
    "scanned.pdf": "is scanned: its 1 pages are images without text",
    "encrypted.docx": "needs a password, because it is encrypted",
    "old.docx": "is a file of an old version of Office",
    "spaces.docx": "unpacks to 110 MB of XML",
    "archive.txt": "is binary, not text",
    "damaged.md": r"is UTF-8, but byte \d+ is not",
    "encrypted.eml": "is an encrypted message",
    "deep.html": "nested too deep",
    "pipe.txt": "is neither a file nor a folder",
    "socket.txt": "is neither a file nor a folder",
    "locked.epub": "needs a password, because it is encrypted",
    "locked.docx": "is encrypted, password required",
    "overlapping.epub": "could not be converted",
    "squeezed.log": "is binary, not text",
    "loop-a.txt": "",
    "sparse.log": "holds more than 2,000,000 characters",
    r"two\nlines.pdf": "could not be converted",
    r"bytes-\udcff\udcfe.txt": "is not UTF-8: rename the file",
}


def make_texts(folder: Path) -> dict[str, bytes]:
    """The files that are made from bytes alone. Names with `ok-` hold text that must be read."""
    page = "BT /F1 12 Tf 72 720 Td (Rain.) Tj ET"
    loop = [b"<< /Title (Loop) /Parent 6 0 R /Next 7 0 R /First 7 0 R /Dest [4 0 R /Fit] >>"]
    outlines = [b"<< /Type /Outlines /First 7 0 R /Last 7 0 R >>"]
    nested = io.BytesIO()
    with zipfile.ZipFile(nested, "w") as archive:
        archive.writestr("inner.zip", b"PK\x03\x04" * 100)
    cell = '{"cell_type": "markdown", "source": "Rain."}'
    head = b"Subject: Rain\nFrom: a@b.example\n"
    return {
        "bomb.pdf": draw_stream(b" " * 2**20, 400),
        "no-end.pdf": pdf("Rain.")[:200],
        "kids-loop.pdf": pdf("Rain.").replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]"),
        "ok-outline-loop.pdf": draw_pdf(page, catalog=b"/Outlines 6 0 R", more=outlines + loop),
        "million-pages.pdf": pdf("Rain.").replace(b"/Count 1", b"/Count 999999999"),
        "zeros.pdf": b"%PDF-1.7\n" + bytes(100_000),
        "encrypted.pdf": ENCRYPTED_PDF,
        "scanned.pdf": draw_pdf("q 9 0 0 9 72 600 cm BI /W 1 /H 1 /BPC 8 /CS /G ID x EI Q"),
        "infinite-box.pdf": pdf("Rain.").replace(b"[0 0 612 792]", b"[0 0 1e38 nan]"),
        "old.docx": OLD_OFFICE,
        **{f"encrypted.{kind}": LOCKED_OFFICE for kind in ("docx", "xlsx", "pptx")},
        "text.docx": b"The rain fell.",
        "half.xlsx": nested.getvalue()[:60],
        "other.pptx": nested.getvalue(),
        "nested.epub": nested.getvalue(),
        "nested.zip": nested.getvalue(),
        "archive.txt": nested.getvalue(),
        "squeezed.log": gzip.compress(bytes(10**7)),
        "no-mark.txt": "Regen fällt auf Öl. ".encode("utf-16-le") * 9,
        "binary.html": b"\x00\x01" * 500,
        "damaged.md": "Über Öl und Käse. ".encode() * 9 + b"\xff\xfe broken",
        "half-pair.json": b"\xff\xfe\x3d\xd8",
        "nul.csv": b"a,b\n1,\x00\n",
        "controls.log": bytes(range(1, 9)) * 200,
        "unknown.html": b'<meta charset="utf-7"><p>caf\xe9 \x81\x8d',
        "empty.srt": b"",
        "no-times.srt": b"1\n99:00 -> 12\nwords\n",
        "blank.vtt": b"WEBVTT\n\n",
        "ok-many.vtt": CUES.encode(),
        "ok-open.srt": b"1\n00:00:01,000 --> 00:00:02,000\n" + b"<" * 50_000 + b"rain",
        "ok-quotes.csv": b"name\n" + b'"' * 100_001,
        "ok-wide.csv": b"," * 100_000 + b"\nrain",
        "ok-long-cell.tsv": b"name\n" + b"r" * 300_000,
        "deep.ipynb": b"[" * 200_000,
        "no-cells.ipynb": b"{}",
        "ok-odd.ipynb": f'{{"cells": [3, null, {cell}, {{"cell_type": "code", "source": 7, "outputs": 9}}]}}'.encode(),
        "huge-number.ipynb": b'{"cells": ' + b"9" * 5000 + b"}",
        "not-mail.eml": b"The rain fell.",
        "encrypted.eml": ENCRYPTED_MAIL,
        "ok-no-end.eml": head + b'Content-Type: multipart/mixed; boundary="b"\n\n--b\n\nrain\n',
        "ok-deep.eml": (head + b"Content-Type: message/rfc822\n\n") * 60 + head + b"\nrain",
        "ok-charset.eml": head + b"Content-Type: text/plain; charset=rot13\n\nrain \xff",
        "ok-header.eml": b"Subject: =?utf-8?b?////?= " + b"(" * 5000 + b"\nFrom: <<<>>>,;:\nDate: yesterday\n\nrain",
        "no-mail.mbox": b"The rain fell.",
        "ok-bytes.mbox": b"From a\n" + head + b"\n\xff\x00rain\n",
        "deep.html": b"<div>" * 30_000,
        "ok-unclosed.html": b"<a " * 30_000 + b"rain",
        "ok-entities.html": f"{DOCTYPE.format(secret=folder / 'secret', laughs=LAUGHS)}<p>rain &l9; &secret;".encode(),
        "ok-yaml.md": b"---\n" + b"a: &a [x]\n" + b"".join(b"k%d: [*a, *a]\n" % n for n in range(999)) + b"---\nrain",
        "ok-object.md": b"---\nx: !!python/object/apply:os.system ['touch ran']\n---\nrain",
        "ok-fences.md": b"# " * 20_000 + b"\n" + b"`" * 20_000 + b"\nrain",
        "deep.jsonl": b"[" * 100_000,
        "not-rows.jsonl": b'{"text": "a"}\nrain\n',
        "ok-stars.txt": b"*" * 200_000 + b" rain",
        "ok-colons.txt": b"a" * 30 + b" :" * 50_000 + b" rain",
    }  # fmt: skip


def make_archives(folder: Path) -> None:
    entities = DOCTYPE.format(secret=folder / "secret", laughs=LAUGHS)
    word = '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>'
    for name, entity in (("laughs", "&l9;"), ("secret", "&secret;")):
        parts = read_zip(docx(folder / f"{name}.docx"))
        end = f"rain {entity}</w:t></w:r></w:p></w:body></w:document>"
        write_zip(folder / f"{name}.docx", {**parts, "word/document.xml": entities + word + end})
        write_zip(folder / f"{name}.epub", {**EPUB, "o.opf": entities + EPUB["o.opf"].replace("The Town", entity)})
    write_zip(folder / "ok-climbing.epub", {**EPUB, "../../../climbed": "rain", "/climbed": "rain"})
    write_zip(folder / "missing.epub", {**EPUB, "o.opf": EPUB["o.opf"].replace("c.xhtml", "../../secret")})
    write_zip(folder / "spaces.docx", {"word/document.xml": " " * 110 * 2**20})
    for name in ("locked.epub", "locked.docx"):
        write_zip(folder / name, EPUB if name.endswith("epub") else read_zip(docx(folder / name)))
        lock_entries(folder / name)
    write_overlapping_book(folder / "overlapping.epub")
    workbook = {"xl/workbook.xml": entities + "<workbook>&l9;</workbook>", "[Content_Types].xml": entities + "<a/>"}
    write_zip(folder / "laughs.xlsx", workbook)


def lock_entries(path: Path) -> None:
    """Mark every entry of an archive as encrypted with a password."""
    raw = bytearray(path.read_bytes())
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = raw.find(signature)
        while at >= 0:
            raw[at + place] |= 1
            at = raw.find(signature, at + 4)
    path.write_bytes(raw)


def write_overlapping_book(path: Path) -> None:
    """A book whose thousand chapters share the bytes of one."""
    items = "".join(f'<item id="i{n}" href="c{n}.xhtml" media-type="application/xhtml+xml"/>' for n in range(1000))
    order = "".join(f'<itemref idref="i{n}"/>' for n in range(1000))
    book = EPUB["o.opf"].replace("</manifest>", f"{items}</manifest>").replace("</spine>", f"{order}</spine>")
    write_zip(path, {**EPUB, "o.opf": book, "c0.xhtml": "<p>" + " " * 2**24})
    repeat_part(path, "c0.xhtml", [f"c{number}.xhtml" for number in range(1, 1000)])


def bind(server: socket.socket, path: Path) -> None:
    """Bind a socket to a path that may be longer than the address of a socket can be."""
    descriptor = os.open(path.parent, os.O_RDONLY)
    server.bind(f"/proc/self/fd/{descriptor}/{path.name}")
    os.close(descriptor)


def make_odd_entries(folder: Path) -> None:
    """Files that are no files, links, and names that are no names."""
    os.mkfifo(folder / "pipe.txt")
    with socket.socket(socket.AF_UNIX) as server:
        bind(server, folder / "socket.txt")
    for name, target in (("zero.txt", "/dev/zero"), ("random.csv", "/dev/random"), ("terminal.html", "/dev/tty")):
        (folder / name).symlink_to(target)
    (folder / "memory.html").symlink_to("/proc/self/mem")
    (folder / "loop-a.txt").symlink_to("loop-b.txt")
    (folder / "loop-b.txt").symlink_to("loop-a.txt")
    (folder / "up").symlink_to(folder)
    (folder / "outside.txt").symlink_to(folder.parent / "secret")
    (folder / "missing.txt").symlink_to("nowhere.txt")
    with (folder / "sparse.log").open("wb") as file:
        file.truncate(2**40)
    (folder / "two\nlines.pdf").write_bytes(b"The rain fell.")
    (folder / "ok-two\nlines \x1b[31m.txt").write_text("rain")
    Path(os.fsdecode(os.fsencode(folder) + b"/bytes-\xff\xfe.txt")).write_text("rain")
    Path(os.fsdecode(os.fsencode(folder) + b"/bytes-\xff.png")).write_text("rain")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("hostile")
    (parent / "secret").write_text(SECRET)
    folder = parent / "files"
    folder.mkdir()
    for name, raw in make_texts(parent).items():
        (folder / name).write_bytes(raw)
    make_archives(folder)
    make_odd_entries(folder)
    return folder


def run_tome(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    bounds = {"SECONDS": "20", "MEMORY": "200", "CHARACTERS": "2000000"}
    return subprocess.run(
        [sys.executable, "-m", "tomewise", *words],
        cwd=folder.parent,
        env=os.environ | {f"TOMEWISE_READ_{name}": value for name, value in bounds.items()} | {"NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize("follow", [(), ("--follow",)], ids=["", "follow"])
def test_each_hostile_file_is_read_or_is_one_line(folder: Path, follow: tuple[str, ...], tmp_path: Path) -> None:
    entries = list(os.scandir(folder))
    assert len(entries) >= 80
    memory = tmp_path / "a.tome"
    ran = run_tome(folder, "-m", str(memory), "add", str(folder), "--embedder", "hash", *follow)
    assert ran.returncode == 0, ran.stderr
    lines = [line for line in ran.stdout.splitlines() if line.startswith("passed over ")]
    with Tome.open(memory, embedder="hash") as tome:
        documents = [(record.source.rsplit("/", 1)[1], tome.documents[record.id]) for record in tome.store.documents()]
    read_names = {name for name, _ in documents}
    good = {entry.name for entry in entries if entry.name.startswith("ok-")}
    assert good <= read_names
    assert len(lines) == len(entries) - len(read_names)
    assert len(ran.stdout.splitlines()) == len(lines) + 4  # what was added and guessed, the seconds, the next command
    outside = {name for name, document in documents if SECRET in document.text + document.title}
    assert outside == ({"secret"} if follow else set())
    assert "\x1b" not in ran.stdout
    assert {path.name for path in folder.parent.iterdir()} == {"files", "secret"}  # nothing ran or climbed out
    reasons = "\n".join(lines)
    for name, reason in REASONS.items():
        assert re.search(rf"^passed over {re.escape(name)}: .*{reason}", reasons, re.MULTILINE), (name, reason)
    for name, document in documents:
        if name.startswith("ok-"):
            assert re.search("rain|Rain|word|a|x", document.text), name


def test_hostile_files_that_are_named_one_by_one_are_one_line_each(folder: Path, tmp_path: Path) -> None:
    """An endless device that is named is read until its bound, and no file stops the others."""
    suffixes = (".txt", ".log", ".csv", ".html", ".epub", ".md")
    bad = [path for path in sorted(folder.iterdir()) if path.suffix in suffixes and not path.name.startswith("ok-")]
    bad = [path for path in bad if path.name not in ("outside.txt", "terminal.html", "unknown.html", "no-mark.txt")]
    memory = tmp_path / "a.tome"
    good = folder / "ok-stars.txt"
    ran = run_tome(folder, "-m", str(memory), "add", *map(str, bad), str(good), "--embedder", "hash")
    assert ran.returncode == 3, ran.stderr
    assert "Traceback" not in ran.stderr
    with Tome.open(memory, embedder="hash") as tome:
        read_names = {record.source.rsplit("/", 1)[1] for record in tome.store.documents()}
    assert good.name in read_names
    refused = [path for path in bad if path.name not in read_names]
    *lines, last = ran.stderr.splitlines()
    assert len(refused) == len(lines) >= 20, ran.stderr
    assert all(line.startswith("tome: failed ") for line in lines)
    assert last == f"tome: {len(refused)} of {len(bad) + 1} sources failed; the others are added"
