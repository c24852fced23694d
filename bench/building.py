"""Building ComoRAG's three layers of a novel: our own time per call, wall time beside the ideal, estimates beside use.

    .venv/bin/python bench/building.py [own] [latency] [estimate] [cycle] [--novel PATH] [--embedder NAME]

`own`       A model that has every reply ready (the extractive model's, asked before): processor seconds of this
            process per call, with the time inside of the embedder taken off, and wall seconds.
`latency`   A model of 0.5 s, 64 calls at a time. The ideal is max(calls / 64, longest chain of calls) x 0.5 s.
`estimate`  `tome build --estimate` beside what the extractive model then used, per layer, for novel and sample story.
`cycle`     One question whose first answer fails: wall time of each cycle of the probing loop in latencies.

`own` and `latency` embed by hashing, so that they measure building and not the embedder; the tree is clustered with
UMAP as always. Without a novel the sample story is used.
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

from tomewise.embedding.choose_embedder import embedder_named
from tomewise.language.cached import Cached
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.places import Places
from tomewise.language.prompts import Prompts
from tomewise.language.usage import meter, spent
from tomewise.memory.building import build, estimate
from tomewise.memory.passages import PassagesLayer
from tomewise.reading.splitter import PassageSplitter
from tomewise.sample import STORY
from tomewise.store.sqlite.store import SqliteStore
from tomewise.systems.answer import answer_question
from tomewise.systems.comorag import comorag
from tomewise.systems.kit import Kit
from tomewise.testing import HashEmbedder, ScriptedModel
from tomewise.types import Document, Embedder, Event, LanguageModel, Layer, Progress, Question

NOVEL = Path(__file__).resolve().parents[2] / "shared" / "data" / "novels" / "gods_of_mars.txt"
LATENCY, LIMIT = 0.5, 64
MOST_OF_IDEAL = 1.2  # wall time of building all three layers
MOST_OF_CYCLE = 3.3  # latencies a cycle: three rounds of calls and our own work


class Timed:
    """An embedder that keeps count of the processor time of its thread."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed(self, texts: Sequence[str]) -> Any:
        begun = time.thread_time()
        try:
            return self._embedder.embed(texts)
        finally:
            self.seconds += time.thread_time() - begun


class Ready:
    """A model that gives the replies of another at once, or `latency` seconds after it has one of `limit` places.

    What it has not been asked before it asks the other one.
    """

    name, window = "ready", 32_000

    def __init__(self, model: LanguageModel, *, latency: float = 0.0, limit: int = 10**6) -> None:
        self._model = model
        self._latency = latency
        self._places = Places(limit)
        self.replies: dict[tuple[str, str], Any] = {}

    async def ask(self, role: Any, given: Any) -> Any:
        key = (role.name, given.model_dump_json())
        begun = time.perf_counter()
        async with self._places:
            await asyncio.sleep(self._latency)
        if key not in self.replies:
            self.replies[key] = await self._model.ask(role, given)
        spent(
            role.name,
            model=self.name,
            started=begun,
            ended=time.perf_counter(),
            input_tokens=0,
            output_tokens=0,
            cost=0.0,
        )
        return self.replies[key]

    def reckon(self, role: Any, given: Any) -> int:
        return self._model.reckon(role, given)


def quiet(_: Progress) -> None:
    pass


@asynccontextmanager
async def filled(text: str, embedder: Embedder) -> AsyncIterator[SqliteStore]:
    """A store that holds the text as passages."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore.open(Path(folder) / "a.tome")
        with store.write() as change:
            change.set_meta("dimensions", str(embedder.dimensions))
        layer = PassagesLayer(store, embedder, PassageSplitter(embedder.tokenizer, embedder.max_tokens))
        async for _ in layer.add([Document(id="text", text=text)]):
            pass
        yield store
        store.close()


def layers_of(store: SqliteStore, model: LanguageModel, embedder: Embedder) -> tuple[Layer, ...]:
    return comorag(Kit(store, Cached(model, Prompts(), store.calls), embedder)).layers


def ready(text: str) -> dict[tuple[str, str], Any]:
    """The extractive model's replies to all that building asks."""

    async def asked() -> dict[tuple[str, str], Any]:
        embedder = HashEmbedder(384)
        model = Ready(ExtractiveModel(embedder))
        async with filled(text, embedder) as store:
            await build(layers_of(store, model, embedder), store, quiet)
        return model.replies

    return asyncio.run(asked())


