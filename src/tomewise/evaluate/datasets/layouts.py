"""Readers of datasets by name, imported on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

from tomewise.errors import ReadingError, UnknownName, UsageError, suggest
from tomewise.evaluate.items import Dataset
from tomewise.plugins import find_plugin, list_names, name_faults

_PACKAGE = "tomewise.evaluate.datasets"


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


def _make_reader(module: str, function: str, *args: object, **kwargs: object) -> Callable[[Path], Dataset]:
    def read(folder: Path) -> Dataset:
        reader = getattr(import_module(f"{_PACKAGE}.{module}"), function)
        dataset: Dataset = reader(folder, *args, **kwargs)
        return dataset

    return read


def _read_wiki(folder: Path, name: str, begins: str) -> Dataset:
    """Read a dataset that HippoRAG publishes too: in HippoRAG's layout if it has a corpus file, else in its own."""
    if folder.is_dir() and any(folder.glob(f"{begins}*_corpus.json")):
        return _make_reader("multihop", "read_hipporag", begins)(folder)
    return _make_reader("multihop", "read_multihop", name)(folder)


_READERS: dict[str, Callable[[Path], Dataset]] = {
    "plain": _make_reader("own_layout", "read_plain"),
    "sample": _make_reader("sample_story", "read_sample"),
    "narrativeqa": _make_reader("novels", "read_narrativeqa"),
    "infinitebench-qa": _make_reader("long_context", "read_infinitebench_qa"),
    "infinitebench-mc": _make_reader("long_context", "read_infinitebench_mc"),
    "longbench-v2": _make_reader("long_context", "read_longbench"),
    "helmet": _make_reader("long_context", "read_helmet"),
    "detectiveqa": _make_reader("novels", "read_detectiveqa", "en"),
    "detectiveqa-zh": _make_reader("novels", "read_detectiveqa", "zh"),
    "hipporag": _make_reader("multihop", "read_hipporag"),
    "nq": _make_reader("multihop", "read_hipporag", "nq"),
    "popqa": _make_reader("multihop", "read_hipporag", "popqa"),
    "musique": partial(_read_wiki, name="musique", begins="musique"),
    "2wikimultihopqa": partial(_read_wiki, name="2wikimultihopqa", begins="2wiki"),
    "hotpotqa": partial(_read_wiki, name="hotpotqa", begins="hotpot"),
    "graphrag-bench": _make_reader("graphrag_bench", "read_graphrag_bench"),
    "nocha": _make_reader("claims", "read_nocha"),
    "prelude": _make_reader("claims", "read_prelude"),
    "fables": _make_reader("claims", "read_fables"),
    "fables-strict": _make_reader("claims", "read_fables", strict=True),
    "novelqa": _make_reader("novels", "read_novelqa"),
    "qmsum": _make_reader("qmsum", "read_qmsum"),
    "multihop-rag": _make_reader("multihop", "read_multihop_rag"),
    "odsum": _make_reader("odsum", "read_odsum"),
}
