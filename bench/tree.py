"""The summary tree of a novel: how long clustering takes, our own time per call, and how near the estimate comes.

`python bench/tree.py PATH.txt` cuts and embeds the text with the bundled embedder, then builds its tree with a model
that answers at once (the first words of the texts) and, in a second tome, with the extractive model. Times are
processor seconds of this process and, beside them, wall seconds; embedding summaries is left out of our own time.
`--pca` does the same without UMAP.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.roles import SummaryIn
from tomewise.language.usage import meter
from tomewise.memory.building import build, estimate
from tomewise.memory.passages import PassagesLayer
from tomewise.memory.tree.clustering import Reduction, best_reduction, clusters, pca
from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.reading.splitter import PassageSplitter
from tomewise.store.sqlite.store import SqliteStore
from tomewise.testing import ScriptedModel
from tomewise.types import Document, Embedder, LanguageModel, Progress


@dataclass
class Clock:
    """Seconds taken."""

    processor: float = 0.0
    wall: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        processor, wall = time.process_time(), time.perf_counter()
        yield
        self.processor += time.process_time() - processor
        self.wall += time.perf_counter() - wall

    def __str__(self) -> str:
        return f"{self.processor:6.2f} s processor, {self.wall:6.2f} s wall"


class Timed:
    """An embedder that keeps count of its time."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.clock = Clock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed(self, texts: Sequence[str]) -> Any:
        with self.clock.running():
            return self._embedder.embed(texts)


def at_once(given: SummaryIn) -> dict[str, str]:
    return {"summary": " ".join(given.texts)[: 4 * given.max_tokens]}


def quiet(_: Progress) -> None:
    pass


async def filled(path: Path, text: str, embedder: Embedder) -> SqliteStore:
    store = SqliteStore.open(path)
    with store.write() as change:
        change.set_meta("dimensions", str(embedder.dimensions))
    layer = PassagesLayer(store, embedder, PassageSplitter(embedder.tokenizer, embedder.max_tokens))
    async for _ in layer.add([Document(id="novel", text=text)]):
        pass
    return store


def cluster(store: SqliteStore, embedder: Embedder, reduction: Reduction) -> None:
    passages = store.passages()
    texts = [passage.content for passage in passages.values()]
    tokens = [len(found.ids) for found in embedder.tokenizer.encode_batch(texts, add_special_tokens=False)]
    for attempt in ("first (imports and compiles)", "again"):
        clock = Clock()
        with clock.running():
            found = clusters(store.vectors("passages").rows, tokens, reduction, 3500)
        print(f"cluster {len(texts)} passages, {reduction.name}, {attempt:29}{clock}; {len(found)} clusters")


async def grow(
    name: str, store: SqliteStore, timed: Timed, make: Callable[[Any], LanguageModel], reduction: Reduction
) -> None:
    layer = TreeLayer(store, make(timed), timed, reduction=reduction)
    (foreseen,) = await estimate([layer], store)
    timed.clock = Clock()
    clock = Clock()
    with clock.running(), meter() as seen:
        await build([layer], store, quiet)
    used = seen.usage().total
    own = (clock.processor - timed.clock.processor) / used.calls
    print(f"build, {name:12}{clock}; embedding {timed.clock}; levels {store.builds()['tree']['sizes']}")
    print(
        f"  {1000 * own:.1f} ms processor per call, embedding apart (and the model's own time, where it is extractive)"
    )
    for what in ("calls", "input_tokens", "output_tokens"):
        told, was = getattr(foreseen, what), getattr(used, what)
        print(f"  {what:14}estimate {told:8}  used {was:8}  {100 * (told - was) / was:+.1f} %")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--pca", action="store_true")
    parser.add_argument("--embedder", default="bundled")
    given = parser.parse_args()
    reduction = Reduction("pca", pca) if given.pca else best_reduction()
    timed = Timed(choose_embedder(given.embedder))
    text = given.path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        store = await filled(Path(folder) / "a.tome", text, timed)
        cluster(store, timed, reduction)
        await grow("at once", store, timed, lambda _: ScriptedModel({"summarise": at_once}), reduction)
        with store.write() as change:
            change.remove_nodes(store.node_keys("tree"))
            change.forget_layer("tree")
        await grow("extractive", store, timed, ExtractiveModel, reduction)
        store.close()


if __name__ == "__main__":
    asyncio.run(main())
