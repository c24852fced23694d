"""What a pool on Ray costs and gains on this machine, beside the same work in this process, in one run.

`python bench/cluster.py [--only passages,asks,waiting]` starts two nodes and prints processor time and time by the
clock of three things. The bundled embedder over 2,000 passages and the extractive model over 2,000 asks of a quick role
and of one that compares meanings: this process with one thread, one worker, two workers. Then 1,280 asks, through
the cache of replies, of a server that takes 0.5 s, at a limit of 64: this process, and four workers that never asked
before. Rounds alternate.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ["OMP_NUM_THREADS"] = "1"

from tests.cluster.killing import find_processes
from tests.cluster.two_nodes import start_nodes
from tests.language.openai_server import OpenAIServer, reply_with
from tests.texts import prose

from tomewise.cluster.pooled_embedder import PooledEmbedder
from tomewise.cluster.pooled_model import PooledAsks
from tomewise.cluster.worker_parts import ModelParts, WorkerParts
from tomewise.cluster.worker_pool import WorkerPool
from tomewise.embedding.bundled import BundledMiniLM
from tomewise.embedding.cached_embedder import CachedEmbedder
from tomewise.language import roles
from tomewise.language.cached import Cache
from tomewise.language.chat import ChatModel
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.prompts import Prompts
from tomewise.language.wrapped import Wrapped
from tomewise.tome.open_store import open_store

TICK = os.sysconf("SC_CLK_TCK")


def read_workers() -> dict[int, float]:
    """The processor seconds of each worker process."""
    found = {}
    for process in find_processes("Worker"):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        found[process] = (int(fields[11]) + int(fields[12])) / TICK
    return found


def measure(work: Callable[[], object]) -> tuple[float, float]:
    """Processor seconds of this process and its workers together, and seconds by the clock."""
    before, own, begun = read_workers(), time.process_time(), time.perf_counter()
    work()
    clock = time.perf_counter() - begun
    after = read_workers()
    return time.process_time() - own + sum(after[each] - before.get(each, 0.0) for each in after), clock


def compare(what: str, ways: dict[str, Callable[[], object]], rounds: int) -> None:
    """Print the medians of each way, and their ratios to the first."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, work in ways.items():
            found[name].append(measure(work))
    print(f"{what}, median of {rounds} rounds; load {os.getloadavg()[0]:.1f}")
    first: tuple[float, float] | None = None
    for name, measured in found.items():
        processor, clock = median(each[0] for each in measured), median(each[1] for each in measured)
        first = first or (processor, clock)
        ratios = f"{processor / first[0]:.2f} and {clock / first[1]:.2f} of the first"
        print(f"  {name:<14} {processor:7.2f} s of processor, {clock:7.2f} s by the clock: {ratios}")


def make_ask(model: Any, role: Any, inputs: Sequence[Any]) -> Callable[[], object]:
    """Ask about all inputs, 16 at a time."""

    async def ask() -> None:
        slots = asyncio.Semaphore(16)

        async def ask_one(given: Any) -> None:
            async with slots:
                await model.ask(role, given)

        await asyncio.gather(*map(ask_one, inputs))

    return lambda: asyncio.run(ask())


def compare_computing(count: int, rounds: int, chosen: Sequence[str]) -> None:
    """The embedder and the extractive model, in this process, with one worker and with two."""
    own = BundledMiniLM()
    parts = WorkerParts(embedder="bundled", model=ModelParts())
    pools = {name: WorkerPool(parts, size, threads=1) for size, name in ((1, "1 worker"), (2, "2 workers"))}
    for pool in pools.values():
        pool.open()
    text = prose(1, 200 * count).split()
    passages = [" ".join(text[150 * number : 150 * (number + 1)]) for number in range(count)]
    if "passages" in chosen:
        ways = {"this process": lambda: own.embed(passages)}
        ways |= {name: lambda pool=pool: PooledEmbedder(own, pool).embed(passages) for name, pool in pools.items()}  # type: ignore[misc]
        compare(f"{count:,} passages embedded", ways, rounds)
    if "asks" in chosen:
        model = ExtractiveModel(CachedEmbedder(own))
        facts = [" ".join(text[10 * number : 10 * (number + 1)]) for number in range(5 * count)]
        asks: dict[Any, list[Any]] = {
            roles.EXTRACT_ENTITIES: [roles.PassageIn(text=passage) for passage in passages],
            roles.FILTER_FACTS: [
                roles.FilterIn(question=f"Who keeps lamp {number}?", facts=facts[5 * number : 5 * (number + 1)])
                for number in range(count)
            ],
        }
        for role, inputs in asks.items():
            ways = {"this process": make_ask(model, role, inputs)}
            ways |= {name: make_ask(Wrapped(model, PooledAsks(pool, 16)), role, inputs) for name, pool in pools.items()}
            compare(f"{count:,} asks of the extractive model for {role.name}", ways, rounds)
    for pool in pools.values():
        pool.close()


def compare_waiting(asks: int, limit: int, rounds: int) -> None:
    """A server that takes half a second, asked from this process and from four new workers."""
    pools: list[WorkerPool] = []
    inputs = [roles.FuseIn(question=f"Who hid letter {number}?", cues=["Mara."]) for number in range(asks)]
    with OpenAIServer(lambda _: reply_with('{"cue": "Mara hid it."}', delay=0.5)) as server:
        parts = WorkerParts(embedder="hash", model=ModelParts(model="openai:test", base_url=server.url, limit=limit))

        def ask_all(count: int, *, pooled: bool) -> None:
            own = ChatModel("openai:test", base_url=server.url, limit=limit)
            model = Wrapped(own, PooledAsks(pools.pop(), limit)) if pooled else own
            with tempfile.TemporaryDirectory() as folder, closing(open_store(Path(folder) / "a.tome")) as store:
                cached = Wrapped(model, Cache(Prompts(), store.calls))

                async def ask() -> None:
                    await asyncio.gather(*(cached.ask(roles.FUSE, given) for given in inputs[:count]))
                    await own.close()

                asyncio.run(ask())

        ask_all(limit, pooled=False)  # the first ask of this process imports for a second
        opened = []
        for _ in range(rounds):
            begun = time.perf_counter()
            pool = WorkerPool(parts, 4)
            pool.open()
            opened.append(pool)
            print(f"  4 workers started in {time.perf_counter() - begun:.1f} s")
        pools += opened
        compare(
            f"{asks:,} asks of 0.5 s at a limit of {limit}; the ideal is {asks / limit / 2:.1f} s",
            {"this process": lambda: ask_all(asks, pooled=False), "4 workers": lambda: ask_all(asks, pooled=True)},
            rounds,
        )
        print(f"  the server saw {server.most_at_once} requests at a time at most")
        for pool in opened:
            pool.close()


def main() -> None:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="passages,asks,waiting", help="which comparisons, with commas between")
    given = parser.parse_args()
    chosen = given.only.split(",")
    with start_nodes():
        if "waiting" in chosen:
            compare_waiting(1280, 64, given.rounds)
        if {"passages", "asks"} & set(chosen):
            compare_computing(given.passages, given.rounds, chosen)


if __name__ == "__main__":
    main()
