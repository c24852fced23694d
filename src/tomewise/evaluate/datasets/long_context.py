"""Benchmarks whose rows hold a question and its own long text: InfiniteBench, LongBench v2, HELMET."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tomewise.evaluate.datasets.answer_options import find_wording, read_correct_letter, read_options
from tomewise.evaluate.datasets.corpus import Corpus
from tomewise.evaluate.datasets.data_rows import Record, find_file, read_records
from tomewise.evaluate.items import Dataset, Item
from tomewise.types import Question


def read_infinitebench_qa(folder: Path) -> Dataset:
    """EN.QA of InfiniteBench (Zhang et al. 2024): `longbook_qa_eng.jsonl` {id, context, input, answer}."""
    path = find_file(folder, "longbook_qa_eng*", "**/longbook_qa_eng*")
    return _read("infinitebench-qa", path, read_records(path), _make_open_item)


def read_infinitebench_mc(folder: Path) -> Dataset:
    """EN.MC of InfiniteBench: `longbook_choice_eng.jsonl` {id, context, input, answer, options}.

    The published answer is the wording of an option; the item has its letter.
    """
    path = find_file(folder, "longbook_choice_eng*", "**/longbook_choice_eng*")
    return _read("infinitebench-mc", path, read_records(path), _make_choice_item)


def read_longbench(folder: Path) -> Dataset:
    """LongBench v2 (Bai et al. 2025): rows {_id, question, choice_A to choice_D, answer, context, domain, length}."""
    path = find_file(folder, "data.json", "*.json", "*.jsonl", "*.parquet")
    return _read("longbench-v2", path, read_records(path), _make_longbench_item)


def read_helmet(folder: Path) -> Dataset:
    """A long-document question answering task of HELMET (Yen et al. 2025), exported as JSON, JSON Lines or Parquet.

    Rows {context, question, answer, options?}, in the file or in its field `data`. With options, as in
    infbench_choice_eng, `answer` holds the letter. HELMET has truncated the texts.
    """
    path = find_file(folder, "*.jsonl", "*.json", "*.parquet")
    rows = read_records(path)
    if len(rows) == 1 and rows[0].find("data") is not None:
        rows = rows[0].rows("data")
    return _read("helmet", path, rows, _make_choice_item if rows and rows[0].find("options") else _make_open_item)


def _read(name: str, path: Path, rows: list[Record], item: Callable[[Record, str, str], Item]) -> Dataset:
    corpus = Corpus(path)
    items: list[Item] = []
    for number, record in enumerate(rows, 1):
        id = record.find("id", "_id")  # InfiniteBench counts from 0
        items.append(item(record, str(number if id is None else id), corpus.add(record.text("context"))))
    return corpus.make_dataset(name, items)


def _make_open_item(record: Record, id: str, document: str) -> Item:
    question = Question(text=record.text("input", "question"))
    return Item(id=id, question=question, answers=record.texts("answer", "answers"), documents=(document,))


def _make_choice_item(record: Record, id: str, document: str) -> Item:
    options = read_options(record, "options")
    correct = read_correct_letter(record, options, "answer", "answers")
    return Item(
        id=id,
        question=Question(text=record.text("input", "question"), options=options),
        answers=(find_wording(options, correct),),
        correct=correct,
        documents=(document,),
    )


def _make_longbench_item(record: Record, id: str, document: str) -> Item:
    options = tuple(record.text(f"choice_{label}") for label in "ABCD")
    correct = read_correct_letter(record, options, "answer")
    return Item(
        id=id,
        question=Question(text=record.text("question"), options=options),
        answers=(find_wording(options, correct),),
        correct=correct,
        documents=(document,),
        slices=record.slices("domain", "sub_domain", "difficulty", "length"),
    )