async def own(name: str, text: str, replies: dict[tuple[str, str], Any], *, profile: bool) -> None:
    timed = Timed(HashEmbedder(384))
    model = Ready(ExtractiveModel(timed))
    model.replies = replies
    async with filled(text, timed) as store:
        timed.seconds = 0.0
        profiler = cProfile.Profile() if profile else None
        wall, processor = time.perf_counter(), time.process_time()
        with meter() as seen:
            if profiler:
                profiler.enable()
            await build(layers_of(store, model, timed), store, quiet)
            if profiler:
                profiler.disable()
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    calls = seen.usage().total.calls
    spared = processor - timed.seconds
    print(
        f"own time, {name}: {calls} calls, {1000 * spared / calls:.2f} ms each "
        f"({spared:.2f} s processor and {timed.seconds:.2f} s embedding; {wall:.2f} s wall)"
    )
    if profiler:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


async def latency(text: str, replies: dict[tuple[str, str], Any]) -> None:
    embedder = HashEmbedder(384)
    walls: dict[str, float] = {}
    ideal = 0.0
    for chosen in ("graph:passages-triples", "tree", "episodes", ""):
        model = Ready(ExtractiveModel(embedder), latency=LATENCY, limit=LIMIT)
        model.replies = replies
        async with filled(text, embedder) as store:
            layers = [layer for layer in layers_of(store, model, embedder) if chosen in ("", layer.name)]
            begun = time.perf_counter()
            with meter() as seen:
                await build(layers, store, quiet)
            walls[chosen] = time.perf_counter() - begun
        usage = seen.usage()
        ideal = max(usage.total.calls / LIMIT, usage.depth) * LATENCY
        print(
            f"{chosen or 'all three':24}{usage.total.calls:5} calls, {usage.depth} deep: {walls[chosen]:6.2f} s wall, "
            f"{usage.model_seconds:6.2f} s of it with calls under way; ideal of the calls {ideal:.2f} s"
        )
    together = walls.pop("")
    print(f"all three beside the ideal of their calls: {together / ideal:.2f} (at most {MOST_OF_IDEAL} wanted)")
    print(f"all three beside the longest of them alone: {together / max(walls.values()):.2f}")
    print(f"one after the other: {sum(walls.values()):.2f} s")


async def estimates(name: str, text: str, embedder: Embedder) -> None:
    model = ExtractiveModel(embedder)
    async with filled(text, embedder) as store:
        for layer in layers_of(store, model, embedder):
            (foreseen,) = await estimate([layer], store)
            with meter() as seen:
                await build([layer], store, quiet)
            used = seen.usage().total
            for what in ("calls", "input_tokens", "output_tokens"):
                told, was = getattr(foreseen, what), getattr(used, what)
                off = f"{100 * (told - was) / was:+.1f} %" if was else "-"
                print(f"{name:8}{layer.name:24}{what:14} estimate {told:8}  used {was:8}  {off}")


async def cycle(text: str) -> None:
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
    async with filled(text, embedder) as store:
        await build(layers_of(store, ExtractiveModel(embedder), embedder), store, quiet)
        system = comorag(Kit(store, model, embedder))
        for attempt in ("cold", "warm"):
            ends: list[float] = []

            def seen(event: Event, ends: list[float] = ends) -> None:
                if event.name == "updated":
                    ends.append(time.perf_counter())

            await answer_question(system, Question(text="Who came down the river?"), seen)
            cycles = [(b - a) / LATENCY for a, b in pairwise(ends)]
            print(
                f"cycle ({attempt}): {', '.join(f'{one:.2f}' for one in cycles)} latencies each "
                f"(at most {MOST_OF_CYCLE} wanted)"
            )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["own", "latency", "estimate", "cycle"])
    parser.add_argument("--novel", type=Path, default=NOVEL)
    parser.add_argument("--embedder", default="bundled")
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    story = STORY.read_text(encoding="utf-8")
    novel = given.novel.read_text(encoding="utf-8") if given.novel.exists() else story
    with ProcessPoolExecutor(1, get_context("spawn")) as elsewhere:  # so that here nothing is imported and compiled yet
        replies = elsewhere.submit(ready, novel).result() if {"own", "latency"} & set(given.parts) else {}
    if "own" in given.parts:
        await own("first (imports, compiles)", novel, replies, profile=False)
        await own("again", novel, replies, profile=given.profile)
    if "latency" in given.parts:
        await latency(novel, replies)
    if "estimate" in given.parts:
        embedder = embedder_named(given.embedder)
        for name, text in {"sample": story, "novel": novel}.items():
            await estimates(name, text, embedder)
    if "cycle" in given.parts:
        await cycle(novel)


if __name__ == "__main__":
    asyncio.run(main())
