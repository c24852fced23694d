"""NarrativeQA (Kočiský et al. 2018): its own CSV files with the stories beside them, or the rows of its HF copy."""

from __future__ import annotations

from pathlib import Path

from tomewise.errors import ReadingError
from tomewise.evaluate.datasets.corpus import Books, Corpus
from tomewise.evaluate.datasets.data_rows import Record, find_files, read_records, stream_records
from tomewise.evaluate.items import Dataset, Item
from tomewise.types import Question


def read_narrativeqa(folder: Path) -> Dataset:
    """`qaps.csv`, `documents.csv` and a file `<document_id>.content` or `.txt` per story; or rows with `document.text`.

    Of the CSV files it takes the set "test", on which papers report; or every row if no row is in that set.
    """
    if folder.is_dir() and (folder / "qaps.csv").exists():
        return _read_csv(folder)
    corpus = Corpus(folder)
    paths = find_files(folder, "test*.parquet", "**/test*.parquet", "test*.json*", "*.jsonl", "*.json")
    rows = (record for path in paths for record in stream_records(path))
    items = tuple(_make_item(record, str(number), corpus) for number, record in enumerate(rows, 1))
    return Dataset(name="narrativeqa", documents=corpus.documents, items=items)


def _read_csv(folder: Path) -> Dataset:
    kinds = {record.text("document_id"): record for record in read_records(*find_files(folder, "documents.csv"))}
    rows = read_records(folder / "qaps.csv")
    chosen = [record for record in rows if record.text("set") == "test"] or rows
    corpus = Corpus(folder)
    books = Books(folder, corpus, suffixes=(".txt", ".content"))
    items = tuple(_make_csv_item(record, f"{record.source.stem}-{record.place}", kinds, books) for record in chosen)
    return Dataset(name="narrativeqa", documents=corpus.documents, items=items)


def _make_csv_item(record: Record, id: str, kinds: dict[str, Record], books: Books) -> Item:
    story = record.text("document_id")
    if story not in kinds:
        raise ReadingError(f"{record.source}, {record.place}: documents.csv has no document_id {story!r}: add its row")
    return Item(
        id=id.replace(" ", "-"),
        question=Question(text=record.text("question")),
        answers=(record.text("answer1"), record.text("answer2")),
        documents=(books.add(story),),
        slices=kinds[story].slices("kind"),
    )


def _make_item(record: Record, id: str, corpus: Corpus) -> Item:
    story = corpus.add(record.text("document.text"), id=str(record.find("document.id") or ""))
    return Item(
        id=id,
        question=Question(text=record.text("question.text", "question")),
        answers=record.texts("answers"),
        documents=(story,),
        slices=record.slices("document.kind"),
    )
