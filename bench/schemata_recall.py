"""Figure 3(b) of CAM as far as it can be measured without a strong model: recall online, by size of batch, and offline.

    python bench/schemata_recall.py musique --batches 400 100
    python bench/schemata_recall.py qmsum --batches 20 5 --meetings 10

Reads `../shared/data`; bundled embedder, extractive model. For MuSiQue one tome holds all documents; for QMSum each of
the first meetings has its own. Recall is the share of the gold (documents, spans) that the first 10 passages find.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tomewise.evaluate.datasets.layouts import read_dataset
from tomewise.evaluate.items import Dataset, Item, RankedPassage
from tomewise.evaluate.metrics.span_overlap import measure_gold_recall
from tomewise.memory.building import build
from tomewise.memory.schemata.network import describe_network
from tomewise.memory.schemata.schemata_layer import SchemataLayer
from tomewise.recall.prune_and_grow import PruneAndGrow
from tomewise.recall.schemata_nodes import SchemataNodes
from tomewise.recall.schemata_search import HierarchicalSchemata
from tomewise.store.contract import Store
from tomewise.tome.tome import Tome
from tomewise.types import Document, Retriever

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
FIRST = 10  # passages that count
DEPTH = 40  # nodes that are retrieved: some are summaries
TOP = 10  # nodes that the traversal keeps on each level


@dataclass
class Row:
    """What was measured for one size of batch."""

    built: int = 0
    networks: list[dict[str, object]] = field(default_factory=list)
    recalls: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, recall: float) -> None:
        self.recalls.setdefault(name, []).append(recall)


def quiet(_: object) -> None:
    pass


def split_by_meeting(dataset: Dataset, limit: int | None) -> list[tuple[list[Document], list[Item]]]:
    """One group with everything, or one for each of the first `limit` documents."""
    if limit is None:
        return [(list(dataset.documents), list(dataset.items))]
    groups = [(document, [item for item in dataset.items if item.documents == (document.id,)])
              for document in dataset.documents[:limit]]  # fmt: skip
    return [([document], [item for item in items if item.spans]) for document, items in groups]


def find_passages(store: Store, keys: Iterable[int]) -> list[RankedPassage]:
    return [
        RankedPassage(id=each.id, document=each.document, start=each.start, end=each.end)
        for each in store.passages(keys).values()
    ]


async def rank(store: Store, retriever: Retriever, question: str) -> list[RankedPassage]:
    found = await retriever.retrieve(question, DEPTH)
    keys = store.keys_of([piece.node for piece in found])
    return find_passages(store, keys.values())[:FIRST]


async def measure(base: Path, items: Sequence[Item], batch: int | None, row: Row) -> None:
    """Build the schemata on a copy of a tome, and add what was measured to the row."""
    with tempfile.TemporaryDirectory() as folder:
        path = shutil.copy(base, Path(folder) / "a.tome")
        with Tome.open(path, model="extractive") as tome:
            kit = tome.kit
            layer = SchemataLayer(kit.store, kit.model, kit.embedder, batch=batch)
            reports = await build([layer], kit.store, quiet)
            row.built += sum(report.added for report in reports)
            row.networks.append(kit.store.builds()[layer.name]["network"])
            nodes = SchemataNodes(kit.store, kit.embedder, layer.names)
            ways = {
                "hierarchical": HierarchicalSchemata(nodes, top_k=TOP),
                "prune and grow": PruneAndGrow(nodes, kit.model),
            }
            for item in items:
                for name, retriever in ways.items():
                    row.add(name, measure_gold_recall(await rank(kit.store, retriever, item.question.text), item))


def measure_data(data: str, batches: Sequence[int], meetings: int) -> None:
    """Print the recall on one dataset, offline and by size of batch."""
    dataset = read_dataset(data if data == "qmsum" else "auto", SHARED / data)
    rows = {batch: Row() for batch in (None, *batches)}
    for documents, items in split_by_meeting(dataset, meetings if data == "qmsum" else None):
        with tempfile.TemporaryDirectory() as folder:
            base = Path(folder) / "base.tome"
            with Tome.open(base, model="extractive") as tome:
                tome.add(*documents)
            for batch, row in rows.items():
                asyncio.run(measure(base, items, batch, row))
    print("| batch | hierarchical | prune and grow | summaries made |")
    print("| --- | ---: | ---: | ---: |")
    for batch, row in rows.items():
        means = [f"{100 * np.mean(row.recalls[name]):.1f}" for name in ("hierarchical", "prune and grow")]
        print(f"| {batch or 'offline'} | {' | '.join(means)} | {row.built:,} |")
    print(f"{len(rows[None].recalls['hierarchical'])} questions")
    for batch, row in rows.items():
        print(f"{batch or 'offline'}: {describe_network(row.networks)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=["musique", "qmsum"], nargs="?", help="without it, both")
    parser.add_argument("--batches", type=int, nargs="+", default=[400, 100])
    parser.add_argument("--meetings", type=int, default=10, help="of QMSum")
    options = parser.parse_args()
    if not SHARED.exists():
        print("skipped: ../shared/data is absent")
        return
    for data in (options.data,) if options.data else ("musique", "qmsum"):
        print(f"{data}:")
        measure_data(data, options.batches, options.meetings)


if __name__ == "__main__":
    main()
