"""The documents of a dataset, each once, also books that lie beside it as text files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tomewise.errors import ReadingError
from tomewise.evaluate.datasets.data_rows import read_text
from tomewise.evaluate.items import Span
from tomewise.reading.places import Marks
from tomewise.types import Document, DocumentId


class Corpus:
    """Documents in the order in which they were added. An equal title and text is the same document.

    `books` is the folder of text files beside a
    dataset that publishes only questions. The stem of a file name is the name of the book. So is the part before the
    first hyphen, as the number in `87-The Title.txt`.
    """

    def __init__(self, source: Path, books: Path | None = None, *, suffixes: tuple[str, ...] = (".txt",)) -> None:
        self._source = source
        self._documents: dict[DocumentId, Document] = {}
        self._ids: dict[tuple[str, str], DocumentId] = {}
        books = books or source
        self._folder = books if books.is_dir() else books.parent
        self._suffixes = suffixes
        self._paths: dict[str, Path] | None = None

    @property
    def documents(self) -> tuple[Document, ...]:
        """All documents that were added."""
        return tuple(self._documents.values())

    def add(self, text: str, *, title: str = "", id: str = "", marks: Marks = ()) -> DocumentId:
        """Add a document and return its id: `id`, or the number of documents before it.

        Raises ReadingError for a second text with the same id.
        """
        if not id and (title, text) in self._ids:
            return self._ids[title, text]
        id = id or str(len(self._documents))
        document = Document(id=id, title=title, text=text, source=str(self._source), marks=marks)
        if self._documents.setdefault(id, document) != document:
            raise ReadingError(f"{self._source}: two documents have the id {id!r}: give each its own")
        self._ids.setdefault((title, text), id)
        return id

    def add_book(self, name: str, *, title: str = "") -> DocumentId:
        """Add the book of that name, once, and return its id. Raises ReadingError without a text."""
        if not self.has(name):
            self.add(read_text(self._find_book(name)), id=name, title=title)
        return name

    def text(self, id: DocumentId) -> str:
        return self._documents[id].text

    def has(self, id: DocumentId) -> bool:
        return id in self._documents

    def find_spans(self, id: DocumentId, quotes: Sequence[str]) -> tuple[Span, ...]:
        """Where quotes are in a document, whatever their white space.

        Empty if one quote is missing, since a part of the gold misleads.
        """
        matches = [_find_quote(quote, self.text(id)) for quote in quotes]
        spans = tuple(Span(document=id, start=match[0], end=match[1]) for match in matches if match is not None)
        return spans if len(spans) == len(quotes) else ()

    def _find_book(self, name: str) -> Path:
        if self._paths is None:
            paths = sorted(path for path in self._folder.rglob("*") if path.suffix in self._suffixes)
            self._paths = {path.stem.split("-", 1)[0]: path for path in reversed(paths)}
            self._paths |= {path.stem: path for path in reversed(paths)}
        if name in self._paths:
            return self._paths[name]
        message = f"the text of {name!r} is not under {self._folder}: put it there as {name}{self._suffixes[0]}"
        raise ReadingError(message)


def _find_quote(quote: str, text: str) -> tuple[int, int] | None:
    start = text.find(quote) if quote.strip() else -1
    if start >= 0:
        return start, start + len(quote)
    match = re.search(r"\s+".join(map(re.escape, quote.split())), text) if quote.strip() else None
    return match.span() if match else None
