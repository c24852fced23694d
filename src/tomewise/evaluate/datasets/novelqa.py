"""NovelQA (Wang et al. 2024): multiple-choice questions on whole novels. Its gold answers are not published."""

from __future__ import annotations

from pathlib import Path

from tomewise.evaluate.datasets.answer_options import correct_of, find_wording, options_of
from tomewise.evaluate.datasets.data_rows import Record, files, records
from tomewise.evaluate.datasets.document_set import Books, Shelf
from tomewise.evaluate.items import Dataset, Item
from tomewise.types import Question


def read_novelqa(folder: Path) -> Dataset:
    """A JSON file per book, as a list or as a mapping from QID, of {QID, Question, Options, Aspect, Complexity}.

    The novel is the text file of the same name. It reads `Gold` (a letter) and `Answer` (free text) where somebody
    who has them added them.
    """
    shelf = Shelf(folder)
    books = Books(folder, shelf)
    items = tuple(
        _item(record, path.stem, books)
        for path in files(folder, "Data/**/*.json", "data/**/*.json", "*.json", "**/*.json")
        for record in _questions(path)
    )
    return Dataset(name="novelqa", documents=shelf.documents, items=items)


def _questions(path: Path) -> list[Record]:
    rows = records(path)
    if len(rows) != 1 or "Question" in rows[0].values:
        return rows
    whole = rows[0]
    return [
        whole.inside(qid, {"QID": qid, **part} if isinstance(part, dict) else part)
        for qid, part in whole.values.items()
    ]


def _item(record: Record, book: str, books: Books) -> Item:
    options = options_of(record, "Options")
    correct = correct_of(record, options, "Gold", "Answer") if record.find("Gold", "Answer") else None
    free = record.texts("Answer") if record.find("Gold") and record.find("Answer") else ()
    return Item(
        id=f"{book}/{record.text('QID')}",
        question=Question(text=record.text("Question"), options=options),
        answers=free or ((find_wording(options, correct),) if correct else ()),
        correct=correct,
        documents=(books.document(book),),
        slices=record.slices("Aspect") | {"complexity": record.text("Complexity", "Complex")},
    )
