"""The summary tree of a novel: how long clustering takes, our own time a call, and how exact the estimate is.

`python bench/tree.py [PATH.txt]` cuts and embeds the text (the novel of ../shared, or the bundled story if the novel is
absent) with the bundled embedder. It builds the tree twice: with a model that answers at once with the first words of
the texts, and with the extractive model. Times are processor seconds of this process, then wall seconds. Our own time
does not include embedding summaries. `--pca` clusters without UMAP, `--scikit-learn` by the mixtures of scikit-learn.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.mixture import GaussianMixture

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.roles import SummaryIn
from tomewise.memory.build_records import forget_layer
from tomewise.memory.building import build, estimate
from tomewise.memory.passages import store_documents
from tomewise.memory.tree import clustering
from tomewise.memory.tree.clustering import Fit, Reduction, choose_reduction, find_clusters, reduce_by_pca
from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.reading.splitter import PassageSplitter
from tomewise.run import meter
from tomewise.sample import STORY
from tomewise.store.lookups import read_vectors
from tomewise.store.records import BUILDS, SETTINGS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import ScriptedModel
from tomewise.types import Document, Embedder, LanguageModel, Progress

NOVEL = Path(__file__).resolve().parents[2] / "shared" / "data" / "novels" / "gods_of_mars.txt"


@dataclass
class Clock:
    """Seconds of processor and wall time."""

    processor: float = 0.0
    wall: float = 0.0

    @contextmanager
    def measure(self) -> Iterator[None]:
        processor, wall = time.process_time(), time.perf_counter()
        yield
        self.processor += time.process_time() - processor
        self.wall += time.perf_counter() - wall

    def __str__(self) -> str:
        return f"{self.processor:6.2f} s processor, {self.wall:6.2f} s wall"


class TimedEmbedder:
    """An embedder that adds up its time."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.clock = Clock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed(self, texts: Sequence[str]) -> Any:
        with self.clock.measure():
            return self._embedder.embed(texts)


def reply_at_once(given: SummaryIn) -> dict[str, str]:
    return {"summary": " ".join(given.texts)[: 4 * given.max_tokens]}


def ignore_progress(_: Progress) -> None:
    pass


def find_best_fit_by_scikit_learn(points: Any, most: int, seed: int, _: Any) -> Fit:
    """As `mixture.find_best_fit`, without the checks of arguments that can be switched off."""
    most = min(most, len(np.unique(points, axis=0)))
    with warnings.catch_warnings(), config_context(assume_finite=True, skip_parameter_validation=True):
        warnings.simplefilter("ignore")  # it warns of 100 steps without convergence
        found = [GaussianMixture(count, random_state=seed).fit(points) for count in range(1, most + 1)]
        best = min(found, key=lambda mixture: mixture.bic(points))
        return Fit(best.predict_proba(points), best.score(points) * len(points), best.bic(points))


async def make_filled_store(path: Path, text: str, embedder: Embedder) -> SqlStore:
    store = SqlStore.open(path)
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", str(embedder.dimensions))
    splitter = PassageSplitter(embedder.tokenizer, embedder.max_tokens)
    await store_documents([Document(id="novel", text=text)], store, embedder, splitter, lambda _: None)
    return store


def time_clustering(store: SqlStore, embedder: Embedder, reduction: Reduction) -> None:
    passages = store.passages()
    texts = [passage.content for passage in passages.values()]
    tokens = [len(found.ids) for found in embedder.tokenizer.encode_batch(texts, add_special_tokens=False)]
    for attempt in ("first (imports and compiles)", "again"):
        clock = Clock()
        with clock.measure():
            found = find_clusters(read_vectors(store, "passages").rows, tokens, reduction, 3500)
        print(f"cluster {len(texts)} passages, {reduction.name}, {attempt:29}{clock}; {len(found)} clusters")


async def measure_build(
    name: str, store: SqlStore, timed: TimedEmbedder, make: Callable[[Any], LanguageModel], reduction: Reduction
) -> None:
    layer = TreeLayer(store, make(timed), timed, reduction=reduction)
    (foreseen,) = await estimate([layer], store)
    timed.clock = Clock()
    clock = Clock()
    with clock.measure(), meter() as seen:
        await build([layer], store, ignore_progress)
    used = seen.measure_cost()
    own = (clock.processor - timed.clock.processor) / used.calls
    print(f"build, {name:12}{clock}; embedding {timed.clock}; levels {store.notes(BUILDS)['tree']['sizes']}")
    print(f"  {1000 * own:.1f} ms processor a call, without embedding (with the model's own time if it is extractive)")
    for field in ("calls", "input_tokens", "output_tokens"):
        before, after = getattr(foreseen, field), getattr(used, field)
        print(f"  {field:14}estimate {before:8}  used {after:8}  {100 * (before - after) / after:+.1f} %")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, nargs="?", default=NOVEL if NOVEL.exists() else STORY)
    parser.add_argument("--pca", action="store_true")
    parser.add_argument("--embedder", default="bundled")
    parser.add_argument("--scikit-learn", action="store_true")
    options = parser.parse_args()
    if options.scikit_learn:
        clustering.find_best_fit = find_best_fit_by_scikit_learn
    reduction = Reduction("pca", reduce_by_pca) if options.pca else choose_reduction()
    timed = TimedEmbedder(choose_embedder(options.embedder))
    text = options.path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        store = await make_filled_store(Path(folder) / "a.tome", text, timed)
        time_clustering(store, timed, reduction)
        await measure_build("at once", store, timed, lambda _: ScriptedModel({"summarise": reply_at_once}), reduction)
        with store.write() as change:
            change.remove_nodes(store.node_keys("tree"))
            forget_layer(change, "tree")
        await measure_build("extractive", store, timed, ExtractiveModel, reduction)
        store.close()


if __name__ == "__main__":
    asyncio.run(main())
