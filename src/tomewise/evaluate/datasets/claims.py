"""Claim verification over whole books: NoCha, Prelude, FABLES. Put the books as text files beside the claims.

A claim is a question with two options, the positive label first, so that A is the positive class.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tomewise.evaluate.datasets.corpus import Books, Corpus
from tomewise.evaluate.datasets.data_rows import Record, find_file, find_files, read_records
from tomewise.evaluate.items import Dataset, Item
from tomewise.types import Question

TRUE_FALSE = ("True", "False")
_INSTRUCTIONS = "Decide whether this claim about the book is true or false."

# FABLES labels how far the book supports a claim. CAM (see `systems.cam`), which scores two classes, does not state how
# it maps the four labels to them. Here a claim that the book supports only in part is not faithful, and one that nobody
# can judge has no class.
_FABLES_CLASSES = {"Yes": "A", "PartialSupport": "B", "No": "B", "Inapplicable": None}
_STRICT_FABLES_CLASSES = _FABLES_CLASSES | {"PartialSupport": None}


def read_nocha(folder: Path) -> Dataset:
    """The sample of NoCha (Karpinska et al. 2024): [{book_title, claim, type, index}], two claims for each index.

    Its books come in a pickle, which we never open: put each as `<book_title>.txt` under the folder.
    """
    path = find_file(folder, "data_sample.json", "**/data_sample.json", "*.json", "*.jsonl")
    corpus = Corpus(path)
    books = Books(folder, corpus)
    return corpus.make_dataset("nocha", (_make_nocha_item(record, books) for record in read_records(path)))


def _make_nocha_item(record: Record, books: Books) -> Item:
    book, pair, label = record.text("book_title"), record.text("index", "pair_id"), record.text("type", "label")
    correct = {"true": "A", "false": "B"}.get(label.strip().lower())
    if correct is None:
        raise record.make_wrong_field_error("type", label, "True or False")
    slices = record.slices("length", "length_bucket", "genre") | {"pair": f"{book}/{pair}"}
    text = record.text("claim")
    return _make_claim(f"{book}/{pair}/{label}", text, _INSTRUCTIONS, TRUE_FALSE, correct, books.add(book), slices)


def read_prelude(folder: Path) -> Dataset:
    """PRELUDE (Yu et al. 2025): is an invented prequel of a character consistent with the book?

    Rows {book_name, char, content, label}, where the label begins with "consist" or "contradict". We have not seen
    the published files, so each field may have several names. The books are `<book_name>.txt` under the folder.
    """
    path = find_file(folder, "*test*.json*", "*test*.parquet", "*.jsonl", "*.json", "*.csv", "*.parquet")
    corpus = Corpus(path)
    books = Books(folder, corpus)
    return corpus.make_dataset(
        "prelude",
        (_make_prelude_item(record, str(number), books) for number, record in enumerate(read_records(path), 1)),
    )


def _make_prelude_item(record: Record, number: str, books: Books) -> Item:
    book = record.text("book_name", "book_title", "book", "novel", "title")
    who = record.text("char", "character", "character_name", "role")
    label = record.text("label", "answer", "gold").strip().lower()
    correct = "A" if label.startswith("consist") else "B" if label.startswith("contradict") else None
    if correct is None:
        raise record.make_wrong_field_error("label", label, "consistent or contradict")
    return _make_claim(
        str(record.find("id", "qid") or number),
        record.text("content", "prequel", "backstory", "statement", "question"),
        f"This tells what {who} did before the book begins. Decide whether it agrees with the book or contradicts it.",
        ("consistent", "contradict"),
        correct,
        books.add(book),
        {"book": book},
    )


def read_fables(folder: Path, *, strict: bool = False) -> Dataset:
    """FABLES (Kim et al. 2024): `FABLES.json`, book -> summariser -> claims -> {claim, label}; books `<title>.txt`.

    "Yes" is the positive class; "No" and "PartialSupport" are the negative one; "Inapplicable" is left out, and so is
    "PartialSupport" when `strict`. The slice `label` keeps the published label.
    """
    path = find_files(folder, "FABLES.json", "**/FABLES.json", "*.json")[0]
    root = read_records(path)[0]
    root = root.make_inner("FABLES", root.values["FABLES"]) if "FABLES" in root.values else root
    corpus = Corpus(path)
    books, classes = Books(folder, corpus), _STRICT_FABLES_CLASSES if strict else _FABLES_CLASSES
    items = [
        _make_fables_item(claim, f"{book}/{summariser}/{number}", book, summariser, books, classes)
        for book, by_summariser in root.values.items()
        if isinstance(by_summariser, dict)  # beside the books is a text that forbids training on them
        for summariser, judged in by_summariser.items()
        for number, claim in enumerate(root.make_inner(f"{book}, {summariser}", judged).rows("claims"), 1)
    ]
    name = "fables-strict" if strict else "fables"
    return corpus.make_dataset(name, (item for item in items if item is not None))


def _make_fables_item(
    record: Record, id: str, book: str, summariser: str, books: Books, classes: Mapping[str, str | None]
) -> Item | None:
    label, text = record.text("label"), record.text("claim")
    if label not in classes:
        raise record.make_wrong_field_error("label", label, f"one of {', '.join(classes)}")
    correct = classes[label]
    if correct is None:
        return None
    slices = {"label": label, "summariser": summariser}
    return _make_claim(id, text, _INSTRUCTIONS, TRUE_FALSE, correct, books.add(book, title=book), slices)


def _make_claim(
    id: str,
    text: str,
    instructions: str,
    labels: tuple[str, str],
    correct: str,
    document: str,
    slices: Mapping[str, str | int],
) -> Item:
    """A claim about one book; `labels` has the positive one first, and `correct` is A or B."""
    return Item(
        id=id,
        question=Question(text=text, options=labels, instructions=instructions),
        answers=(labels["AB".index(correct)],),
        correct=correct,
        documents=(document,),
        slices=slices,
    )
