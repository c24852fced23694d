"""Recall on MuSiQue: flat and graph systems over the published triples. Only one row asks a model at query time.

`python bench/musique.py` makes a tome of `../shared/data/musique` with the bundled embedder (once, kept under
`bench/out`). It prints recall at 2, 5, 10 and 20 documents and the share of questions with all their documents in the
first 5. Recall at 5 is also printed for the 30 questions of even place, on which settings were chosen, and for the 30
odd ones. Brackets hold 95 % bootstrap intervals over questions. `--settings` also prints the settings that were tried.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tomewise.evaluate.results import compute_p_value, estimate_interval, resample_means
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.recall.diffusion import Diffusion
from tomewise.recall.graph_index import GraphIndexes
from tomewise.recall.seeding import NearestFacts, seed_hippo, seed_mentions, seed_passages
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble
from tomewise.tome.tome import Tome
from tomewise.types import Document, Progress, Retriever

DATA = Path(__file__).resolve().parents[1] / ".." / "shared" / "data" / "musique"
OUT = Path(__file__).resolve().parent / "out"
CUTS = (2, 5, 10, 20)
DEPTH = 40  # passages to retrieve: several may belong to one document
HIPPO = {"recognition": "none", "extraction": "facts"}
COGITO = {"source": "passages", "extraction": "facts", "carrier": "passages", "asking": "whole"}
METHODS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "dense (`naive`)": ("naive", {}),
    "BM25 (`bm25`)": ("bm25", {}),
    "dense and BM25 fused (`hybrid`)": ("hybrid", {}),
    "`hipporag2`, facts recognised by the extractive model": ("hipporag2", {"extraction": "facts"}),
    "`hipporag2` without recognition": ("hipporag2", HIPPO),
    "`cogitorag`": ("cogitorag", COGITO),
    "`cogitorag` with passage seeds": ("cogitorag", {**COGITO, "passage_weight": 0.05}),
    "`cogitorag` without CogniRank": ("cogitorag", {**COGITO, "ranking": "diffusion"}),
    "`cogitorag` without diffusion": ("cogitorag", {**COGITO, "spreading": "one step"}),
    "`associative`": ("associative", {}),
}
SETTINGS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "hipporag2, 3 facts": ("hipporag2", {**HIPPO, "facts": 3}),
    "hipporag2, 20 facts": ("hipporag2", {**HIPPO, "facts": 20}),
    "hipporag2, passages 0.03": ("hipporag2", {**HIPPO, "passage_weight": 0.03}),
    "hipporag2, passages 0.1": ("hipporag2", {**HIPPO, "passage_weight": 0.1}),
    "cogitorag, blend 0.9": ("cogitorag", {**COGITO, "blend": 0.9}),
    "cogitorag, passages 0.02": ("cogitorag", {**COGITO, "passage_weight": 0.02}),
    "cogitorag, passages 0.1": ("cogitorag", {**COGITO, "passage_weight": 0.1}),
    "cogitorag, restart 0.3": ("cogitorag", {**COGITO, "restart": 0.3}),
    "cogitorag, alpha 0 (no reward)": ("cogitorag", {**COGITO, "alpha": 0.0}),
    "associative, 3 facts": ("associative", {"facts": 3}),
    "associative, 10 facts": ("associative", {"facts": 10}),
    "associative, mentions 0": ("associative", {"mention_weight": 0.0}),
    "associative, mentions 2": ("associative", {"mention_weight": 2.0}),
    "associative, passages 0.03": ("associative", {"passage_weight": 0.03}),
    "associative, passages 0.1": ("associative", {"passage_weight": 0.1}),
}


@dataclass(frozen=True)
class MusiqueQuestion:
    text: str
    documents: frozenset[str]


def read_rows(name: str) -> Iterator[dict[str, Any]]:
    with (DATA / name).open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def open_tome(path: Path) -> Tome:
    """Open the tome, after adding the documents and building the graph if they are missing."""
    path.parent.mkdir(exist_ok=True)
    tome = Tome.open(path)
    documents = [Document(id=str(row["id"]), text=row["text"], title=row["title"]) for row in read_rows("corpus.jsonl")]
    if len(tome.documents()) < len(documents):
        tome.add(*documents, on_progress=print_progress)
    if not tome.store.node_keys("facts:passages-triples"):
        report = tome.build("associative", extractions=DATA / "openie.jsonl", on_progress=print_progress)
        print("\n".join(note for layer in report.layers for note in layer.notes))
    return tome


def print_progress(progress: Progress) -> None:
    if "embedded" in progress.label:
        print(f"  {progress.label}: {progress.done} of {progress.total}", flush=True)


async def measure(
    retriever: Retriever, questions: Sequence[MusiqueQuestion], document_of: Mapping[str, str]
) -> NDArray[np.float64]:
    """For each question recall at each cut and whether it is 1 at 5, in percent: shape (questions, cuts + 1)."""
    table = []
    for question in questions:
        found = await retriever.retrieve(question.text, DEPTH)
        ranking = list(dict.fromkeys(document_of[piece.id] for piece in found))
        recall = [len(question.documents.intersection(ranking[:cut])) / len(question.documents) for cut in CUTS]
        table.append([*recall, float(recall[CUTS.index(5)] == 1)])
    return np.array(table) * 100


def show(name: str, table: NDArray[np.float64]) -> None:
    cells = []
    for places in (slice(None), slice(0, None, 2), slice(1, None, 2)):
        five = table[places, CUTS.index(5)]
        low, high = estimate_interval(resample_means([five])[0])
        cells.append(f"{five.mean():.1f} ({low:.0f} to {high:.0f})")
    cells_of_all = [f"{table[:, column].mean():.1f}" for column in (0, 2, 3, 4)]
    print(f"| {name} | {cells_of_all[0]} | {' | '.join(cells)} | {' | '.join(cells_of_all[1:])} |", flush=True)


def print_heading() -> None:
    print("| method | R@2 | R@5, all 60 | R@5, even 30 | R@5, odd 30 | R@10 | R@20 | all in top 5 |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")


def make_variants(kit: Kit) -> Iterator[tuple[str, Retriever]]:
    """Walks like that of `associative`, without its rewriting and its coverage, that no setting makes."""
    names = GraphLayer(kit.store, kit.model, kit.embedder).names
    facts = NearestFacts(kit.store, names.instance)

    def make_diffusion(parts: Sequence[Any], **index: Any) -> Retriever:
        indexes = GraphIndexes(kit.store, names.instance, **index)
        return Diffusion(kit.store, kit.embedder, indexes, facts, parts)

    hippo, mentions = seed_hippo, partial(seed_mentions, kit.store, names)
    passages = partial(seed_passages, kit.store)
    yield "associative, edges between entities x 1", make_diffusion([hippo, mentions, passages], links="extracted")
    yield "associative, links of facts only", make_diffusion([hippo, mentions, passages], between=2.0)
    yield "associative, no seeds of facts", make_diffusion([mentions, passages], links="extracted", between=2.0)
    yield "associative, no seeds of passages", make_diffusion([hippo, mentions], links="extracted", between=2.0)
    yield (
        "associative, restart 0.3",
        make_diffusion([hippo, mentions, passages], links="extracted", between=2.0, restart=0.3),
    )


async def run(tome: Tome, *, settings: bool) -> None:
    questions = [
        MusiqueQuestion(row["question"], frozenset(map(str, row["supporting"]))) for row in read_rows("questions.jsonl")
    ]
    document_of = {passage.id: passage.document for passage in tome.store.passages().values()}

    def make_retriever(name: str, options: Mapping[str, Any]) -> Retriever:
        return assemble(name, tome.kit, **options).retriever

    tables = {}
    print_heading()
    for name, (system, options) in METHODS.items():
        tables[name] = await measure(make_retriever(system, options), questions, document_of)
        show(name, tables[name])
    base = tables["dense (`naive`)"][:, CUTS.index(5)]
    for name in ("`hipporag2` without recognition", "`cogitorag`", "`associative`"):
        gains = tables[name][:, CUTS.index(5)] - base
        drawn = resample_means([gains])[0]
        low, high = estimate_interval(drawn)
        p = compute_p_value(gains, drawn)
        print(f"{name} over dense, R@5: {gains.mean():+.1f} ({low:+.1f} to {high:+.1f}), p = {p:.4f}")
    if settings:
        print_heading()
        for name, (system, options) in SETTINGS.items():
            show(name, await measure(make_retriever(system, options), questions, document_of))
        for name, retriever in make_variants(tome.kit):
            show(name, await measure(retriever, questions, document_of))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tome", type=Path, default=OUT / "musique.tome")
    parser.add_argument("--settings", action="store_true", help="also print the settings that were tried")
    options = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: ../shared/data/musique is absent")
        return
    with open_tome(options.tome) as tome:
        asyncio.run(run(tome, settings=options.settings))


if __name__ == "__main__":
    main()
