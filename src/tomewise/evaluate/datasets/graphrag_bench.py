"""GraphRAG-Bench (Xiang et al. 2025): questions of four types on novels and on medical guidelines."""

from __future__ import annotations

from pathlib import Path

from tomewise.evaluate.datasets.corpus import Corpus
from tomewise.evaluate.datasets.data_rows import Record, find_files, read_records
from tomewise.evaluate.items import Dataset, Item
from tomewise.types import Question


def read_graphrag_bench(folder: Path) -> Dataset:
    """`Corpus/*.json` {corpus_name, context} and `Questions/*.json` {id, source, question, answer, question_type, ...}.

    Sources share ids, so the id of an item holds source and id. `evidence` becomes spans if its source contains all of
    it word for word. Raises ReadingError for a source without a corpus.
    """
    corpus = Corpus(folder)
    corpora = find_files(folder, "Datasets/Corpus/*.json", "Corpus/*.json", "*corpus*.json")
    for record in (record for path in corpora for record in read_records(path)):
        name = record.text("corpus_name", "source", "id")
        corpus.add(record.text("context", "text"), id=name)
    questions = find_files(folder, "Datasets/Questions/*.json", "Questions/*.json", "*question*.json")
    rows = [record for path in questions for record in read_records(path)]
    return corpus.make_dataset("graphrag-bench", (_make_item(record, corpus) for record in rows))


def _make_item(record: Record, corpus: Corpus) -> Item:
    source = record.text("source")
    if not corpus.has(source):
        raise record.make_error(f"no corpus has the corpus_name {source!r}: add that corpus")
    evidence = list(record.texts("evidence")) if record.find("evidence") else []
    return Item(
        id=f"{source}/{record.text('id')}",
        question=Question(text=record.text("question")),
        answers=record.texts("answer", "ground_truth"),
        spans=corpus.find_spans(source, evidence),
        documents=(source,),
        slices={"type": record.text("question_type"), "source": source},
    )
