"""Recall of systems by name: on questions of several steps, of one step, on comparisons, and on texts without titles.

    python bench/bridge.py [SYSTEM ...] [--only musique steps comparisons qmsum sample] [--passages 500]

A SYSTEM is written as for `tome eval run`: `associative`, `hybrid:without rewriting`, `associative facts=3`. Data are
those of `../shared/data`; bundled embedder, extractive model. The tomes are made once, under `bench/out/bridge`.

- musique: 60 questions of two to four steps over the published triples.
- steps: their parts, each asked by itself. `#1` in a part stands for the answer of the first part and is filled in.
  Each supporting passage belongs to one part, the one whose answer it holds. A question is left out where that is open.
- comparisons: the 30 questions of `comparisons.jsonl` over 6,119 passages. With `--passages` N only the gold passages
  and the first N others are taken, since a graph by rules over all of them takes long to build.
- qmsum, sample: meetings and a story, which have no titles.

The last column is the mean time of a question in milliseconds, the embedding included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import Any

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.evaluate.asking import BuiltMemory, open_memory
from tomewise.evaluate.datasets import read_dataset
from tomewise.evaluate.design import DEPTH, Design
from tomewise.evaluate.items import Dataset, Item, Outcome, Prediction
from tomewise.evaluate.metrics import find_metric
from tomewise.language.choose_model import choose_model
from tomewise.types import Document, Question

HERE = Path(__file__).resolve().parent
SHARED = HERE.parents[1] / "shared" / "data"
OUT = HERE / "out" / "bridge"
SYSTEMS = ("naive", "hybrid", "associative")


@dataclass(frozen=True)
class Measurement:
    """A dataset, the metrics that are reported on it, and the name of the tomes that hold its documents."""

    dataset: Dataset
    metrics: tuple[str, ...]
    tome: str


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def read_musique(_: int | None) -> Measurement:
    dataset = read_dataset("auto", SHARED / "musique")
    return Measurement(dataset, ("recall@2", "recall@5", "recall@10", "recall@20", "all@5"), "musique")


def read_steps(_: int | None) -> Measurement:
    whole = read_dataset("auto", SHARED / "musique")
    texts = {document.id: normalise(f"{document.title} {document.text}") for document in whole.documents}
    items = tuple(
        Item(id=f"{row['id']} {number}", question=Question(text=text), supporting=(passage,))
        for row in read_rows(SHARED / "musique" / "questions.jsonl")
        for number, (text, passage) in enumerate(split_question(row, texts), 1)
    )
    dataset = Dataset(name="steps", documents=whole.documents, items=items, openie=whole.openie)
    return Measurement(dataset, ("recall@1", "recall@2", "recall@5"), "musique")


def split_question(row: Mapping[str, Any], texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """The parts of a question, each with its passage; none where the answers do not tell which passage is whose."""
    parts = row["decomposition"]
    orders = [
        passages
        for passages in permutations(map(str, row["supporting"]), len(parts))
        if all(normalise(part["answer"]) in texts[id] for part, id in zip(parts, passages, strict=True))
    ]

    def fill(part: Mapping[str, str]) -> str:
        return re.sub(r"#(\d+)", lambda mark: str(parts[int(mark[1]) - 1]["answer"]), part["question"])

    return list(zip(map(fill, parts), orders[0], strict=True)) if len(orders) == 1 else []


def normalise(text: str) -> str:
    """The words in lower case, between spaces, so that `in` finds whole words."""
    words = " ".join(re.findall(r"[^\W_]+", text.lower()))
    return f" {words} "


def read_comparisons(passages: int | None) -> Measurement:
    rows = list(read_rows(HERE / "comparisons.jsonl"))
    gold = {str(id) for row in rows for id in row["supporting"]}
    documents = [
        Document(id=str(row["id"]), text=row["text"], title=row["title"])
        for row in read_rows(SHARED / "wiki" / "corpus.jsonl")
    ]
    others = [document.id for document in documents if document.id not in gold][:passages]
    kept = gold.union(others)
    items = tuple(
        Item(id=row["id"], question=Question(text=row["question"]), supporting=tuple(map(str, row["supporting"])))
        for row in rows
    )
    chosen = tuple(document for document in documents if document.id in kept)
    dataset = Dataset(name="comparisons", documents=chosen, items=items)
    return Measurement(dataset, ("recall@2", "recall@5", "recall@10", "all@5"), f"wiki-{passages or 'all'}")


def read_qmsum(_: int | None) -> Measurement:
    depths = ("span-recall@5", "span-recall@10", "span-recall@20")
    return Measurement(read_dataset("qmsum", SHARED / "qmsum"), depths, "qmsum")


def read_sample(_: int | None) -> Measurement:
    return Measurement(read_dataset("sample"), ("span-recall@5", "span-recall@10", "span-recall@20"), "sample")


READERS: Mapping[str, Callable[[int | None], Measurement]] = {
    "musique": read_musique,
    "steps": read_steps,
    "comparisons": read_comparisons,
    "qmsum": read_qmsum,
    "sample": read_sample,
}


async def measure(measurement: Measurement, systems: Sequence[str]) -> dict[str, tuple[list[float], float]]:
    """By system: the scores in percent, in the order of the metrics, and the milliseconds of a question."""
    dataset, metrics = measurement.dataset, tuple(map(find_metric, measurement.metrics))
    embedder = choose_embedder("bundled")
    design = Design(
        dataset=dataset,
        variants=systems,  # type: ignore[arg-type]  # texts become variants
        model=choose_model("extractive", embedder=embedder),
        embedder=embedder,
        metrics=metrics,
        retrieval_only=True,
    )
    groups: dict[tuple[str, ...], list[Item]] = {}
    for item in dataset.items:
        if any(metric.applies(item) for metric in metrics):
            groups.setdefault(item.documents, []).append(item)
    outcomes: dict[str, list[Outcome]] = {}
    seconds: dict[str, list[float]] = {}
    for number, (wanted, items) in enumerate(groups.items()):
        documents = [document for document in dataset.documents if not wanted or document.id in wanted]
        path = OUT / f"{measurement.tome}-{number}.tome"
        memory = await open_memory(design, design.variants, documents, path, lambda _: None)
        with memory.tome:
            for name in memory.systems:
                for item in items:
                    start = time.perf_counter()
                    outcome = await rank(memory, name, item)
                    seconds.setdefault(name, []).append(time.perf_counter() - start)
                    outcomes.setdefault(name, []).append(outcome)
    return {
        name: ([100 * (metric.total(found) or 0.0) for metric in metrics], 1000 * fmean(seconds[name]))
        for name, found in outcomes.items()
    }


async def rank(memory: BuiltMemory, system: str, item: Item) -> Outcome:
    evidence = await memory.systems[system].retriever.retrieve(item.question.text, DEPTH)  # type: ignore[union-attr]
    return Outcome(item, Prediction(ranked=memory.rank_passages(item.question.text, evidence, of_one_retriever=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", default=SYSTEMS)
    parser.add_argument("--only", nargs="+", choices=READERS, default=list(READERS))
    parser.add_argument("--passages", type=int, help="of the comparisons, beside the gold ones; without it, all")
    options = parser.parse_args()
    if not SHARED.is_dir():
        print("skipped: ../shared/data is absent")
        return
    for name in options.only:
        measurement = READERS[name](options.passages)
        dataset = measurement.dataset
        print(f"\n{name}: {len(dataset.items)} questions, {len(dataset.documents):,} documents")
        print(f"| system | {' | '.join(measurement.metrics)} | ms |", flush=True)
        print(f"| --- |{' ---: |' * (len(measurement.metrics) + 1)}")
        for system, (scores, milliseconds) in asyncio.run(measure(measurement, options.systems)).items():
            print(f"| {system} | {' | '.join(f'{score:.1f}' for score in scores)} | {milliseconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
