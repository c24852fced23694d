"""Build ComoRAG's three layers of a novel: our own time a call, wall time and its ideal, estimates and real usage.

    .venv/bin/python bench/building.py [own] [latency] [estimate] [cycle] [--novel PATH] [--embedder NAME]

`own`       The model has every reply already: the extractive model was asked beforehand. Prints processor seconds of
            this process per call, without the time inside the embedder, and wall seconds.
`latency`   The model takes 0.5 s a call and 64 calls at a time. The ideal is the larger of calls / 64 and the longest
            chain of calls, times 0.5 s.
`estimate`  What `tome build --estimate` expects and what the extractive model then uses, for each layer of the novel
            and of the sample story.
`cycle`     One question whose first answer fails: wall time of each cycle of the probing loop, in latencies.

`own` and `latency` embed by hashing, so that they measure building and not the embedder. UMAP clusters the tree, as
always. Without the novel this script reads the sample story.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.language.cached import Cache
from tomewise.language.call_slots import CallSlots
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.prompts import Prompts
from tomewise.language.wrapped import Wrapped
from tomewise.memory.building import build, estimate
from tomewise.memory.passages import store_documents
from tomewise.reading.splitter import PassageSplitter
from tomewise.run import ModelCall, meter, report_call
from tomewise.sample import STORY
from tomewise.store.records import SETTINGS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.answer import answer_question
from tomewise.systems.comorag import comorag
from tomewise.systems.kit import Kit
from tomewise.testing import HashEmbedder, ScriptedModel
from tomewise.types import Document, Embedder, Event, LanguageModel, Layer, Progress, Question

NOVEL = Path(__file__).resolve().parents[2] / "shared" / "data" / "novels" / "gods_of_mars.txt"
LATENCY, LIMIT = 0.5, 64
MOST_OF_IDEAL = 1.2  # wall time of building all three layers, divided by the ideal
MOST_OF_CYCLE = 3.3  # latencies a cycle: three rounds of calls, and our own work


class TimedEmbedder:
    """An embedder that adds up the processor time of its thread."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed(self, texts: Sequence[str]) -> Any:
        start = time.thread_time()
        try:
            return self._embedder.embed(texts)
        finally:
            self.seconds += time.thread_time() - start


class ReadyModel:
    """A model that replies from memory: `latency` seconds after a call gets one of `limit` places.

    It passes a call that it does not remember on to another model.
    """

    name, window = "ready", 32_000

    def __init__(self, model: LanguageModel, *, latency: float = 0.0, limit: int = 10**6) -> None:
        self._model = model
        self._latency = latency
        self._slots = CallSlots(limit)
        self.replies: dict[tuple[str, str], Any] = {}

    async def ask(self, role: Any, given: Any) -> Any:
        key = (role.name, given.model_dump_json())
        start = time.perf_counter()
        async with self._slots.take():
            await asyncio.sleep(self._latency)
        if key not in self.replies:
            self.replies[key] = await self._model.ask(role, given)
        report_call(ModelCall(role.name, self.name, start, time.perf_counter(), 0, 0, dollars=0.0))
        return self.replies[key]

    def count_input_tokens(self, role: Any, given: Any) -> int:
        return self._model.count_input_tokens(role, given)


def ignore_progress(_: Progress) -> None:
    pass


@asynccontextmanager
async def open_filled_store(text: str, embedder: Embedder) -> AsyncIterator[SqlStore]:
    """A store that holds the text as passages."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqlStore.open(Path(folder) / "a.tome")
        with store.write() as change:
            change.put_note(SETTINGS, "dimensions", str(embedder.dimensions))
        splitter = PassageSplitter(embedder.tokenizer, embedder.max_tokens)
        await store_documents([Document(id="text", text=text)], store, embedder, splitter, lambda _: None)
        yield store
        store.close()


def make_layers(store: SqlStore, model: LanguageModel, embedder: Embedder) -> tuple[Layer, ...]:
    return comorag(Kit(store, Wrapped(model, Cache(Prompts(), store.calls)), embedder)).layers


def record_replies(text: str) -> dict[tuple[str, str], Any]:
    """The extractive model's replies to all calls of a build."""

    async def build_all() -> dict[tuple[str, str], Any]:
        embedder = HashEmbedder(384)
        model = ReadyModel(ExtractiveModel(embedder))
        async with open_filled_store(text, embedder) as store:
            await build(make_layers(store, model, embedder), store, ignore_progress)
        return model.replies

    return asyncio.run(build_all())


