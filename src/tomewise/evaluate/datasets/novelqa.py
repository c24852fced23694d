"""NovelQA (Wang et al. 2024): multiple-choice questions on whole novels. Its gold answers are not published."""

from __future__ import annotations

from pathlib import Path

from tomewise.evaluate.datasets.answer_options import find_wording, read_correct_letter, read_options
from tomewise.evaluate.datasets.corpus import Books, Corpus
from tomewise.evaluate.datasets.data_rows import Record, find_files, read_records
from tomewise.evaluate.items import Dataset, Item
from tomewise.types import Question


def read_novelqa(folder: Path) -> Dataset:
    """A JSON file per book, as a list or as a mapping from QID, of {QID, Question, Options, Aspect, Complexity}.

    The novel is the text file of the same name. It reads `Gold` (a letter) and `Answer` (free text) where somebody
    who has them added them.
    """
    corpus = Corpus(folder)
    books = Books(folder, corpus)
    items = tuple(
        _make_item(record, path.stem, books)
        for path in find_files(folder, "Data/**/*.json", "data/**/*.json", "*.json", "**/*.json")
        for record in _read_questions(path)
    )
    return Dataset(name="novelqa", documents=corpus.documents, items=items)


def _read_questions(path: Path) -> list[Record]:
    rows = read_records(path)
    if len(rows) != 1 or "Question" in rows[0].values:
        return rows
    whole = rows[0]
    return [
        whole.make_inner(qid, {"QID": qid, **part} if isinstance(part, dict) else part)
        for qid, part in whole.values.items()
    ]


def _make_item(record: Record, book: str, books: Books) -> Item:
    options = read_options(record, "Options")
    correct = read_correct_letter(record, options, "Gold", "Answer") if record.find("Gold", "Answer") else None
    free = record.texts("Answer") if record.find("Gold") and record.find("Answer") else ()
    return Item(
        id=f"{book}/{record.text('QID')}",
        question=Question(text=record.text("Question"), options=options),
        answers=free or ((find_wording(options, correct),) if correct else ()),
        correct=correct,
        documents=(books.add(book),),
        slices=record.slices("Aspect") | {"complexity": record.text("Complexity", "Complex")},
    )
