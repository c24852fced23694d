"""What the files of Office have in common: a package in a ZIP archive with properties, or an encrypted one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from xml.etree import ElementTree
from zipfile import ZipFile

from tomewise.errors import ReadingError
from tomewise.reading.bounds import make_damage_error, make_locked_error
from tomewise.reading.decode import join_words
from tomewise.reading.origin import describe_origin
from tomewise.types import Metadata

_XML = (".xml", ".rels")
_MOST_XML = 100 * 2**20  # bytes of one part
_CORE = "docProps/core.xml"
_DUBLIN = "{http://purl.org/dc/elements/1.1/}"
_TERMS = "{http://purl.org/dc/terms/}"
_PRESET = re.compile(r"(?i)^(?:powerpoint presentation|(?:word )?document ?\d*|untitled.*|presentation ?\d*)$")
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # the beginning of old files of Office, and of encrypted ones
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


@contextmanager
def report_damage(path: Path) -> Iterator[None]:
    """Raise `ReadingError` with the reason for whatever error the file causes inside this context."""
    try:
        yield
    except (MemoryError, ReadingError):
        raise
    except Exception as error:
        _refuse_compound(path)
        raise make_damage_error(path, error, "save it as text or repair it") from error


@contextmanager
def open_package(path: Path) -> Iterator[tuple[BinaryIO, str, Metadata]]:
    """The opened file, the title in its properties, and its origin as metadata; errors inside as `report_damage`.

    The title is empty without one, and for one that programs write unasked. Raises `ReadingError` for a file that
    unpacks to more XML than its reader can take in reasonable time.
    """
    with report_damage(path):
        title, origin = _read_properties(path)
        with path.open("rb") as file:
            yield file, title, origin


def _read_properties(path: Path) -> tuple[str, Metadata]:
    with ZipFile(path) as archive:
        refuse_large_parts(path, archive)
        if _CORE not in archive.namelist():
            return "", {}
        root = ElementTree.fromstring(archive.read(_CORE))

    def read(*names: str) -> str:
        return next((text for name in names if (text := root.findtext(f".//{name}", ""))), "")

    title = join_words(read(f"{_DUBLIN}title"))
    date = read(f"{_TERMS}created", f"{_TERMS}modified")
    origin = describe_origin(authors=[read(f"{_DUBLIN}creator")], date=date, language=read(f"{_DUBLIN}language"))
    return "" if _PRESET.match(title) else title, origin


def refuse_large_parts(path: Path, archive: ZipFile) -> None:
    """Raise `ReadingError` for a part with more XML than its reader can take in reasonable time."""
    # What is read of a part is never longer than the size that the archive states.
    longest = max((part.file_size for part in archive.infolist() if part.filename.endswith(_XML)), default=0)
    if longest > _MOST_XML:
        raise ReadingError(f"{path} unpacks to {longest / 2**20:,.0f} MB of XML: split it, or leave it out")


def _refuse_compound(path: Path) -> None:
    raw = path.read_bytes()
    if raw.startswith(_COMPOUND):
        if _ENCRYPTED in raw:
            raise make_locked_error(path) from None
        raise ReadingError(
            f"{path} is a file of an old version of Office: save it in the format that its name states"
        ) from None