async def measure_own_time(name: str, text: str, replies: dict[tuple[str, str], Any], *, profile: bool) -> None:
    timed = TimedEmbedder(HashEmbedder(384))
    model = ReadyModel(ExtractiveModel(timed))
    model.replies = replies
    async with open_filled_store(text, timed) as store:
        timed.seconds = 0.0
        profiler = cProfile.Profile() if profile else None
        wall, processor = time.perf_counter(), time.process_time()
        with meter() as seen:
            if profiler:
                profiler.enable()
            await build(make_layers(store, model, timed), store, ignore_progress)
            if profiler:
                profiler.disable()
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    calls = seen.measure_cost().calls
    own_seconds = processor - timed.seconds
    print(
        f"own time, {name}: {calls} calls, {1000 * own_seconds / calls:.2f} ms each "
        f"({own_seconds:.2f} s processor and {timed.seconds:.2f} s embedding; {wall:.2f} s wall)"
    )
    if profiler:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


async def measure_latency(text: str, replies: dict[tuple[str, str], Any]) -> None:
    embedder = HashEmbedder(384)
    walls: dict[str, float] = {}
    ideal = 0.0
    for only in ("graph:passages-triples", "tree", "episodes", ""):
        model = ReadyModel(ExtractiveModel(embedder), latency=LATENCY, limit=LIMIT)
        model.replies = replies
        async with open_filled_store(text, embedder) as store:
            layers = [layer for layer in make_layers(store, model, embedder) if only in ("", layer.name)]
            start = time.perf_counter()
            with meter() as seen:
                await build(layers, store, ignore_progress)
            walls[only] = time.perf_counter() - start
        usage = seen.measure_cost()
        ideal = max(usage.calls / LIMIT, usage.depth) * LATENCY
        print(
            f"{only or 'all three':24}{usage.calls:5} calls, {usage.depth} deep: {walls[only]:6.2f} s wall, "
            f"{usage.model_seconds:6.2f} s of it with calls under way; the ideal is {ideal:.2f} s"
        )
    together = walls.pop("")
    print(f"all three, divided by the ideal of their calls: {together / ideal:.2f} (at most {MOST_OF_IDEAL} wanted)")
    print(f"all three, divided by the longest of them alone: {together / max(walls.values()):.2f}")
    print(f"one layer after the other: {sum(walls.values()):.2f} s")


async def compare_estimates(name: str, text: str, embedder: Embedder) -> None:
    model = ExtractiveModel(embedder)
    async with open_filled_store(text, embedder) as store:
        for layer in make_layers(store, model, embedder):
            (foreseen,) = await estimate([layer], store)
            with meter() as seen:
                await build([layer], store, ignore_progress)
            used = seen.measure_cost()
            for field in ("calls", "input_tokens", "output_tokens"):
                before, after = getattr(foreseen.cost, field), getattr(used, field)
                difference = f"{100 * (before - after) / after:+.1f} %" if after else "-"
                print(f"{name:8}{layer.name:24}{field:14} estimate {before:8}  used {after:8}  {difference}")


async def time_cycles(text: str) -> None:
    embedder = HashEmbedder(384)
    model = ScriptedModel(
        {
            "answer": lambda given: {"answer": "*" if given.may_decline else "at nine"},
            "encode": lambda given: {"cue": f"{given.probe}: {given.evidence[0].text[:80]}"},
            "fuse": lambda given: {"cue": " ".join(given.cues)[:400]},
            "probe": lambda given: {"probes": [f"probe {len(given.past_probes)} {n} of the river" for n in range(3)]},
        },
        latency=LATENCY,
        limit=LIMIT,
    )
    async with open_filled_store(text, embedder) as store:
        await build(make_layers(store, ExtractiveModel(embedder), embedder), store, ignore_progress)
        system = comorag(Kit(store, model, embedder))
        for attempt in ("cold", "warm"):
            ends: list[float] = []

            def note_update(event: Event, ends: list[float] = ends) -> None:
                if event.name == "updated":
                    ends.append(time.perf_counter())

            await answer_question(system, Question(text="Who came down the river?"), note_update)
            cycles = [(b - a) / LATENCY for a, b in pairwise(ends)]
            print(
                f"cycle ({attempt}): {', '.join(f'{latencies:.2f}' for latencies in cycles)} latencies each "
                f"(at most {MOST_OF_CYCLE} wanted)"
            )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["own", "latency", "estimate", "cycle"])
    parser.add_argument("--novel", type=Path, default=NOVEL)
    parser.add_argument("--embedder", default="bundled")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    story = STORY.read_text(encoding="utf-8")
    novel = options.novel.read_text(encoding="utf-8") if options.novel.exists() else story
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:  # in this process nothing is imported or compiled yet
        replies = pool.submit(record_replies, novel).result() if {"own", "latency"} & set(options.parts) else {}
    if "own" in options.parts:
        await measure_own_time("first (imports, compiles)", novel, replies, profile=False)
        await measure_own_time("again", novel, replies, profile=options.profile)
    if "latency" in options.parts:
        await measure_latency(novel, replies)
    if "estimate" in options.parts:
        embedder = choose_embedder(options.embedder)
        for name, text in {"sample": story, "novel": novel}.items():
            await compare_estimates(name, text, embedder)
    if "cycle" in options.parts:
        await time_cycles(novel)


if __name__ == "__main__":
    asyncio.run(main())
