"""Recall on all public questions that lie here: one command, no call of a model.

    python bench/public.py [--sets NAME ...] [--systems NAME ...] [--out FOLDER]

For each set of `../shared/data` all questions are ranked by each system, over the whole corpus of the set (LoCoMo: over
the conversation of the question), with the bundled embedder. The experiments lie under `bench/out/public`, and a rerun
asks only what was not asked; so it may be stopped, and run in pieces. `hipporag2` runs without recognition, and only
where triples are given; `associative` walks given triples, else a graph by rules. What a set has as gold are documents,
or spans, which a passage finds that shares a character with them. Brackets hold 95 % bootstrap intervals over
questions; differences from `hybrid` are paired. Numbers of 2Wiki are of its 153 questions on which nothing was chosen.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.evaluate.datasets import read_dataset
from tomewise.evaluate.design import Design
from tomewise.evaluate.items import Dataset
from tomewise.evaluate.metrics import find_metric
from tomewise.evaluate.results import Results, estimate_interval, resample_means
from tomewise.evaluate.running import run
from tomewise.language.choose_model import choose_model
from tomewise.systems.registry import parse_variants
from tomewise.types import Progress

DATA = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
OUT = Path(__file__).resolve().parent / "out" / "public"
SETS: Mapping[str, str] = {  # with their layouts
    "2wiki": "plain",
    "musique": "plain",
    "reported/musique40": "plain",
    "reported/musique_sub": "plain",
    "reported/musique_migres": "plain",
    "reported/musique_wikontic": "plain",
    "reported/2wiki_migres": "plain",
    "reported/hotpot100": "plain",
    "reported/hotpot_migres": "plain",
    "reported/popqa": "plain",
    "reported/xquad": "plain",
    "locomo": "locomo",
    "qmsum": "qmsum",
    "reported/qmsum_val": "qmsum",
    "reported/qmsum_train": "qmsum",
}
VARIANTS = {name: name for name in ("naive", "bm25", "hybrid", "associative")}
VARIANTS["hipporag2"] = "hipporag2 recognition=none extraction=facts"
CUTS = (2, 5, 10)
CHOSEN = 300  # questions of 2Wiki on which constants were chosen


def read_set(name: str) -> Dataset:
    """The questions that have gold, over the whole corpus where the set does not say otherwise."""
    dataset = read_dataset(SETS[name], DATA / name)
    items = [item for item in dataset.items if item.supporting or item.spans]
    if SETS[name] == "qmsum":
        items = [replace(item, documents=()) for item in items]
    if name == "2wiki":
        items = sorted(items, key=lambda item: sha256(item.id.encode()).hexdigest())
    return replace(dataset, name=name.replace("/", "-"), items=tuple(items))


def make_design(dataset: Dataset, systems: Sequence[str]) -> Design:
    """The experiment."""
    metric, embedder = "recall" if dataset.items[0].supporting else "span-recall", choose_embedder("bundled")
    return Design(
        dataset=dataset,
        variants=parse_variants(VARIANTS[name] for name in systems if name != "hipporag2" or dataset.openie),
        model=choose_model("extractive", embedder=embedder),
        embedder=embedder,
        metrics=tuple(find_metric(f"{metric}@{cut}") for cut in CUTS),
        retrieval_only=True,
    )


def print_lines(name: str, design: Design, results: Results) -> None:
    """A line for each system."""
    reported = {item.id for item in design.dataset.items[CHOSEN if name == "2wiki" else 0 :]}
    scores = {
        system: np.array(
            [
                [metric.score_row(row) for metric in design.metrics]
                for row in results.rows
                if row.system == system and row.item.id in reported
            ]
        )
        * 100
        for system in results.systems
    }
    base = scores.get("hybrid")
    for system, table in scores.items():
        cells = [write_mean(column) for column in table.T]
        paired = (
            ["–"] * len(CUTS) if base is None or system == "hybrid" else [write_mean(c, "+") for c in (table - base).T]
        )
        triples = (
            ""
            if not system.startswith(("hipporag2", "associative"))
            else "given"
            if design.dataset.openie
            else "by rules"
        )
        corpus = f"{len(design.dataset.documents):,}"
        print(f"| {' | '.join([name, corpus, str(len(table)), system, triples, *cells, *paired])} |", flush=True)


def write_mean(column: np.ndarray, sign: str = "") -> str:
    """A mean and its interval."""
    low, high = estimate_interval(resample_means([column])[0])
    return f"{column.mean():{sign}.1f} ({low:{sign}.1f} to {high:{sign}.1f})"


def print_progress(progress: Progress) -> None:
    if progress.label == "questions" and progress.done % 500 == 0:
        print(f"  {progress.label}: {progress.done} of {progress.total}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--systems", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    print("Embedder: bundled (MiniLM-L6, 22M). Calls of a model: none. Passages of at most 256 tokens.")
    ats = [f"R@{cut}" for cut in CUTS]
    heads = ["set", "documents", "questions", "system", "triples", *ats, *(f"{at} - hybrid" for at in ats)]
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for name in options.sets:
        if not (DATA / name).is_dir():
            print(f"skipped: {DATA / name} is absent")
            continue
        design = make_design(read_set(name), options.systems)
        results = asyncio.run(run(design, options.out, on_progress=print_progress))
        print_lines(name, design, results)


if __name__ == "__main__":
    main()
