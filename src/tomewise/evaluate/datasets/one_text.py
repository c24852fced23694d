"""Questions and claims on one text each: on a long text in the row of the question, or on a book beside the questions.

A claim is a question with two options, the positive label first, so that A is the positive class.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from tomewise.evaluate.datasets.data_rows import Record, find_file, find_files, read_records
from tomewise.evaluate.datasets.row_layout import Corpus, Layout, read_correct_letter, read_options
from tomewise.evaluate.items import Dataset, Span

# ---------------------------------------------------------------- a text in each row


_INFINITEBENCH_QA = Layout(
    name="infinitebench-qa",
    files="longbook_qa_eng* **/longbook_qa_eng*",
    id="id _id",
    text="context",
    question="input question",
    answers="answer answers",
    form="short",
)
"""EN.QA of InfiniteBench (Zhang et al. 2024): `longbook_qa_eng.jsonl` {id, context, input, answer}."""

_INFINITEBENCH_MC = replace(
    _INFINITEBENCH_QA,
    name="infinitebench-mc",
    files="longbook_choice_eng* **/longbook_choice_eng*",
    options="options",
)
"""EN.MC of InfiniteBench: `longbook_choice_eng.jsonl` {id, context, input, answer, options}.

The published answer is the wording of an option; the item has its letter.
"""


def _read_helmet(folder: Path) -> Dataset:
    """A long-document question answering task of HELMET (Yen et al. 2025), exported as JSON, JSON Lines or Parquet.

    Rows {context, question, answer, options?}, in the file or in its field `data`. With options, as in
    infbench_choice_eng, `answer` holds the letter. HELMET has truncated the texts.
    """
    path = find_file(folder, "*.jsonl", "*.json", "*.parquet")
    rows = read_records(path)
    if len(rows) == 1 and rows[0].find("data") is not None:
        rows = rows[0].rows("data")
    layout = _INFINITEBENCH_MC if rows and rows[0].find("options") else _INFINITEBENCH_QA
    return replace(layout, name="helmet").make_dataset(Corpus(path), rows)


def _read_longbench(path: Path, _corpus: Corpus) -> Iterator[Record]:
    for record in read_records(path):
        yield record.add(options=tuple(record.text(f"choice_{label}") for label in "ABCD"))


_LONGBENCH = Layout(
    name="longbench-v2",
    files="data.json *.json *.jsonl *.parquet",
    rows=_read_longbench,
    id="id _id",
    text="context",
    slices="domain sub_domain difficulty length",
)
"""LongBench v2 (Bai et al. 2025): rows {_id, question, choice_A to choice_D, answer, context, domain, length}."""


# ---------------------------------------------------------------- novels and stories


_NARRATIVEQA = Layout(
    name="narrativeqa",
    files="test*.parquet **/test*.parquet test*.json* *.jsonl *.json",
    several=True,
    id="",
    text="document.text",
    text_id="document.id",
    question="question.text question",
    answers="answers",
    form="short",
    slices="document.kind",
)


def _read_narrativeqa(folder: Path) -> Dataset:
    """`qaps.csv`, `documents.csv` and a file `<document_id>.content` or `.txt` per story; or rows with `document.text`.

    Of the CSV files it takes the set "test", on which papers report; or every row if no row is in that set.
    """
    if not folder.is_dir() or not (folder / "qaps.csv").exists():
        return _NARRATIVEQA.read(folder)
    layout = Layout(name="narrativeqa", book="document_id", form="short", slices="kind")
    return layout.make_dataset(Corpus(folder, suffixes=(".txt", ".content")), _read_tables(folder))


def _read_tables(folder: Path) -> Iterator[Record]:
    stories = {record.text("document_id"): record for record in read_records(*find_files(folder, "documents.csv"))}
    rows = read_records(folder / "qaps.csv")
    for record in [record for record in rows if record.text("set") == "test"] or rows:
        story = record.text("document_id")
        if story not in stories:
            raise record.make_error(f"documents.csv has no document_id {story!r}: add its row")
        yield record.add(
            id=f"{record.source.stem}-{record.place}".replace(" ", "-"),
            answers=(record.text("answer1"), record.text("answer2")),
            kind=stories[story].find("kind"),
        )


def _read_detectiveqa(folder: Path, language: str) -> Dataset:
    """`anno_data_LANGUAGE/*/*.json` {novel_id, questions: [...]} and the novels `novel_data_LANGUAGE/<novel_id>-*.txt`.

    A question is {question, options, answer, clue_position?}. Novels number their paragraphs ("[12] ..."), and
    `clue_position` lists such numbers: they become spans if the novel has all of them (-1 means no clue).
    """
    novels = folder / f"novel_data_{language}"
    corpus = Corpus(folder, novels if novels.is_dir() else folder)
    paths = find_files(folder, f"anno_data_{language}/*/*.json", "*_anno/*.json", "*.json")
    rows = (record for path in paths for record in _read_detective_questions(path, corpus))
    return Layout(name="detectiveqa", options="options").make_dataset(corpus, rows)


def _read_detective_questions(path: Path, corpus: Corpus) -> Iterator[Record]:
    for novel in read_records(path):
        for number, question in enumerate(novel.rows("questions"), 1):
            book = corpus.add_book(novel.text("novel_id"))
            clues = question.find("clue_position clue_positions")
            yield question.add(
                id=f"{path.parent.name}/{book}/{number}",
                question=question.text("question").strip(),
                spans=_find_clues(book, corpus.text(book), clues if isinstance(clues, list) else []),
                documents=(book,),
            )


_PARAGRAPH = re.compile(r"^\[(\d+)\]\s*", re.MULTILINE)


def _find_clues(document: str, text: str, positions: list[object]) -> tuple[Span, ...]:
    numbers = [str(position) for position in dict.fromkeys(positions) if str(position) != "-1"]
    marks = list(_PARAGRAPH.finditer(text)) if numbers else []
    ends = [*(match.start() for match in marks[1:]), len(text)]
    places = {match.group(1): (match.end(), end) for match, end in zip(marks, ends, strict=False)}
    if not all(number in places for number in numbers):
        return ()
    return tuple(Span(document=document, start=places[number][0], end=places[number][1]) for number in numbers)


def _read_novel(path: Path, _corpus: Corpus) -> Iterator[Record]:
    rows = read_records(path)
    if len(rows) == 1 and "Question" not in rows[0].values:
        whole = rows[0]
        rows = [
            whole.make_inner(qid, {"QID": qid, **part} if isinstance(part, dict) else part)
            for qid, part in whole.values.items()
        ]
    for record in rows:
        options = read_options(record, "Options")
        has_answer = record.find("Gold Answer")
        correct = read_correct_letter(record, options, "Gold Answer") if has_answer else None
        free = {"answers": record.texts("Answer")} if record.find("Gold") and record.find("Answer") else {}
        id, complexity = f"{path.stem}/{record.text('QID')}", record.text("Complexity Complex")
        yield record.add(id=id, book=path.stem, options=options, correct=correct, complexity=complexity, **free)


_NOVELQA = Layout(
    name="novelqa",
    files="Data/**/*.json data/**/*.json *.json **/*.json",
    several=True,
    rows=_read_novel,
    book="book",
    question="Question",
    slices="Aspect complexity",
)
"""A JSON file per book, as a list or as a mapping from QID, of {QID, Question, Options, Aspect, Complexity}.

