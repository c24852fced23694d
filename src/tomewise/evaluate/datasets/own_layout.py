"""Our own layout: a folder with `corpus.jsonl`, `questions.jsonl` and optionally `openie.jsonl`."""

from __future__ import annotations

from pathlib import Path

from tomewise.evaluate.datasets.answer_options import correct_of, find_wording, options_of
from tomewise.evaluate.datasets.data_rows import Record, files, records
from tomewise.evaluate.datasets.document_set import Shelf
from tomewise.evaluate.items import Dataset, Item
from tomewise.types import Question

_KNOWN = frozenset({"id", "question", "answers", "options", "correct", "supporting"})


def read_plain(folder: Path) -> Dataset:
    """`corpus.jsonl` {id, title?, text}; `questions.jsonl` {id, question, answers, options?, correct?, supporting?}.

    Ids are compared as text. `correct` (a letter or a wording) may replace `answers`. Other keys with text or whole
    numbers are slices.
    """
    (corpus,), (questions,) = files(folder, "corpus.jsonl"), files(folder, "questions.jsonl")
    shelf = Shelf(corpus)
    for record in records(corpus):
        shelf.add(record.text("text"), title=str(record.find("title") or ""), id=record.text("id"))
    openie = folder / "openie.jsonl"
    return Dataset(
        name=folder.resolve().name,
        documents=shelf.documents,
        items=tuple(map(_item, records(questions))),
        openie=openie if openie.is_file() else None,
    )


def _item(record: Record) -> Item:
    options = options_of(record, "options") if record.find("options") else ()
    correct = correct_of(record, options, "correct", "answers") if options else None
    has_answers = record.find("answers") is not None or correct is None
    return Item(
        id=record.text("id"),
        question=Question(text=record.text("question"), options=options),
        answers=record.texts("answers") if has_answers else (find_wording(options, str(correct)),),
        correct=correct,
        supporting=record.texts("supporting") if record.find("supporting") is not None else (),
        slices=record.slices(*(key for key in record.values if key not in _KNOWN)),
    )
