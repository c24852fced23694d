"""Readers of published datasets by name; nothing is downloaded and nothing is unpickled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tomewise.errors import ReadingError, UnknownName, UsageError, suggest
from tomewise.evaluate.datasets.many_texts import MANY_TEXTS
from tomewise.evaluate.datasets.one_text import ONE_TEXT
from tomewise.evaluate.items import Dataset
from tomewise.plugins import find_plugin, list_names, name_faults


def read_dataset(name: str = "auto", folder: Path = Path()) -> Dataset:
    """Read a dataset in the layout of that name; "auto" is our plain layout, and "sample" needs no folder.

    `folder` holds the published files, or is the file of a layout of one file. Nothing is downloaded.
    Raises UnknownName, and ReadingError (file, row, field, remedy) where the files lack something.
    """
    reader = _READERS.get(name) or find_plugin("layouts", name)
    if reader is None and name != "auto":
        hint = suggest(name, list_layouts())
        raise UnknownName(f"unknown dataset layout {name!r}: {hint}The layouts are {', '.join(list_layouts())}")
    if name != "sample" and not folder.exists():
        raise ReadingError(f"{folder} does not exist: give the folder that holds the files of the dataset")
    if name == "auto":
        reader = _READERS[detect_layout(folder)]
    with name_faults():
        dataset = reader(folder) if callable(reader) else reader
    if not isinstance(dataset, Dataset):
        raise UsageError(
            f"the layout {name!r} of a plugin gave {dataset!r}: a layout is a function that returns a Dataset"
        )
    return _check_dataset(dataset, folder)


def list_layouts() -> tuple[str, ...]:
    """The names of all layouts, sorted."""
    return tuple(sorted({*_READERS, *list_names("layouts")}))


def detect_layout(folder: Path) -> str:
    """The layout of a folder, by its files: only the plain layout shows. Raises ReadingError for any other folder."""
    if (folder / "corpus.jsonl").is_file() and (folder / "questions.jsonl").is_file():
        return "plain"
    message = f"{folder} holds no corpus.jsonl and questions.jsonl: name its layout, one of {', '.join(list_layouts())}"
    raise ReadingError(message)


def _check_dataset(dataset: Dataset, folder: Path) -> Dataset:
    """The dataset. Raises ReadingError without questions, and for equal ids and documents that the corpus lacks."""
    if not dataset.items:
        raise ReadingError(f"{folder} holds no question in the layout {dataset.name!r}: check the files in it")
    corpus = {document.id for document in dataset.documents}
    ids: set[str] = set()
    for item in dataset.items:
        if item.id in ids:
            raise ReadingError(f"{folder}: two questions have the id {item.id!r}: give each its own")
        ids.add(item.id)
        for id in (*item.supporting, *item.documents, *(span.document for span in item.spans)):
            if id not in corpus:
                message = f"{folder}: question {item.id!r} names the document {id!r}, which the corpus does not hold"
                raise ReadingError(f"{message}: add it, or fix the id")
    return dataset


_READERS: Mapping[str, Callable[[Path], Dataset]] = {**ONE_TEXT, **MANY_TEXTS}