The novel is the text file of the same name. It reads `Gold` (a letter) and `Answer` (free text) where somebody who has
them added them.
"""


# ---------------------------------------------------------------- claims about whole books

_TRUE_FALSE = {
    "options": ("True", "False"),
    "instructions": "Decide whether this claim about the book is true or false.",
}

# FABLES labels how far the book supports a claim. CAM (see `systems.cam`), which scores two classes, does not state how
# it maps the four labels to them. Here a claim that the book supports only in part is not faithful, and one that nobody
# can judge has no class.
_FABLES_CLASSES = {"Yes": "A", "PartialSupport": "B", "No": "B", "Inapplicable": None}
_STRICT_FABLES_CLASSES = _FABLES_CLASSES | {"PartialSupport": None}


def _read_nocha(path: Path, _corpus: Corpus) -> Iterator[Record]:
    for record in read_records(path):
        book, pair, label = record.text("book_title"), record.text("index pair_id"), record.text("type label")
        correct = {"true": "A", "false": "B"}.get(label.strip().lower())
        if correct is None:
            raise record.make_wrong_field_error("type", label, "True or False")
        yield record.add(id=f"{book}/{pair}/{label}", book=book, pair=f"{book}/{pair}", correct=correct, **_TRUE_FALSE)


_NOCHA = Layout(
    name="nocha",
    files="data_sample.json **/data_sample.json *.json *.jsonl",
    rows=_read_nocha,
    book="book",
    question="claim",
    slices="length length_bucket genre pair",
)
"""The sample of NoCha (Karpinska et al. 2024): [{book_title, claim, type, index}], two claims for each index.

