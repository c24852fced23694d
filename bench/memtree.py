"""How a MemTree grows by the size of its batches: calls a passage, shape, recall on the sample, closeness of trees.

    python bench/memtree.py grow [FILE]    one text, in batches of 1, 8, 64 and 400; the sample story by default, else
                                           in passages of 200 tokens that share 50, as the novel's given graph has
    python bench/memtree.py recall         span recall on the questions of the sample

Closeness is the adjusted Rand index between the passages below the children of the root and those of batches of 1. The
extractive model writes; the embedder is the bundled one.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from sklearn.metrics import adjusted_rand_score

from tomewise.evaluate.experiment import Experiment
from tomewise.memory.building import build
from tomewise.memory.growing_tree.memtree_layer import MemTreeLayer
from tomewise.memory.growing_tree.memtree_names import MemTreeNames, MemTreeRules
from tomewise.run import meter
from tomewise.sample import STORY
from tomewise.store.lookups import read_edges
from tomewise.store.records import BUILDS
from tomewise.tome.tome import Tome

BATCHES = (1, 8, 64, 400)
CUT = {"passage_tokens": 200, "overlap": 50}


def read_tops(tome: Tome, names: MemTreeNames) -> list[int]:
    """For each passage, in document order, the child of the root that it is below."""
    links = read_edges(tome.store, names.links).rows.tolist()
    parents = {int(child): int(place) for place, child, _ in links}

    def find_top(key: int) -> int:
        while key in parents:
            key = parents[key]
        return key

    return [find_top(key) for key in tome.store.passage_order()[0].tolist()]


def grow(path: Path) -> None:
    print(f"{path.name}: batch, scale, calls a passage, nodes, depth, most children, closeness to batch 1, seconds")
    for scale in (1.0, 15.0):
        paper: list[int] = []
        for batch in BATCHES:
            # A tome of its own, since calls that one has paid are free for later builds.
            with (
                tempfile.TemporaryDirectory() as folder,
                Tome.open(Path(folder) / "a.tome", model="extractive", settings={} if path == STORY else CUT) as tome,
            ):
                tome.add(path)
                passages = len(tome.store.passages())
                rules = MemTreeRules(batch=batch, depth_scale=scale)
                layer = MemTreeLayer(tome.kit.store, tome.kit.model, tome.kit.embedder, rules)
                started = time.process_time()
                with meter() as used:
                    asyncio.run(build([layer], tome.store, lambda _: None))
                seconds = time.process_time() - started
                tops = read_tops(tome, layer.names)
                if not paper:
                    paper = tops
                    print(f"{passages} passages", flush=True)
                record = tome.store.notes(BUILDS)[layer.name]
                calls = used.measure_cost().calls / passages
                closeness = adjusted_rand_score(paper, tops)
                shape = f"{record['nodes']:5} {record['depth']:3} {record['most_children']:5}"
                print(f"{batch:5} {scale:4g} {calls:6.2f} {shape} {closeness:6.2f} {seconds:6.1f}", flush=True)


def compare_recall() -> None:
    systems = ["naive", "raptor", *(f"memtree batch={batch}" for batch in BATCHES), "memtree:without aggregation"]
    with tempfile.TemporaryDirectory() as folder:
        print(Experiment(systems, data="sample", out=Path(folder), retrieval_only=True).run())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["grow", "recall"], nargs="?", default="grow")
    parser.add_argument("file", nargs="?", type=Path, default=STORY)
    arguments = parser.parse_args()
    if arguments.what == "grow":
        grow(arguments.file)
    else:
        compare_recall()
