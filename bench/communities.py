"""How communities come out on a novel with its given graph, and what later passages cost: reports paid again, own time.

    python bench/communities.py build                       communities, modularity, own time, calls and tokens
    python bench/communities.py later [1 10 40 100]         after so many more passages: kept, and made anew
    python bench/communities.py table [--latency 0.2]       index, ten documents more, one removed, a question a mode

The extractive model replies, after a fixed latency; the embedder is `hash`. Reads ../shared.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tomewise.language.extractive import ExtractiveModel
from tomewise.memory.communities.community_names import CommunityNames
from tomewise.memory.communities.community_state import load_state
from tomewise.memory.communities.partition import Partition, measure_modularity, renew
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.store.records import BUILDS
from tomewise.tome.tome import Tome
from tomewise.types import Document, In, Out, Role

NOVEL = Path(__file__).resolve().parents[2] / "shared" / "data" / "novels"
TEXT = (NOVEL / "gods_of_mars.txt").read_text(encoding="utf-8") if NOVEL.exists() else ""
GRAPH = NOVEL / "gods_of_mars_graph.jsonl"
NAMES = CommunityNames(GraphNames("passages", "relations"))
QUESTION = "Why does Phaidor hate Dejah Thoris?"
MODES = ("local", "global", "dynamic", "drift")


class SlowModel:
    """The extractive model as one that takes `latency` seconds a call. It counts what it was asked, by role."""

    def __init__(self, inner: ExtractiveModel, latency: float = 0.0) -> None:
        self._inner = inner
        self.window = inner.window
        self.latency = latency
        self.asked: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()

    name = "slow"

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        self.asked[role.name] += 1
        self.tokens[role.name] += len(given.model_dump_json()) // 4
        await asyncio.sleep(self.latency)
        return await self._inner.ask(role, given)

    def count_input_tokens(self, role: Role[In, Out], given: In) -> int:
        return self._inner.count_input_tokens(role, given)


def open_tome(folder: str, latency: float = 0.0) -> tuple[Tome, SlowModel]:
    tome = Tome.open(Path(folder) / "novel.tome", embedder="hash")
    model = SlowModel(ExtractiveModel(tome.kit.embedder), latency)
    tome.close()
    return Tome.open(Path(folder) / "novel.tome", embedder="hash", model=model), model


def measure_partition(tome: Tome, partition: Partition) -> tuple[float, set[str]]:
    """The modularity of level 0, and what the reports about all communities would have to be new for."""
    state = load_state(tome.store, NAMES)
    state.partition = partition
    tops = [each.members for each in partition.list_children(None)]
    inner = state.list_inner_pairs()
    digests = {state.make_digest(partition.communities[number], pairs) for number, pairs in inner.items()}
    return measure_modularity(state.graph, tops), digests


def divide_anew(tome: Tome) -> Partition:
    partition = Partition()
    renew(partition, load_state(tome.store, NAMES).graph, ())
    return partition


def run_build() -> None:
    with tempfile.TemporaryDirectory() as folder:
        tome, model = open_tome(folder)
        with tome:
            tome.add(Document(id="novel", text=TEXT))
            tome.build("hgmem", extractions=GRAPH)
            wall, processor = time.perf_counter(), time.process_time()
            tome.build("graphrag gleanings=0")
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
            record = tome.store.notes(BUILDS)[NAMES.layer]
            state = load_state(tome.store, NAMES)
            started = time.process_time()
            divide_anew(tome)
            print(f"{len(state.graph.neighbours):,} entities, {len(state.weights):,} pairs: {record['communities']},")
            print(
                f"modularity {record['modularity']}, {record['reports']} reports; {wall:.1f} s, own {processor:.1f} s,"
            )
            print(f"of which loading and dividing {time.process_time() - started:.2f} s; calls {dict(model.asked)},")
            print(f"prompt tokens about {model.tokens['write_report']:,}")


def run_later(counts: Sequence[int]) -> None:
    """Build without the last passages of the novel, then add these."""
    with tempfile.TemporaryDirectory() as folder:
        tome, _ = open_tome(folder)
        with tome:
            tome.add(Document(id="novel", text=TEXT))
            starts = [passage.start for passage in tome.store.passages().values()]
    for count in counts:
        cut = starts[-count]
        with tempfile.TemporaryDirectory() as folder:
            tome, model = open_tome(folder)
            with tome:
                tome.add(Document(id="first", text=TEXT[:cut]))
                tome.build("hgmem", extractions=GRAPH)
                tome.build("graphrag gleanings=0")
                before, paid = (
                    measure_partition(tome, load_state(tome.store, NAMES).partition),
                    model.asked["write_report"],
                )
                tome.add(Document(id="last", text=TEXT[cut:]))
                tome.build("hgmem", extractions=GRAPH)
                started = time.process_time()
                tome.build("graphrag gleanings=0")
                spent = time.process_time() - started
                kept = measure_partition(tome, load_state(tome.store, NAMES).partition)
                anew = measure_partition(tome, divide_anew(tome))
                print(
                    f"{count:>4} passages more: {model.asked['write_report'] - paid} of {len(kept[1])} reports paid "
                    f"({paid} before), modularity {kept[0]:.3f}; Leiden anew: {len(anew[1] - before[1])} of "
                    f"{len(anew[1])}, {anew[0]:.3f}; {spent:.1f} s processor"
                )


def run_table(latency: float) -> None:
    """Index, change, ask: wall seconds, calls, and our own processor time."""
    with tempfile.TemporaryDirectory() as folder:
        tome, model = open_tome(folder, latency)
        with tome:
            parts = [TEXT[start : start + 1500] for start in range(len(TEXT) - 15_000, len(TEXT), 1500)]
            tome.add(Document(id="novel", text=TEXT[:-15_000]))

            def measure(what: str, run: Any) -> None:
                asked, tokens = model.asked.total(), model.tokens.total()
                wall, processor = time.perf_counter(), time.process_time()
                run()
                calls = model.asked.total() - asked
                print(
                    f"| {what} | {time.perf_counter() - wall:.1f} | {calls:,} | {model.tokens.total() - tokens:,} "
                    f"| {time.process_time() - processor:.1f} |",
                    flush=True,
                )

            def index() -> None:
                tome.build("graphrag gleanings=0")

            def add() -> None:
                tome.add(*(Document(id=f"part {number}", text=part) for number, part in enumerate(parts)))
                tome.build("graphrag gleanings=0")

            def remove() -> None:
                tome.remove("part 3")
                tome.build("graphrag gleanings=0")

            print("| what | wall s | calls | prompt tokens | processor s |\n| --- | --- | --- | --- | --- |")
            measure("index", index)
            measure("ten documents added", add)
            measure("one document removed", remove)
            for mode in MODES:
                measure(f"a question, {mode}", lambda mode=mode: tome.ask(QUESTION, system=f"graphrag mode={mode}"))
            size = sum(each.stat().st_size for each in Path(folder).rglob("*") if each.is_file())
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            print(f"disk {size / 1e6:.1f} MB, peak memory {peak / 1e3:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("build", "later", "table"), default="build")
    parser.add_argument("counts", nargs="*", type=int, default=(1, 10, 40, 100))
    parser.add_argument("--latency", type=float, default=0.2)
    given = parser.parse_args()
    runs: Mapping[str, Any] = {
        "build": run_build,
        "later": lambda: run_later(given.counts),
        "table": lambda: run_table(given.latency),
    }
    runs[given.what]()


if __name__ == "__main__":
    main()
