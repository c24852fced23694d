"""Read the files of MuSiQue, HotpotQA and 2WikiMultiHopQA as their authors publish them.

The corpus holds the passages of all questions, each once, as in HippoRAG and later papers.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tomewise.evaluate.datasets.corpus import Corpus
from tomewise.evaluate.datasets.data_rows import Record, find_file, read_records
from tomewise.evaluate.items import Dataset, Item
from tomewise.types import Question

TitledText = tuple[str, str]  # the title and the text of a passage


def read_multihop(folder: Path, name: str) -> Dataset:
    """The dataset in a folder: rows {id or _id, question, answer, answer_aliases?} with the passages of each question.

    MuSiQue (Trivedi et al. 2022) has `paragraphs` [{title, paragraph_text, is_supporting}]. HotpotQA (Yang et al. 2018)
    and 2WikiMultiHopQA (Ho et al. 2020) have `context` [[title, sentences]] and `supporting_facts` [[title, sentence
    number]]. The copies on Hugging Face have mappings of lists in place of these lists of pairs.
    """
    path = find_file(folder, "*dev*.json*", "*validation*.parquet", "*.jsonl", "*.json", "*.parquet")
    corpus = Corpus(path)
    items = tuple(_make_item(record, corpus) for record in read_records(path))
    return Dataset(name=name, documents=corpus.documents, items=items)


def read_gold_passages(record: Record) -> list[TitledText]:
    """The titles and texts of a question's gold passages. Raises ReadingError for a question without passages."""
    return [passage for passage, gold in read_passages(record) if gold]


def read_passages(record: Record) -> list[tuple[TitledText, bool]]:
    """Every passage of a question, and whether it is gold.

    Without `supporting_facts`, a passage is gold unless its `is_supporting` is false.
    """
    if record.find("supporting_facts") is not None:
        gold_titles = set(_read_gold_titles(record, record.take("supporting_facts")))
        return [((title, text), title in gold_titles) for title, text in _read_context(record)]
    rows = record.rows("paragraphs", "contexts", "supporting_facts")
    return [
        ((row.text("title"), row.text("text", "paragraph_text")), row.find("is_supporting") is not False)
        for row in rows
    ]


def read_hops(record: Record) -> dict[str, str | int]:
    """The slice of a question by its number of hops, from MuSiQue's id or else from the decomposition; maybe empty."""
    match = re.match(r"(\d)hop", str(record.find("id") or ""))
    decomposition = record.find("question_decomposition")
    if match:
        return {"hops": int(match.group(1))}
    return {"hops": len(decomposition)} if isinstance(decomposition, list) else {}


def _make_item(record: Record, corpus: Corpus) -> Item:
    ids = [(corpus.add(text, title=title), gold) for (title, text), gold in read_passages(record)]
    aliases = record.texts("answer_aliases") if record.find("answer_aliases") else ()
    return Item(
        id=record.text("id", "_id"),
        question=Question(text=record.text("question")),
        answers=tuple(dict.fromkeys((*record.texts("answer"), *aliases))),
        supporting=tuple(dict.fromkeys(id for id, gold in ids if gold)),
        slices=record.slices("type", "level") | read_hops(record),
    )


def _read_gold_titles(record: Record, facts: Any) -> list[str]:
    if isinstance(facts, dict) and isinstance(facts.get("title"), list):
        return [str(title) for title in facts["title"]]
    if isinstance(facts, list) and all(isinstance(fact, list) and fact for fact in facts):
        return [str(fact[0]) for fact in facts]
    raise record.make_wrong_field_error("supporting_facts", facts, "a list of [title, sentence number]")


def _read_context(record: Record) -> list[TitledText]:
    context = record.take("context")
    if isinstance(context, dict) and {"title", "sentences"} <= set(context):
        context = list(zip(context["title"], context["sentences"], strict=True))
    if not isinstance(context, list) or not all(isinstance(part, list | tuple) and len(part) == 2 for part in context):
        raise record.make_wrong_field_error("context", context, "a list of [title, sentences]")
    return [(str(title), _join_sentences(sentences)) for title, sentences in context]


def _join_sentences(sentences: Any) -> str:
    """The text of a passage, with one space between sentences.

    Sentences of HotpotQA begin with a space, those of 2WikiMultiHopQA do not.
    """
    parts = [sentences] if isinstance(sentences, str) else [str(sentence) for sentence in sentences]
    return re.sub(r"[ \t]+", " ", " ".join(parts)).strip()
