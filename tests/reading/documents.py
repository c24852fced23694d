"""Small documents of the formats that are converted."""

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path


def pdf(*pages: str) -> bytes:
    """Pages of Helvetica with one line each."""
    return draw_pdf(*(f"BT /F1 12 Tf 72 720 Td ({words}) Tj ET" for words in pages))


def draw_pdf(*drawings: str, catalog: bytes = b"", more: Sequence[bytes] = ()) -> bytes:
    """Pages with these drawings, with the table of offsets that a PDF ends with.

    `catalog` are further entries of the catalog. `more` are further objects; they come after the three and the two of
    each page.
    """
    numbers = [4 + 2 * place for place in range(len(drawings))]
    kids = " ".join(f"{number} 0 R" for number in numbers).encode()
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalog,
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(drawings)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, drawing in zip(numbers, drawings, strict=True):
        drawn = drawing.encode()
        parts += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % (number + 1),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        ]
    parts += more
    body, offsets = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, start=1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(parts) + 1
    tail = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(body))
    return body + b"xref\n0 %d\n0000000000 65535 f \n" % size + table + tail


def draw_stream(raw: bytes, times: int, squeezed: int = 1) -> bytes:
    """A PDF whose page is drawn by these bytes, so many times; they are squeezed so often."""
    squeeze = zlib.compressobj(9)
    stream = b"".join(squeeze.compress(raw) for _ in range(times)) + squeeze.flush()
    for _ in range(squeezed - 1):
        stream = zlib.compress(stream, 9)
    head = b"<< /Length %d /Filter [%s] >>\nstream\n" % (len(stream), b"/FlateDecode " * squeezed)
    return draw_pdf("x").replace(b"<< /Length 1 >>\nstream\nx", head + stream)


PDF_KEYS = b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >> /ID [<00><00>]" % (b"A" * 64, b"B" * 64)
ENCRYPTED_PDF = pdf("Rain.").replace(b"/Root 1 0 R", b"/Root 1 0 R " + PDF_KEYS)
OLD_OFFICE = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600)
LOCKED_OFFICE = OLD_OFFICE + "EncryptedPackage".encode("utf-16-le")
ENCRYPTED_MAIL = b"Subject: s\nContent-Type: multipart/encrypted; boundary=b\n\n--b\n\nx\n--b--\n"
LAUGHS = '<!ENTITY l0 "ha">' + "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
"""Entities that unfold to ten thousand million letters."""


def write_zip(path: Path, parts: Mapping[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def read_zip(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


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


def repeat_part(path: Path, name: str, copies: list[str]) -> Path:
    """The archive with further entries that share the bytes of one, after Fifield, "A better zip bomb", 2019."""
    with zipfile.ZipFile(path, "a") as archive:
        whole = archive.getinfo(name)
        for each in copies:
            copy = zipfile.ZipInfo(each)
            for part in ("header_offset", "CRC", "compress_size", "file_size", "compress_type"):
                setattr(copy, part, getattr(whole, part))
            archive.filelist.append(copy)
        archive.comment = b"more"  # so that the list is written again
    return path


def docx(path: Path, body: str = "") -> Path:
    """Two paragraphs, and what else is to stand in its body."""
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    package = "http://schemas.openxmlformats.org/package/2006"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    return write_zip(
        path,
        {
            "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{main}"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{package}/relationships">'
            f'<Relationship Id="r1" Type="{office}" Target="word/document.xml"/></Relationships>',
            "word/document.xml": f'<w:document xmlns:w="{word}"><w:body>'
            "<w:p><w:r><w:t>The rain fell.</w:t></w:r></w:p><w:p><w:r><w:t>The wind rose.</w:t></w:r></w:p>"
            f"{body}</w:body></w:document>",
        },
    )


EPUB = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": '<container><rootfiles><rootfile full-path="o.opf"/></rootfiles></container>',
    "o.opf": '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>The Town</dc:title>'
    '</metadata><manifest><item id="c" href="c.xhtml"/></manifest>'
    '<spine><itemref idref="c"/></spine></package>',
    "c.xhtml": "<html><body><h1>One</h1><p>The rain fell.</p></body></html>",
}
