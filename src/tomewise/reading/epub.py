"""EPUB to Markdown-like text: the chapters in the order in which the book says they are read."""

from __future__ import annotations

import posixpath
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree
from zipfile import BadZipFile, ZipFile

from tomewise.errors import ReadingError
from tomewise.reading.web import page_text
from tomewise.types import Document

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
# Fonts may be scrambled in a book that anybody can read; whatever is encrypted otherwise needs a key.
_FONTS = frozenset({"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"})
_PAGES = frozenset({  # old books call their pages what they like
    "", "application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document", "application/xml",
    "text/xml",
})  # fmt: skip
_NAMED = 3  # chapters that an error lists


def read_epub(path: Path) -> tuple[Document]:
    """The book in an EPUB file; its title is the one that its metadata state.

    Raises `ReadingError` when the file is damaged, protected by DRM, or lacks chapters that it lists.
    """
    try:
        with ZipFile(path) as archive:
            return (_book(path, archive),)
    except (BadZipFile, zlib.error, KeyError, NotImplementedError, ElementTree.ParseError, EOFError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ReadingError(f"{path} could not be converted: {reason}; repair it, or leave it out") from error


def _book(path: Path, archive: ZipFile) -> Document:
    names = frozenset(archive.namelist())
    if _ENCRYPTION in names:
        _refuse_protected(path, archive)
    package = _package_name(path, archive)
    root = ElementTree.fromstring(archive.read(package))
    chapters = list(_chapters(root, posixpath.dirname(package), names))
    missing = [name for name in chapters if name not in names]
    if missing or not chapters:
        some = ", ".join(missing[:_NAMED]) + (", ..." if len(missing) > _NAMED else "")
        lack = f"lacks {len(missing)} of its {len(chapters)} chapters ({some})" if chapters else "lists no chapters"
        raise ReadingError(f"{path} {lack}: get the whole book, or leave it out")
    raw = ((name, archive.read(name)) for name in chapters)
    pages = (page_text(page, f"the chapter {name} of {path}")[1] for name, page in raw if page.strip())
    title = next((" ".join("".join(part.itertext()).split()) for part in _parts(root, "title")), "")
    return Document(id=str(path), text="\n\n".join(page for page in pages if page), title=title, source=str(path))


def _refuse_protected(path: Path, archive: ZipFile) -> None:
    methods = _parts(ElementTree.fromstring(archive.read(_ENCRYPTION)), "EncryptionMethod")
    if any(method.get("Algorithm") not in _FONTS for method in methods):
        raise ReadingError(f"{path} is protected by DRM, its text is encrypted: get a copy without it, or leave it out")


def _package_name(path: Path, archive: ZipFile) -> str:
    """The file of the archive that lists the chapters."""
    for part in _parts(ElementTree.fromstring(archive.read(_CONTAINER)), "rootfile"):
        if name := part.get("full-path"):
            return name
    raise ReadingError(f"{path} names no list of its chapters: repair it, or leave it out")


def _chapters(package: ElementTree.Element, folder: str, names: frozenset[str]) -> Iterator[str]:
    """The pages that are read in turn, by their names in the archive (those that it lacks as well)."""
    items = {item.get("id"): item for item in _parts(package, "item")}
    for reference in _parts(package, "itemref"):
        item = items.get(reference.get("idref"))
        if item is not None and item.get("media-type", "").lower() in _PAGES:
            href = item.get("href", "").partition("#")[0]
            places = [posixpath.normpath(posixpath.join(folder, one)) for one in (unquote(href), href)]
            yield next((place for place in places if place in names), places[0])


def _parts(root: ElementTree.Element, name: str) -> Iterator[ElementTree.Element]:
    """The elements of a name, in whatever namespace."""
    return root.iterfind(f".//{{*}}{name}")
