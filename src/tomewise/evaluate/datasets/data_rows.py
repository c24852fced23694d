"""Rows of a data file, and their fields, which may have several names."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

from tomewise.errors import MissingDependency, ReadingError
from tomewise.reading.decode import decode


@dataclass(frozen=True, slots=True)
class Record:
    """One row of a file, or an object inside a row; `place` tells a person where it is.

    A field may have several names, one space apart; the first that a row has counts.
    `added` are fields that the reader of a layout computes. They come before those of the file.
    """

    source: Path
    place: str
    values: Mapping[str, Any]
    added: Mapping[str, Any] = field(default_factory=dict)

    def add(self, **fields: Any) -> Record:
        """The record with these fields added."""
        return replace(self, added={**self.added, **fields})

    def find(self, names: str) -> Any:
        """The field if it exists and is not null, else None. `document.text` is a field of a field."""
        return next((value for name in names.split() if (value := self._read(name)) is not None), None)

    def take(self, names: str) -> Any:
        """Like `find`, but raises ReadingError naming the field when it finds nothing."""
        value = self.find(names)
        if value is None:
            first, *others = map(repr, names.split())
            named = f"{first} (or {', '.join(others)})" if others else first
            has = ", ".join(map(str, self.values)) or "nothing"
            raise self.make_error(f"the field {named} is missing; it has {has}. Add it, or name another layout")
        return value

    def text(self, names: str) -> str:
        """The field as text. Raises ReadingError when it is missing, or is neither text nor a number."""
        value = self.take(names)
        if isinstance(value, str | int | float):
            return str(value)
        raise self.make_wrong_field_error(names.split()[0], value, "text")

    def texts(self, names: str) -> tuple[str, ...]:
        """The field as texts: it holds one text, a list of texts, or a list of objects with `text`."""
        value = self.take(names)
        parts = value if isinstance(value, list) else [value]
        texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
        if all(isinstance(text, str | int | float) for text in texts):
            return tuple(str(text) for text in texts)
        raise self.make_wrong_field_error(names.split()[0], value, "a list of texts")

    def find_texts(self, names: str) -> tuple[str, ...]:
        """Like `texts`, but nothing where the field is missing or empty."""
        return () if self.find(names) in (None, "", []) else self.texts(names)

    def rows(self, names: str) -> list[Record]:
        """The objects of a field that holds a list of them or maps keys to them; `place` has the number or key."""
        value, name = self.take(names), names.split()[0]
        if isinstance(value, dict):
            pairs = [(str(key), part) for key, part in value.items()]
        elif isinstance(value, list):
            pairs = [(str(at), part) for at, part in enumerate(value, 1)]
        else:
            raise self.make_wrong_field_error(name, value, "a list of objects")
        return [self.make_inner(f"{name} {key}", part) for key, part in pairs]

    def make_inner(self, place: str, part: object) -> Record:
        """An object inside this row. Raises ReadingError when it is not an object."""
        if not isinstance(part, dict):
            raise self.make_wrong_field_error(place, part, "an object")
        return Record(self.source, f"{self.place}, {place}", part)

    def slices(self, names: Iterable[str]) -> dict[str, str | int]:
        """The fields that hold text or a whole number, by the last part of their name in lower case."""
        values = {name.rpartition(".")[2].lower(): self._read(name) for name in names}
        return {name: value for name, value in values.items() if isinstance(value, str | int)}

    def _read(self, name: str) -> Any:
        value: Any = {**self.values, **self.added}
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    def make_wrong_field_error(self, name: str, value: object, wanted: str) -> ReadingError:
        """The error for a field with a wrong value."""
        return self.make_error(f"the field {name!r} should be {wanted}, but is {str(value)[:60]!r}. Fix that row")

    def make_error(self, what: str) -> ReadingError:
        """The error for this row."""
        return ReadingError(f"{self.source}, {self.place}: {what}")


def read_records(path: Path) -> list[Record]:
    """The rows of a JSON, JSON Lines, CSV or Parquet file; a JSON object is one row.

    The content decides between JSON and JSON Lines, because published files use either name. Raises ReadingError.
    """
    return list(stream_records(path))


def stream_records(path: Path) -> Iterator[Record]:
    """Like `read_records`, one row at a time: a row may hold a book, so only a few rows of Parquet are in memory."""
    for number, row in enumerate(_read_rows(path), 1):
        if not isinstance(row, dict):
            raise ReadingError(f"{path}, row {number}: a row should be an object, but is {str(row)[:60]!r}. Fix it")
        yield Record(path, f"row {number}", row)


def read_text(path: Path) -> str:
    """The text of a file, decoded like any document. Raises ReadingError."""
    try:
        return decode(path.read_bytes(), str(path))[0]
    except OSError as error:
        raise ReadingError(f"{path} could not be read: {error.strerror}. Check the path") from error


def find_files(folder: Path, *patterns: str) -> list[Path]:
    """The files that match the first pattern with a match, sorted; if `folder` is a file, that file.

    Raises ReadingError naming the patterns when nothing matches.
    """
    if folder.is_file():
        return [folder]
    for pattern in patterns:
        if paths := sorted(path for path in folder.glob(pattern) if path.is_file()):
            return paths
    any_of = " or ".join(patterns)
    raise ReadingError(f"{folder} holds no file {any_of}: give the folder of that layout, or name another layout")


def find_file(folder: Path, *patterns: str) -> Path:
    """Like `find_files`, but one file. Raises ReadingError when several match."""
    paths = find_files(folder, *patterns)
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths[:8])
        raise ReadingError(f"{folder} holds several files that fit ({names}): give the path of one instead")
    return paths[0]


def _read_rows(path: Path) -> Iterable[Any]:
    if path.suffix == ".parquet":
        return _read_parquet(path)
    text = read_text(path)
    if path.suffix in {".csv", ".tsv"}:
        return _read_csv(path, text, "\t" if path.suffix == ".tsv" else ",")
    return _read_json(path, text)


def _read_csv(path: Path, text: str, delimiter: str) -> Iterator[Any]:
    rows = csv.DictReader(StringIO(text), delimiter=delimiter)
    try:
        yield from rows
    except csv.Error as error:
        raise ReadingError(f"{path}, after line {rows.line_num}: {error}. Fix that row") from error


def _read_json(path: Path, text: str) -> list[Any]:
    try:
        value = json.loads(text)
        return value if isinstance(value, list) else [value]
    except (ValueError, RecursionError):  # ValueError also for numbers of thousands of digits
        return list(_read_json_lines(path, text))


def _read_json_lines(path: Path, text: str) -> Iterator[Any]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                reason = error.msg if isinstance(error, json.JSONDecodeError) else error
                raise ReadingError(f"{path}, line {number} is not JSON: {reason}. Fix or delete that line") from error


def _read_parquet(path: Path) -> Iterator[Any]:
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
        raise ReadingError(f"{path} is not a Parquet file that can be read: {error}. Download it again") from error
