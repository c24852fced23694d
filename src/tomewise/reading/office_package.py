"""What the files of Office have in common: a package in a ZIP archive with properties, or an encrypted one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from xml.etree import ElementTree
from xml.parsers.expat.errors import XML_ERROR_NO_MEMORY, codes
from zipfile import ZipFile

from tomewise.errors import ReadingError
from tomewise.reading.metadata import add_losses, read_properties
from tomewise.reading.process import make_damage_error, make_locked_error
from tomewise.types import Metadata

_XML = (".xml", ".rels")
_MOST_XML = 100 * 2**20  # bytes of one part
_CORE = "docProps/core.xml"
_MANIFEST = "META-INF/manifest.xml"
_PRESET = re.compile(r"(?i)^(?:powerpoint presentation|(?:word )?document ?\d*|untitled.*|presentation ?\d*)$")
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # the beginning of old files of Office, and of encrypted ones
# What nobody reads of these parts, by the names of elements.
_COUNTED = re.compile(
    r"content\.xml|(?:ppt/(?:slides/slide|comments/)|xl/(?:drawings/drawing|(?:\w*/)?\w*omment))[^/]*xml"
)
_LOST = {
    **dict.fromkeys(("pic", "image"), "picture"),
    **dict.fromkeys(("oleObj", "object"), "embedded object"),
    **dict.fromkeys(("cm", "comment", "threadedComment", "annotation"), "comment"),
    "chart": "chart",
    "relIds": "diagram",
    "oMath": "formula",
    "deletion": "tracked deletion",
}
_ELEMENT = re.compile(rf"<(?:\w{{1,20}}:)?({'|'.join(_LOST)}|(?<=xdr:)sp)[ />]".encode())
_NO_MEMORY = codes[XML_ERROR_NO_MEMORY]
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


@contextmanager
def open_package(path: Path, properties: str = _CORE) -> Iterator[tuple[BinaryIO, str, Metadata]]:
    """The opened file, the title in the part with its properties, and its origin and what nobody reads as metadata.

    The title is empty without one, and for one that Office writes unasked. Raises `ReadingError` for a file that is
    encrypted, for one that unpacks to more XML than its reader can take in reasonable time, and with the reason for
    whatever error the file causes inside this context.
    """
    title = ""
    origin: Metadata = {}
    try:
        with ZipFile(path) as archive:
            # What is read of a part is never longer than the size that the archive states.
            sizes = {part.filename: part.file_size for part in archive.infolist()}
            longest = max((size for name, size in sizes.items() if name.endswith(_XML)), default=0)
            if longest > _MOST_XML:
                raise ReadingError(f"{path} unpacks to {longest / 2**20:,.0f} MB of XML: split it, or leave it out")
            if _MANIFEST in sizes and b"encryption-data" in archive.read(_MANIFEST):
                raise make_locked_error(path)
            if properties in sizes:
                title, origin = read_properties(ElementTree.fromstring(archive.read(properties)))
            raw = map(archive.read, filter(_COUNTED.fullmatch, sizes))
            lost = Counter(_LOST.get(name.decode(), "box") for part in raw for name in _ELEMENT.findall(part))
            origin = add_losses(origin, lost)
        with path.open("rb") as file:
            yield file, "" if properties == _CORE and _PRESET.match(title) else title, origin
    except (MemoryError, ReadingError):
        raise
    except Exception as error:
        if getattr(error, "code", 0) == _NO_MEMORY:
            raise MemoryError from error
        _refuse_compound(path)
        raise make_damage_error(path, error, "save it as text or repair it") from error


def _refuse_compound(path: Path) -> None:
    raw = path.read_bytes()
    if raw.startswith(_COMPOUND):
        if _ENCRYPTED in raw:
            raise make_locked_error(path) from None
        raise ReadingError(
            f"{path} is a file of an old version of Office: save it in the format that its name states"
        ) from None
