"""Questions on whole novels and stories: NarrativeQA, DetectiveQA, NovelQA. The books lie beside the questions."""

from __future__ import annotations

import re
from pathlib import Path

from tomewise.errors import ReadingError
from tomewise.evaluate.datasets.answer_options import find_wording, read_correct_letter, read_options
from tomewise.evaluate.datasets.corpus import Books, Corpus
from tomewise.evaluate.datasets.data_rows import Record, find_files, read_records, stream_records
from tomewise.evaluate.items import Dataset, Item, Span
from tomewise.types import Question

_PARAGRAPH = re.compile(r"^\[(\d+)\]\s*", re.MULTILINE)


def read_narrativeqa(folder: Path) -> Dataset:
    """`qaps.csv`, `documents.csv` and a file `<document_id>.content` or `.txt` per story; or rows with `document.text`.

    Of the CSV files it takes the set "test", on which papers report; or every row if no row is in that set.
    """
    if folder.is_dir() and (folder / "qaps.csv").exists():
        return _read_csv_files(folder)
    corpus = Corpus(folder)
    paths = find_files(folder, "test*.parquet", "**/test*.parquet", "test*.json*", "*.jsonl", "*.json")
    rows = (record for path in paths for record in stream_records(path))
    return corpus.make_dataset(
        "narrativeqa", (_make_row_item(record, str(number), corpus) for number, record in enumerate(rows, 1))
    )


def _read_csv_files(folder: Path) -> Dataset:
    kinds = {record.text("document_id"): record for record in read_records(*find_files(folder, "documents.csv"))}
    rows = read_records(folder / "qaps.csv")
    chosen = [record for record in rows if record.text("set") == "test"] or rows
    corpus = Corpus(folder)
    books = Books(folder, corpus, suffixes=(".txt", ".content"))
    return corpus.make_dataset(
        "narrativeqa",
        (_make_csv_item(record, f"{record.source.stem}-{record.place}", kinds, books) for record in chosen),
    )


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


def _make_row_item(record: Record, id: str, corpus: Corpus) -> Item:
    story = corpus.add(record.text("document.text"), id=str(record.find("document.id") or ""))
    return Item(
        id=id,
        question=Question(text=record.text("question.text", "question")),
        answers=record.texts("answers"),
        documents=(story,),
        slices=record.slices("document.kind"),
    )


def read_detectiveqa(folder: Path, language: str) -> Dataset:
    """`anno_data_LANGUAGE/*/*.json` {novel_id, questions: [...]} and the novels `novel_data_LANGUAGE/<novel_id>-*.txt`.

    A question is {question, options, answer, clue_position?}. Novels number their paragraphs ("[12] ..."), and
    `clue_position` lists such numbers: they become spans if the novel has all of them (-1 means no clue).
    """
    corpus = Corpus(folder)
    novels = folder / f"novel_data_{language}"
    books = Books(novels if novels.is_dir() else folder, corpus)
    return corpus.make_dataset(
        "detectiveqa",
        (
            _make_detective_item(
                question, f"{path.parent.name}/{novel.text('novel_id')}/{number}", novel, books, corpus
            )
            for path in find_files(folder, f"anno_data_{language}/*/*.json", "*_anno/*.json", "*.json")
            for novel in read_records(path)
            for number, question in enumerate(novel.rows("questions"), 1)
        ),
    )


def _make_detective_item(record: Record, id: str, novel: Record, books: Books, corpus: Corpus) -> Item:
    options = read_options(record, "options")
    correct = read_correct_letter(record, options, "answer")
    document = books.add(novel.text("novel_id"))
    clues = record.find("clue_position", "clue_positions")
    return Item(
        id=id,
        question=Question(text=record.text("question").strip(), options=options),
        answers=(find_wording(options, correct),),
        correct=correct,
        spans=_find_clues(document, corpus.text(document), clues if isinstance(clues, list) else []),
        documents=(document,),
    )


def _find_clues(document: str, text: str, positions: list[object]) -> tuple[Span, ...]:
    numbers = [str(position) for position in dict.fromkeys(positions) if str(position) != "-1"]
    marks = list(_PARAGRAPH.finditer(text)) if numbers else []
    ends = [*(match.start() for match in marks[1:]), len(text)]
    places = {match.group(1): (match.end(), end) for match, end in zip(marks, ends, strict=False)}
    if not all(number in places for number in numbers):
        return ()
    return tuple(Span(document=document, start=places[number][0], end=places[number][1]) for number in numbers)


def read_novelqa(folder: Path) -> Dataset:
    """A JSON file per book, as a list or as a mapping from QID, of {QID, Question, Options, Aspect, Complexity}.

    The novel is the text file of the same name. It reads `Gold` (a letter) and `Answer` (free text) where somebody
    who has them added them.
    """
    corpus = Corpus(folder)
    books = Books(folder, corpus)
    return corpus.make_dataset(
        "novelqa",
        (
            _make_novel_item(record, path.stem, books)
            for path in find_files(folder, "Data/**/*.json", "data/**/*.json", "*.json", "**/*.json")
            for record in _read_questions(path)
        ),
    )


def _read_questions(path: Path) -> list[Record]:
    rows = read_records(path)
    if len(rows) != 1 or "Question" in rows[0].values:
        return rows
    whole = rows[0]
    return [
        whole.make_inner(qid, {"QID": qid, **part} if isinstance(part, dict) else part)
        for qid, part in whole.values.items()
    ]


def _make_novel_item(record: Record, book: str, books: Books) -> Item:
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
