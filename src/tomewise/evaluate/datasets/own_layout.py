"""Our own layout: a folder with `corpus.jsonl`, `questions.jsonl` and optionally `openie.jsonl`."""

from __future__ import annotations

from pathlib import Path

from tomewise.evaluate.datasets.answer_options import find_wording, read_correct_letter, read_options
from tomewise.evaluate.datasets.corpus import Corpus
from tomewise.evaluate.datasets.data_rows import Record, find_files, read_records
from tomewise.evaluate.items import Dataset, Item
from tomewise.types import Question

_KNOWN = frozenset({"id", "question", "answers", "options", "correct", "supporting"})


def read_plain(folder: Path) -> Dataset:
    """`corpus.jsonl` {id, title?, text}; `questions.jsonl` {id, question, answers, options?, correct?, supporting?}.

    Ids are compared as text. `correct` (a letter or a wording) may replace `answers`. Other keys with text or whole
    numbers are slices.
    """
    (corpus_file,), (questions,) = find_files(folder, "corpus.jsonl"), find_files(folder, "questions.jsonl")
    corpus = Corpus(corpus_file)
    for record in read_records(corpus_file):
        corpus.add(record.text("text"), title=str(record.find("title") or ""), id=record.text("id"))
    openie = folder / "openie.jsonl"
    items = map(_make_item, read_records(questions))
    return corpus.make_dataset(folder.resolve().name, items, openie if openie.is_file() else None)


def _make_item(record: Record) -> Item:
    options = read_options(record, "options") if record.find("options") else ()
    correct = read_correct_letter(record, options, "correct", "answers") if options else None
    has_answers = record.find("answers") is not None or correct is None
    return Item(
        id=record.text("id"),
        question=Question(text=record.text("question"), options=options),
        answers=record.texts("answers") if has_answers else (find_wording(options, str(correct)),),
        correct=correct,
        supporting=record.texts("supporting") if record.find("supporting") is not None else (),
        slices=record.slices(*(key for key in record.values if key not in _KNOWN)),
    )
