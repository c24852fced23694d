"""Rows of a data file, and fields taken from them under any of the names they go by."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

from tomewise.errors import MissingDependency, ReadingError
from tomewise.reading.decode import decode_text


@dataclass(frozen=True, slots=True)
class Record:
    """One row of a file, or an object inside one; `place` says which, for a person to find it."""

    source: Path
    place: str
    values: Mapping[str, Any]

    def find(self, *names: str) -> Any:
        """The first of these fields that is there and not null, else None. A dot steps inside: `document.text`."""
        found = (_inside(self.values, name) for name in names)
        return next((value for value in found if value is not None), None)

    def take(self, *names: str) -> Any:
        """Like `find`, but raises ReadingError naming the field when none is there."""
        value = self.find(*names)
        if value is None:
            raise self.missing(*names)
        return value

    def text(self, *names: str) -> str:
        """The field as text. Raises ReadingError when it is missing, or is neither text nor a number."""
        value = self.take(*names)
        if isinstance(value, str | int | float):
            return str(value)
        raise self.wrong(names[0], value, "text")

    def texts(self, *names: str) -> tuple[str, ...]:
        """The field as several texts: one text, a list of texts, or a list of objects that hold `text`."""
        value = self.take(*names)
        several = value if isinstance(value, list) else [value]
        texts = [part.get("text") if isinstance(part, dict) else part for part in several]
        if all(isinstance(text, str | int | float) for text in texts):
            return tuple(str(text) for text in texts)
        raise self.wrong(names[0], value, "a list of texts")

    def rows(self, *names: str) -> list[Record]:
        """The objects of a field that holds a list of them, or a mapping to them (whose keys are then in `place`)."""
        value = self.take(*names)
        if isinstance(value, dict):
            pairs = [(str(key), part) for key, part in value.items()]
        elif isinstance(value, list):
            pairs = [(str(at), part) for at, part in enumerate(value, 1)]
        else:
            raise self.wrong(names[0], value, "a list of objects")
        return [self.inside(f"{names[0]} {key}", part) for key, part in pairs]

    def inside(self, place: str, part: object) -> Record:
        """An object inside this row. Raises ReadingError when it is none."""
        if not isinstance(part, dict):
            raise self.wrong(place, part, "an object")
        return Record(self.source, f"{self.place}, {place}", part)

    def slices(self, *names: str) -> dict[str, str | int]:
        """Those of these fields that are there as text or a whole number, under the last part of their name, lower."""
        found = {name.rpartition(".")[2].lower(): self.find(name) for name in names}
        return {name: value for name, value in found.items() if isinstance(value, str | int)}

    def missing(self, *names: str) -> ReadingError:
        others = f" (or {', '.join(map(repr, names[1:]))})" if names[1:] else ""
        has = ", ".join(map(str, self.values)) or "nothing"
        return self.error(f"the field {names[0]!r}{others} is missing; it has {has}. Add it, or name another layout")

    def wrong(self, name: str, value: object, wanted: str) -> ReadingError:
        return self.error(f"the field {name!r} should be {wanted}, but is {str(value)[:60]!r}. Mend that row")

    def error(self, what: str) -> ReadingError:
        return ReadingError(f"{self.source}, {self.place}: {what}")


def records(path: Path) -> list[Record]:
    """The rows of a JSON, JSON Lines, CSV or Parquet file; a JSON object is one row.

    JSON and JSON Lines are told apart by content, for published files are named either way. Raises ReadingError.
    """
    return list(stream(path))


def stream(path: Path) -> Iterator[Record]:
    """Like `records`, a row at a time: a row may hold a whole book, so of Parquet only a few are held at once."""
    for number, row in enumerate(_rows(path), 1):
        if not isinstance(row, dict):
            raise ReadingError(f"{path}, row {number}: a row should be an object, but is {str(row)[:60]!r}. Mend it")
        yield Record(path, f"row {number}", row)


def text_of(path: Path) -> str:
    """The text of a file, decoded as any document is. Raises ReadingError."""
    try:
        return decode_text(path.read_bytes(), str(path))
    except OSError as error:
        raise ReadingError(f"{path} could not be read: {error.strerror}. Check the path") from error


def files(folder: Path, *patterns: str) -> list[Path]:
    """The files that match the first of the patterns that any file matches, in order; `folder` may name one file.

    Raises ReadingError naming the patterns when there is none.
    """
    if folder.is_file():
        return [folder]
    for pattern in patterns:
        if found := sorted(path for path in folder.glob(pattern) if path.is_file()):
            return found
    wanted = " or ".join(patterns)
    raise ReadingError(f"{folder} holds no file {wanted}: give the folder of that layout, or name another layout")


def one_file(folder: Path, *patterns: str) -> Path:
    """Like `files`, when there must be one. Raises ReadingError when several match."""
    found = files(folder, *patterns)
    if len(found) > 1:
        names = ", ".join(path.name for path in found[:8])
        raise ReadingError(f"{folder} holds several files that fit ({names}): give the path of one instead")
    return found[0]


def _rows(path: Path) -> Iterable[Any]:
    if path.suffix == ".parquet":
        return _parquet(path)
    text = text_of(path)
    if path.suffix in {".csv", ".tsv"}:
        return _csv(path, text, "\t" if path.suffix == ".tsv" else ",")
    return _json(path, text)


def _csv(path: Path, text: str, delimiter: str) -> Iterator[Any]:
    rows = csv.DictReader(StringIO(text), delimiter=delimiter)
    try:
        yield from rows
    except csv.Error as error:
        raise ReadingError(f"{path}, after line {rows.line_num}: {error}. Mend that row") from error


def _json(path: Path, text: str) -> list[Any]:
    try:
        value = json.loads(text)
        return value if isinstance(value, list) else [value]
    except (ValueError, RecursionError):  # ValueError also for numbers of thousands of digits
        return list(_json_lines(path, text))


def _json_lines(path: Path, text: str) -> Iterator[Any]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                reason = error.msg if isinstance(error, json.JSONDecodeError) else error
                raise ReadingError(
                    f"{path}, line {number} is no JSON: {reason}. Mend or leave out that line"
                ) from error


def _parquet(path: Path) -> Iterator[Any]:
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        message = f"reading {path} needs the package pyarrow, which is not installed: pip install 'tomewise[eval]'"
        raise MissingDependency(message) from error
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=32):
                yield from batch.to_pylist()
    except (ValueError, OSError) as error:  # pyarrow's own errors are of these kinds
        raise ReadingError(f"{path} is no Parquet file that can be read: {error}. Fetch it again") from error


def _inside(values: Mapping[str, Any], name: str) -> Any:
    value: Any = values
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
