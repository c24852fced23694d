"""Read EPUB as Markdown-like text, the chapters in the reading order that the book states."""

from __future__ import annotations

import posixpath
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree
from zipfile import BadZipFile, ZipFile

from tomewise.errors import ReadingError
from tomewise.reading.metadata import read_properties
from tomewise.reading.places import make_document
from tomewise.reading.process import make_damage_error, make_locked_error
from tomewise.reading.web_pages import read_page
from tomewise.types import Document

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
# A book that anybody can read may have obfuscated fonts; any other encryption needs a key.
_FONTS = frozenset({"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"})
_PAGES = frozenset({  # old books use several media types for their pages
    "", "application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document", "application/xml",
    "text/xml",
})  # fmt: skip
_LOCKED = 1  # the flag of an entry of an archive that is encrypted
_MOST_LISTED = 3  # missing chapters that an error lists


def read_epub(path: Path) -> tuple[Document]:
    """The book in an EPUB file; its title comes from its metadata.

    Raises `ReadingError` if the file is damaged, encrypted, protected by DRM, or lacks chapters that it lists.
    """
    try:
        with ZipFile(path) as archive:
            return _read_book(path, archive)
    except (BadZipFile, zlib.error, KeyError, NotImplementedError, ElementTree.ParseError, EOFError) as error:
        raise make_damage_error(path, error) from error


def _read_book(path: Path, archive: ZipFile) -> tuple[Document]:
    names = frozenset(archive.namelist())
    if any(part.flag_bits & _LOCKED for part in archive.infolist()):
        raise make_locked_error(path)
    if _ENCRYPTION in names:
        _refuse_protected(path, archive)
    package = _find_package(path, archive)
    root = ElementTree.fromstring(archive.read(package))
    # A book has each of its pages once; one that lists a page a thousand times is a bomb.
    chapters = list(dict.fromkeys(_list_chapters(root, posixpath.dirname(package), names)))
    missing = [name for name in chapters if name not in names]
    if missing or not chapters:
        examples = ", ".join(missing[:_MOST_LISTED]) + (", ..." if len(missing) > _MOST_LISTED else "")
        lack = f"lacks {len(missing)} of its {len(chapters)} chapters ({examples})" if chapters else "lists no chapters"
        raise ReadingError(f"{path} {lack}: get the whole book, or leave it out")
    raw = ((name, archive.read(name)) for name in chapters)
    pages = [read_page(page, f"the chapter {name} of {path}") for name, page in raw if page.strip()]
    title, origin = read_properties(root)
    losses = sum((Counter(page.losses) for page in pages), Counter[str]())
    return make_document(path, "\n\n".join(page.text for page in pages if page.text), title, origin, losses=losses)


def _refuse_protected(path: Path, archive: ZipFile) -> None:
    methods = ElementTree.fromstring(archive.read(_ENCRYPTION)).iterfind(".//{*}EncryptionMethod")
    if any(method.get("Algorithm") not in _FONTS for method in methods):
        raise ReadingError(f"{path} is protected by DRM, its text is encrypted: get a copy without it, or leave it out")


def _find_package(path: Path, archive: ZipFile) -> str:
    """The name of the file in the archive that lists the chapters."""
    for element in ElementTree.fromstring(archive.read(_CONTAINER)).iterfind(".//{*}rootfile"):
        if name := element.get("full-path"):
            return name
    raise ReadingError(f"{path} does not name a list of its chapters: repair it, or leave it out")


def _list_chapters(package: ElementTree.Element, folder: str, names: frozenset[str]) -> Iterator[str]:
    """The names of the pages in the archive, in reading order, including pages that the archive lacks.

    The table of contents is left out, as the package names it: by a property in EPUB 3, in its guide before.
    """
    items = {item.get("id"): item for item in package.iterfind(".//{*}item")}
    guides = {
        each.get("href", "").partition("#")[0]
        for each in package.iterfind(".//{*}reference")
        if each.get("type") == "toc"
    }
    for reference in package.iterfind(".//{*}itemref"):
        item = items.get(reference.get("idref"))
        if item is None or "nav" in item.get("properties", "").split():
            continue
        if item.get("media-type", "").lower() in _PAGES:
            href = item.get("href", "").partition("#")[0]
            if href in guides:
                continue
            candidates = [posixpath.normpath(posixpath.join(folder, form)) for form in (unquote(href), href)]
            yield next((name for name in candidates if name in names), candidates[0])
