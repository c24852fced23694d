"""What a pool on Ray costs and gains on this machine, beside the same work in this process, in one run.

`python bench/cluster.py` prints, for the bundled embedder over 2,000 passages and the extractive model over 2,000 asks,
processor time and time by the clock: this process with one thread, one worker, two workers. Then 1,280 asks of a server
that takes 0.5 s, at a limit of 64: this process, and four workers. Rounds alternate. It starts a cluster of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ["OMP_NUM_THREADS"] = "1"

from tests.language.openai_server import OpenAIServer, reply_with
from tests.texts import prose

from tomewise.cluster.pool_worker import ModelParts, WorkerParts
from tomewise.cluster.pooled_embedder import PooledEmbedder
from tomewise.cluster.pooled_model import PooledModel
from tomewise.cluster.worker_pool import WorkerPool
from tomewise.embedding.bundled import BundledMiniLM
from tomewise.language import roles
from tomewise.language.chat import ChatModel
from tomewise.language.extractive import ExtractiveModel

TICK = os.sysconf("SC_CLK_TCK")


def find_workers() -> dict[int, float]:
    """The processor seconds of each worker process."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (path / "cmdline").read_bytes().startswith(b"ray::Worker"):
                fields = (path / "stat").read_text().rpartition(")")[2].split()
                found[int(path.name)] = (int(fields[11]) + int(fields[12])) / TICK
    return found


def measure(work: Callable[[], object]) -> tuple[float, float]:
    """Processor seconds of this process and its workers together, and seconds by the clock."""
    before, own, begun = find_workers(), time.process_time(), time.perf_counter()
    work()
    clock = time.perf_counter() - begun
    after = find_workers()
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


def make_ask(model: Any, inputs: list[roles.PassageIn]) -> Callable[[], object]:
    """Ask for triples of all inputs, 16 at a time."""

    async def ask() -> None:
        slots = asyncio.Semaphore(16)

        async def ask_one(given: roles.PassageIn) -> None:
            async with slots:
                await model.ask(roles.EXTRACT_ENTITIES, given)

        await asyncio.gather(*map(ask_one, inputs))

    return lambda: asyncio.run(ask())


def compare_computing(count: int, rounds: int) -> None:
    """The embedder and the extractive model, in this process, with one worker and with two."""
    own = BundledMiniLM()
    parts = WorkerParts(embedder="bundled", model=ModelParts())
    pools = {name: WorkerPool(parts, size, threads=1) for size, name in ((1, "1 worker"), (2, "2 workers"))}
    for pool in pools.values():
        pool.open()
    text = prose(1, 200 * count).split()
    passages = [" ".join(text[150 * number : 150 * (number + 1)]) for number in range(count)]
    ways = {"this process": lambda: own.embed(passages)}
    ways |= {name: lambda pool=pool: PooledEmbedder(own, pool).embed(passages) for name, pool in pools.items()}  # type: ignore[misc]
    compare(f"{count:,} passages embedded", ways, rounds)
    model = ExtractiveModel(own)
    inputs = [roles.PassageIn(text=passage) for passage in passages]
    asks = {"this process": make_ask(model, inputs)}
    asks |= {name: make_ask(PooledModel(model, pool, 16), inputs) for name, pool in pools.items()}
    compare(f"{count:,} asks of the extractive model", asks, rounds)
    for pool in pools.values():
        pool.close()


def compare_waiting(asks: int, limit: int, rounds: int) -> None:
    """A server that takes half a second, asked from this process and from four workers."""
    with OpenAIServer(lambda _: reply_with('{"cue": "Mara hid it."}', delay=0.5)) as server:
        parts = WorkerParts(embedder="hash", model=ModelParts(model="openai:test", base_url=server.url, limit=limit))
        pool = WorkerPool(parts, 4)
        pool.open()
        inputs = [roles.FuseIn(question=f"Who hid letter {number}?", cues=["Mara."]) for number in range(asks)]

        def ask_all(pooled: bool, count: int = asks) -> None:
            own = ChatModel("openai:test", base_url=server.url, limit=limit)
            model = PooledModel(own, pool, limit) if pooled else own

            async def ask() -> None:
                await asyncio.gather(*(model.ask(roles.FUSE, given) for given in inputs[:count]))
                await own.close()

            asyncio.run(ask())

        for pooled in (False, True):
            ask_all(pooled, limit)  # the first ask of a process imports for a second
        compare(
            f"{asks:,} asks of 0.5 s at a limit of {limit}; the ideal is {asks / limit / 2:.1f} s",
            {"this process": lambda: ask_all(False), "4 workers": lambda: ask_all(True)},
            rounds,
        )
        print(f"  the server saw {server.most_at_once} requests at a time at most")
        pool.close()


def main() -> None:
    """Run all comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--waiting", action="store_true", help="only ask the server that takes its time")
    given = parser.parse_args()
    os.environ.setdefault("NO_PROXY", "127.0.0.1")
    if not given.waiting:
        compare_computing(given.passages, given.rounds)
    compare_waiting(1280, 64, given.rounds)


if __name__ == "__main__":
    main()
