"""Uploads: the files of a form, written as they arrive into the folder of their job.

The name of a file is the id of its document and never a path: on the disk the files have numbers.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from tomewise.reading.formats import list_suffixes
from tomewise.server.bodies import MOST_ID
from tomewise.server.error_replies import HttpError

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

    from tomewise.beside import FolderBeside

MOST_FILES = 1000
_MOST_HEADERS = 20_000  # bytes of the headers of one part
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


async def receive_files(request: Request, folder: FolderBeside) -> list[tuple[str, str]]:
    """Write the files of a form into a folder. Returns for each its file there and the name that the client gave.

    Raises HttpError for a form that cannot be read, that ends too early, or has too many parts.
    """
    _, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary")
    if not boundary:
        raise _refuse("its content type names no boundary")
    form = _Form(folder, frozenset(await asyncio.to_thread(list_suffixes)))  # it looks for plugins
    try:
        parser = MultipartParser(boundary, form.callbacks)
        async for chunk in request.stream():
            await asyncio.to_thread(parser.write, chunk)
    except FormParserError:  # also where the boundary is too long
        raise _refuse("its parts cannot be separated") from None
    except ClientDisconnect:
        raise _refuse("it was cut off") from None
    finally:
        form.close()
    if not form.ended:
        raise _refuse("it has no end")
    if not form.files:
        raise _refuse("it holds no file: send one or more as the field `files`")
    return form.files


def check_name(name: str) -> str:
    """The id of a document, unchanged. Raises HttpError for one that no document can have."""
    if not name.strip() or len(name) > MOST_ID or _CONTROL.search(name):
        raise HttpError(
            "usage",
            f"the name {name[:60]!a} cannot be an id: give 1 to {MOST_ID} characters, none of them control",
        )
    return name


class _Form:
    """Takes the calls of the parser of a form. `suffixes` are those of the formats that can be read."""

    def __init__(self, folder: FolderBeside, suffixes: Collection[str]) -> None:
        self.files: list[tuple[str, str]] = []
        self._suffixes = suffixes
        self._names: set[str] = set()
        self.ended = False
        self._folder = folder
        self._file: BinaryIO | None = None
        self._parts = 0
        self._header = (bytearray(), bytearray())
        self._header_bytes = 0
        self._disposition = b""
        self.callbacks: MultipartCallbacks = {
            "on_part_begin": self._begin_part,
            "on_header_field": lambda data, start, end: self._take_header(0, data[start:end]),
            "on_header_value": lambda data, start, end: self._take_header(1, data[start:end]),
            "on_header_end": self._end_header,
            "on_headers_finished": self._open_file,
            "on_part_data": self._write,
            "on_part_end": self.close,
            "on_end": self._end,
        }

    def close(self) -> None:
        """Close the file that is being written."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def _begin_part(self) -> None:
        self._parts += 1
        self._header_bytes = 0
        self._disposition = b""
        if self._parts > MOST_FILES:
            raise _refuse(f"it has more than {MOST_FILES:,} parts: send several forms")

    def _take_header(self, which: int, data: bytes) -> None:
        self._header_bytes += len(data)
        if self._header_bytes > _MOST_HEADERS:
            raise _refuse("the headers of a part are too long")
        self._header[which].extend(data)

    def _end_header(self) -> None:
        name, value = (bytes(part) for part in self._header)
        self._header = (bytearray(), bytearray())
        if name.lower() == b"content-disposition":
            self._disposition = value

    def _open_file(self) -> None:
        _, options = parse_options_header(self._disposition)
        if options.get(b"name") != b"files" or b"filename" not in options:
            raise _refuse("a part is not a file of the field `files`: nothing else belongs there")
        try:
            name = check_name(options[b"filename"].decode("utf-8"))
        except UnicodeDecodeError:
            raise _refuse("the name of a file is not UTF-8") from None
        if name in self._names:
            raise _refuse(f"two files are named {name[:60]!a}")
        self._names.add(name)
        file = self._name_file(name)
        self.files.append((file, name))
        self._file = self._folder.create(file)

    def _name_file(self, name: str) -> str:
        """The name on the disk: a number, and the suffix by which readers know the format."""
        suffix = PurePosixPath(name).suffix.lower()
        return f"{len(self.files) + 1:04}{suffix if suffix in self._suffixes else '.txt'}"

    def _write(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])

    def _end(self) -> None:
        self.ended = True


def _refuse(reason: str) -> HttpError:
    return HttpError("usage", f"the form cannot be read: {reason}")
