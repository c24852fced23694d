"""Records of an experiment in JSON Lines. Each is appended as it comes, whole or not at all."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from tomewise.errors import Locked, StoreError

_SYNC_SECONDS = 1.0  # `append` syncs no more often; a power cut loses what came since, a killed program nothing


class Journal:
    """A file to which one program at a time appends. A last line that a kill has cut off does not count."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._synced_at = 0.0
        self._file: FileIO | None = None

    @contextmanager
    def open_to_append(self) -> Iterator[None]:
        """Let `append` work inside; at the end all is on disk. Raises Locked when another program writes the file."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(str(self._path.with_suffix(".lock")), timeout=0), self._path.open("a+b", 0) as file:
                file.truncate(self._path.read_bytes().rfind(b"\n") + 1)  # without a line that a kill has cut off
                self._file, self._synced_at = file, self._clock()
                try:
                    yield
                finally:
                    self._file = None
                    os.fsync(file.fileno())
        except Timeout as error:
            raise Locked(f"{self._path.parent} is being written by another `tome eval run`: wait for it") from error

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a record. A kill after the return does not lose it. Raises StoreError if it cannot be written whole."""
        if self._file is None:
            raise RuntimeError("`append` works inside `open_to_append` only")
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        end = self._file.seek(0, os.SEEK_END)
        try:
            while line:
                line = line[self._file.write(line) :]
            if self._clock() - self._synced_at >= _SYNC_SECONDS:
                os.fsync(self._file.fileno())
                self._synced_at = self._clock()
        except OSError as error:
            self._file.truncate(end)  # a later record must not follow a part of this one
            raise StoreError(
                f"{self._path} cannot be written ({error.strerror}): make space on the disk, then repeat the command, "
                "which goes on from here"
            ) from error

    def read(self) -> list[dict[str, Any]]:
        """All records in order; an empty list without a file.

        Raises StoreError naming the first line that is not an object with the field `kind`.
        """
        try:
            lines = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        lines.pop()  # empty, or the part of a line that a kill left
        return [self._parse(number, line) for number, line in enumerate(lines, start=1)]

    def _parse(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict) or "kind" not in record:
            message = f"{self._path}, line {number} is damaged: delete that line, and its question is asked again"
            raise StoreError(message)
        return record
