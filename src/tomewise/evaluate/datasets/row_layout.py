"""One reader of published questions, a row each: a layout says which fields hold what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase

from tomewise.evaluate.datasets.corpus import Corpus
from tomewise.evaluate.datasets.data_rows import Record, find_file, find_files, stream_records
from tomewise.evaluate.items import Dataset, Item
from tomewise.language.fences import get_letter
from tomewise.types import Question

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
    files: tuple[str, ...] = ()
    """Patterns. The first one with a match counts; unless `several`, it must match one file."""
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
    slices: tuple[str, ...] = ()

    def read(self, folder: Path) -> Dataset:
        """The dataset in a folder, or in a file. Raises ReadingError."""
        paths = find_files(folder, *self.files) if self.several else [find_file(folder, *self.files)]
        corpus = Corpus(folder if self.several else paths[0], folder)
        return self.make_dataset(corpus, (record for path in paths for record in self.rows(path, corpus)))

    def make_dataset(self, corpus: Corpus, rows: Iterable[Record], openie: Path | None = None) -> Dataset:
        """The dataset of these rows, and of all documents, also of those that are added while rows are read."""
        items = tuple(self._make_item(record, str(number), corpus) for number, record in enumerate(rows, 1))
        return Dataset(name=self.name, documents=corpus.documents, items=items, openie=openie)

    def _make_item(self, record: Record, number: str, corpus: Corpus) -> Item:
        id, added, answers = record.find(*self.id.split()), record.added, self.answers.split()
        fields = {"slices": record.slices(*self.slices), **{name: added[name] for name in _ADDED if name in added}}
        if self.book:
            fields["documents"] = (corpus.add_book(record.text(self.book), title=added.get("title", "")),)
        elif self.text:
            text_id = str(record.find(*self.text_id.split()) or "")
            fields["documents"] = (corpus.add(record.text(self.text), id=text_id),)
        options = read_options(record, self.options) if self.options else added.get("options", ())
        if options and "correct" not in added:
            fields["correct"] = read_correct_letter(record, options, *answers)
        text, instructions = record.text(*self.question.split()), added.get("instructions", "")
        if "answers" not in added:
            fields["answers"] = find_wording(options, fields["correct"]) if options else record.texts(*answers)
        question = Question(text=text, options=options, instructions=instructions)
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


def read_correct_letter(record: Record, options: Sequence[str], *names: str) -> str:
    """The letter of the right option. The file gives the letter, the wording, or the letter with the wording."""
    answers = record.texts(*names)
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
        names[0], " / ".join(answers), f"one of the options or one of the letters {', '.join(letters)}"
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
