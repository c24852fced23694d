"""How the schemata of CAM grow: speed, calls of a batch, clusters online beside offline, recall by batch size.

    python bench/schemata.py speed [--passages 100000]    an offline build and a batch of 100, without model time
    python bench/schemata.py batches [--memory 5119]      figure 3(a): calls and time of a batch, of a rebuild, one by one
    python bench/schemata.py overlap                      clusters against the truth, and online beside offline
    python bench/schemata.py recall                       figure 3(b): recall by batch size, extractive model

Seconds are wall and processor time of this process; the machine may be shared. `batches` and `recall` read ../shared.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.memory.building import build
from tomewise.memory.schemata.clusters import NO_LABEL
from tomewise.memory.schemata.levels import SlotLabels, grow_levels
from tomewise.memory.schemata.network import Links
from tomewise.memory.schemata.schemata_layer import SchemataLayer
from tomewise.store.sqlite.store import SqliteStore
from tomewise.testing import HashEmbedder, ScriptedModel
from tomewise.types import Document, Embedder, Passage, content_id

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
DIMENSIONS = 384
TOPIC = 50  # passages of one topic, about


class Clock:
    """Wall and processor seconds since it was made."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    @property
    def wall(self) -> float:
        return time.perf_counter() - self._wall

    def __str__(self) -> str:
        return f"{self.wall:.1f} s, {time.process_time() - self._processor:.1f} s processor"


class FakeEmbedder(HashEmbedder):
    """Vectors of summaries at once: equal for all texts. Those of passages are given."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        rows[:, 0] = 1
        return rows


def quiet(_: object) -> None:
    pass


def put_vectors(store: SqliteStore, vectors: NDArray[np.float32], documents: NDArray[np.int64], first: int) -> None:
    """Add passages with these vectors, several to a document; `documents` ascend."""
    with store.write() as change:
        change.set_meta("dimensions", str(vectors.shape[1]))
        starts = np.flatnonzero(np.diff(documents, prepend=-1))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(documents)], strict=True):
            name = f"d{first + int(documents[start]):08}"
            texts = [f"Passage {number} of {name}." for number in range(end - start)]
            passages = [
                Passage(id=content_id("p", name, number), document=name, position=number, start=0, end=0, text=text)
                for number, text in enumerate(texts)
            ]
            keys = change.put_document(Document(id=name, text=" ".join(texts)), content_id("d", name), passages)
            change.put_vectors("passages", keys, vectors[start:end])


def draw_topics(count: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Vectors around random topics, and a document of about 20 passages for each."""
    random = np.random.default_rng(seed)
    topics = random.normal(size=(max(1, count // TOPIC), DIMENSIONS)).astype(np.float32)
    vectors = topics[random.integers(0, len(topics), count)] + np.float32(1.2) * random.normal(
        size=(count, DIMENSIONS)
    ).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors, np.sort(random.integers(0, max(1, count // 20), count))


async def measure_speed(passages: int) -> None:
    vectors, documents = draw_topics(passages + 100)
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore.open(Path(folder) / "a.tome")
        put_vectors(store, vectors[:passages], documents[:passages], 0)
        model = ScriptedModel({"summarise": lambda given: {"summary": given.texts[0][:80]}})
        layer = SchemataLayer(store, model, FakeEmbedder(DIMENSIONS))
        clock = Clock()
        await build([layer], store, quiet)
        print(f"{passages:,} passages: {clock}; {len(model.calls):,} calls; {store.builds()['schemata']['network']}")
        for batch in range(3):
            rows = slice(passages + 30 * batch, passages + 30 * batch + 100)
            put_vectors(store, vectors[rows], np.arange(len(vectors[rows])) // 20, 10_000_000 + 100 * batch)
            calls, clock = len(model.calls), Clock()
            await build([layer], store, quiet)
            print(f"batch of {len(vectors[rows])}: {clock}; {len(model.calls) - calls} calls")
        print(f"memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
        store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed"])
    parser.add_argument("--passages", type=int, default=100_000)
    options = parser.parse_args()
    asyncio.run(measure_speed(options.passages))


if __name__ == "__main__":
    main()