Its books come in a pickle, which we never open: put each as `<book_title>.txt` under the folder.
"""


def _read_prelude(path: Path, _corpus: Corpus) -> Iterator[Record]:
    for number, record in enumerate(read_records(path), 1):
        book = record.text("book_name book_title book novel title")
        who = record.text("char character character_name role")
        label = record.text("label answer gold").strip().lower()
        correct = "A" if label.startswith("consist") else "B" if label.startswith("contradict") else None
        if correct is None:
            raise record.make_wrong_field_error("label", label, "consistent or contradict")
        task = "Decide whether it agrees with the book or contradicts it."
        yield record.add(
            id=record.find("id qid") or number,
            book=book,
            instructions=f"This tells what {who} did before the book begins. {task}",
            options=("consistent", "contradict"),
            correct=correct,
        )


_PRELUDE = Layout(
    name="prelude",
    files="*test*.json* *test*.parquet *.jsonl *.json *.csv *.parquet",
    rows=_read_prelude,
    book="book",
    question="content prequel backstory statement question",
    slices="book",
)
"""PRELUDE (Yu et al. 2025): is an invented prequel of a character consistent with the book?

Rows {book_name, char, content, label}, where the label begins with "consist" or "contradict". We have not seen the
published files, so each field may have several names. The books are `<book_name>.txt` under the folder.
"""


def _read_fables(folder: Path, *, strict: bool) -> Dataset:
    """FABLES (Kim et al. 2024): `FABLES.json`, book -> summariser -> claims -> {claim, label}; books `<title>.txt`.

    "Yes" is the positive class; "No" and "PartialSupport" are the negative one; "Inapplicable" is left out, and so is
    "PartialSupport" when `strict`. The slice `label` keeps the published label.
    """
    path = find_files(folder, "FABLES.json", "**/FABLES.json", "*.json")[0]
    name, classes = ("fables-strict", _STRICT_FABLES_CLASSES) if strict else ("fables", _FABLES_CLASSES)
    layout = Layout(name=name, book="book", slices="label summariser")
    return layout.make_dataset(Corpus(path, folder), _read_fables_claims(path, classes))


def _read_fables_claims(path: Path, classes: Mapping[str, str | None]) -> Iterator[Record]:
    root = read_records(path)[0]
    root = root.make_inner("FABLES", root.values["FABLES"]) if "FABLES" in root.values else root
    for book, by_summariser in root.values.items():
        if not isinstance(by_summariser, dict):
            continue  # beside the books is a text that forbids training on them
        for summariser, judged in by_summariser.items():
            for number, record in enumerate(root.make_inner(f"{book}, {summariser}", judged).rows("claims"), 1):
                label, id = record.text("label"), f"{book}/{summariser}/{number}"
                if label not in classes:
                    raise record.make_wrong_field_error("label", label, f"one of {', '.join(classes)}")
                text, correct = record.text("claim"), classes[label]
                if correct is not None:
                    added = {"summariser": summariser, "correct": correct, **_TRUE_FALSE}
                    yield record.add(id=id, question=text, book=book, title=book, **added)


ONE_TEXT: Mapping[str, Callable[[Path], Dataset]] = {
    "infinitebench-qa": _INFINITEBENCH_QA.read,
    "infinitebench-mc": _INFINITEBENCH_MC.read,
    "longbench-v2": _LONGBENCH.read,
    "helmet": _read_helmet,
    "narrativeqa": _read_narrativeqa,
    "detectiveqa": partial(_read_detectiveqa, language="en"),
    "detectiveqa-zh": partial(_read_detectiveqa, language="zh"),
    "novelqa": _NOVELQA.read,
    "nocha": _NOCHA.read,
    "prelude": _PRELUDE.read,
    "fables": partial(_read_fables, strict=False),
    "fables-strict": partial(_read_fables, strict=True),
}
"""The readers by the name of the layout."""
