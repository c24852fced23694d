"""NQ, PopQA, MuSiQue, 2WikiMultiHopQA and HotpotQA as HippoRAG (Gutiérrez et al. 2024, 2025) publishes them."""

from __future__ import annotations

import json
from pathlib import Path

from tomewise.evaluate.datasets.corpus import Corpus
from tomewise.evaluate.datasets.data_rows import Record, find_file, read_records
from tomewise.evaluate.datasets.multihop import read_gold_passages, read_hops
from tomewise.evaluate.items import Dataset, Item
from tomewise.types import Question


def read_hipporag(folder: Path, name: str = "") -> Dataset:
    """`NAME.json` and `NAME_corpus.json` [{title, text, idx?}], where NAME begins with `name`.

    Gold passages come from `supporting_facts` with `context`, from `contexts`, or from `paragraphs`. The reader finds
    them in the corpus by title and text, whatever their white space. Answers come from `answer`, `gold_ans`,
    `reference` or `obj` with `possible_answers` and `o_aliases`, and from `answer_aliases`. Raises ReadingError for
    gold outside the corpus.
    """
    corpus_file = find_file(folder, f"{name}*_corpus.json")
    stem = corpus_file.name.removesuffix("_corpus.json")
    corpus = Corpus(corpus_file)
    ids: dict[tuple[str, str], str] = {}
    for number, record in enumerate(read_records(corpus_file)):
        title, text = record.text("title"), record.text("text", "paragraph_text")
        idx = record.find("idx")
        ids.setdefault(_make_key(title, text), corpus.add(text, title=title, id=str(number if idx is None else idx)))
    rows = read_records(find_file(corpus_file.parent, f"{stem}.json"))
    items = tuple(_make_item(record, str(number), ids) for number, record in enumerate(rows, 1))
    return Dataset(name=stem, documents=corpus.documents, items=items)


def _make_item(record: Record, number: str, ids: dict[tuple[str, str], str]) -> Item:
    gold = read_gold_passages(record)
    for title, text in gold:
        if _make_key(title, text) not in ids:
            raise record.make_error(
                f"the gold passage {title!r} is not in the corpus: give the corpus of this question file"
            )
    return Item(
        id=str(record.find("id", "_id") or number),
        question=Question(text=record.text("question")),
        answers=_read_answers(record),
        supporting=tuple(dict.fromkeys(ids[_make_key(title, text)] for title, text in gold)),
        slices=record.slices("type", "level") | read_hops(record),
    )


def _read_answers(record: Record) -> tuple[str, ...]:
    texts = record.texts("answer", "gold_ans", "reference", "obj")
    for name in ("possible_answers", "o_aliases", "answer_aliases"):
        if record.find(name) is not None:
            texts += tuple(alias for text in record.texts(name) for alias in _parse_aliases(record, name, text))
    return tuple(dict.fromkeys(texts))


def _parse_aliases(record: Record, name: str, text: str) -> list[str]:
    """The aliases in a text; PopQA writes a list of aliases as JSON inside a text."""
    if not (text.startswith('["') and text.endswith('"]')):
        return [text]
    try:
        return [str(alias) for alias in json.loads(text)]
    except json.JSONDecodeError as error:
        raise record.make_wrong_field_error(name, text, "a list of texts in JSON") from error


def _make_key(title: str, text: str) -> tuple[str, str]:
    return "".join(title.split()), "".join(text.split())
