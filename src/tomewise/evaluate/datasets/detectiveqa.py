"""DetectiveQA (Xu et al. 2024): questions on detective novels, with the paragraphs that hold the clues."""

from __future__ import annotations

import re
from pathlib import Path

from tomewise.evaluate.datasets.answer_options import find_wording, read_correct_letter, read_options
from tomewise.evaluate.datasets.corpus import Books, Corpus
from tomewise.evaluate.datasets.data_rows import Record, find_files, read_records
from tomewise.evaluate.items import Dataset, Item, Span
from tomewise.types import Question

_PARAGRAPH = re.compile(r"^\[(\d+)\]\s*", re.MULTILINE)


def read_detectiveqa(folder: Path, language: str) -> Dataset:
    """`anno_data_LANGUAGE/*/*.json` {novel_id, questions: [...]} and the novels `novel_data_LANGUAGE/<novel_id>-*.txt`.

    A question is {question, options, answer, clue_position?}. Novels number their paragraphs ("[12] ..."), and
    `clue_position` lists such numbers: they become spans if the novel has all of them (-1 means no clue).
    """
    corpus = Corpus(folder)
    novels = folder / f"novel_data_{language}"
    books = Books(novels if novels.is_dir() else folder, corpus)
    items = tuple(
        _make_item(question, f"{path.parent.name}/{novel.text('novel_id')}/{number}", novel, books, corpus)
        for path in find_files(folder, f"anno_data_{language}/*/*.json", "*_anno/*.json", "*.json")
        for novel in read_records(path)
        for number, question in enumerate(novel.rows("questions"), 1)
    )
    return Dataset(name="detectiveqa", documents=corpus.documents, items=items)


def _make_item(record: Record, id: str, novel: Record, books: Books, corpus: Corpus) -> Item:
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
