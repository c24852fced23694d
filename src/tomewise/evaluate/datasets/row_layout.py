"""What published questions become: documents, each once, also books beside them, and items, from a row each.

A layout says which fields of a row hold what.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase

from tomewise.errors import ReadingError
from tomewise.evaluate.datasets.data_rows import Record, find_file, find_files, read_text, stream_records
from tomewise.evaluate.items import Dataset, Item, Span
from tomewise.language.fences import get_letter
from tomewise.reading.places import Marks
from tomewise.types import Document, DocumentId, Form, Question


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


_LETTERED = re.compile(r"^\s*\(?([A-Z])[.):]\s+")
_ADDED = ("answers", "correct", "supporting", "spans", "documents", "slices")  # fields of an `Item`


def _read_rows(path: Path, _corpus: Corpus) -> Iterable[Record]:
    return stream_records(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the files of a dataset are, and which fields of their rows, a question each, hold what.

    A field may have several names, one space apart; the first that a row has counts.
    """

    name: str
    files: str = ""
    """Patterns, one space apart. The first one with a match counts; unless `several`, it must match one file."""
    several: bool = False
    rows: Callable[[Path, Corpus], Iterable[Record]] = _read_rows
    """Reads a file, and adds to its rows what must be computed: fields of the names below, fields of an item, `options`
    and `instructions` of its question, and the `title` of its book."""
    id: str = "id"
    """Without one, a question has its number."""
    text: str = ""
    """The field with the text that the question is asked over, if there is one."""
    text_id: str = ""
    book: str = ""
    """The field with the name of a book beside the files that the question is asked over, if there is one."""
    question: str = "question"
    options: str = ""
    """The field with options, if there are some: then `answers` says which is right."""
    answers: str = "answer"
    form: Form | None = None
    """What answers look like; with options they are short."""
    slices: str = ""
    """Names of fields, one space apart, each of which is one."""

    def read(self, folder: Path) -> Dataset:
        """The dataset in a folder, or in a file. Raises ReadingError."""
        patterns = self.files.split()
        paths = find_files(folder, *patterns) if self.several else [find_file(folder, *patterns)]
        corpus = Corpus(folder if self.several else paths[0], folder)
        return self.make_dataset(corpus, (record for path in paths for record in self.rows(path, corpus)))

    def make_dataset(self, corpus: Corpus, rows: Iterable[Record], openie: Path | None = None) -> Dataset:
        """The dataset of these rows, and of all documents, also of those that are added while rows are read."""
        items = tuple(self._make_item(record, str(number), corpus) for number, record in enumerate(rows, 1))
        return Dataset(name=self.name, documents=corpus.documents, items=items, openie=openie)

    def _make_item(self, record: Record, number: str, corpus: Corpus) -> Item:
        id, added = record.find(self.id), record.added
        fields = {
            "slices": record.slices(self.slices.split()),
            **{name: added[name] for name in _ADDED if name in added},
        }
        if self.book:
            fields["documents"] = (corpus.add_book(record.text(self.book), title=added.get("title", "")),)
        elif self.text:
            text_id = str(record.find(self.text_id) or "")
            fields["documents"] = (corpus.add(record.text(self.text), id=text_id),)
        options = read_options(record, self.options) if self.options else added.get("options", ())
        if options and "correct" not in added:
            fields["correct"] = read_correct_letter(record, options, self.answers)
        text, instructions = record.text(self.question), added.get("instructions", "")
        if "answers" not in added:
            fields["answers"] = find_wording(options, fields["correct"]) if options else record.texts(self.answers)
        form: Form | None = "short" if options else self.form
        question = Question(text=text, options=options, instructions=instructions, form=form)
        return Item(id=number if id is None else str(id), question=question, **fields)


def read_options(record: Record, name: str) -> tuple[str, ...]:
    """The wordings of the options in order: a list, a mapping from letters, or lines that begin with letters."""
    value = record.take(name)
    if isinstance(value, dict):
        value = [wording for _, wording in sorted(value.items()) if wording is not None]
    if isinstance(value, str):
        value = value.strip().splitlines()
    if not isinstance(value, list) or not value:
        raise record.make_wrong_field_error(name, value, "a list of options, or a mapping from letters to options")
    if len(value) > len(ascii_uppercase):
        raise record.make_wrong_field_error(name, f"{len(value)} options", f"{len(ascii_uppercase)} options at most")
    return _strip_letters([str(wording).strip() for wording in value])


def read_correct_letter(record: Record, options: Sequence[str], names: str) -> str:
    """The letter of the right option. The file gives the letter, the wording, or the letter with the wording."""
    answers = record.texts(names)
    for answer in answers:
        if answer.strip() in options:
            return get_letter(options.index(answer.strip()))
    letters = [get_letter(at) for at in range(len(options))]
    for answer in answers:
        if (named := answer.strip().rstrip(".):").upper()) in letters:
            return named
        if (match := _LETTERED.match(answer)) and match.group(1) in letters:
            return match.group(1)
    raise record.make_wrong_field_error(
        names.split()[0], " / ".join(answers), f"one of the options or one of the letters {', '.join(letters)}"
    )


def find_wording(options: Sequence[str], correct: str | None) -> tuple[str, ...]:
    """The wording of the option with that letter; nothing without a letter."""
    return (options[ascii_uppercase.index(correct)],) if correct else ()


def _strip_letters(options: list[str]) -> tuple[str, ...]:
    """The options without letters in front, if each begins with its own letter; so a lone "A. Smith" stays whole."""
    matches = [_LETTERED.match(option) for option in options]
    if any(match is None or match.group(1) != get_letter(at) for at, match in enumerate(matches)):
        return tuple(options)
    return tuple(_LETTERED.sub("", option, count=1) for option in options)
