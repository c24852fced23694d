"""How the schemata of CAM grow: speed, calls of a batch, clusters online beside offline.

    python bench/schemata.py speed [--passages 100000]    an offline build and a batch of 100, without model time
    python bench/schemata.py batches [--memory 5119]      figure 3(a): calls and time beside a rebuild, one by one
    python bench/schemata.py overlap                      clusters against the truth, and online beside offline

Seconds are wall and processor time of this process; the machine may be shared. `batches` reads ../shared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import shutil
import tempfile
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.language.cached import Cached
from tomewise.language.prompts import Prompts
from tomewise.memory.building import build
from tomewise.memory.schemata.clusters import NO_LABEL, find_clusters
from tomewise.memory.schemata.levels import FIRST_LABEL, SlotLabels, find_labels
from tomewise.memory.schemata.network import Links, Network
from tomewise.memory.schemata.schemata_layer import SchemataLayer
from tomewise.store.sqlite.sqlite_store import SqliteStore
from tomewise.testing import HashEmbedder, ScriptedModel
from tomewise.types import Document, In, Out, Passage, Role, content_id

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
Cover = list[set[int]]  # overlapping clusters of vertices
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
    vectors, documents = draw_topics(passages + 300)
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore.open(Path(folder) / "a.tome")
        put_vectors(store, vectors[:passages], documents[:passages], 0)
        model = ScriptedModel({"summarise": lambda given: {"summary": given.texts[0][:80]}})
        layer = SchemataLayer(store, model, FakeEmbedder(DIMENSIONS))
        clock = Clock()
        await build([layer], store, quiet)
        print(f"{passages:,} passages: {clock}; {len(model.calls):,} calls; {store.builds()['schemata']['network']}")
        for batch in range(3):
            rows = slice(passages + 100 * batch, passages + 100 * batch + 100)
            put_vectors(store, vectors[rows], np.arange(100) // 20, 10_000_000 + 100 * batch)
            calls, clock = len(model.calls), Clock()
            await build([layer], store, quiet)
            visits = store.builds()["schemata"]["visits"]
            print(f"batch of 100: {clock}; {len(model.calls) - calls} calls; {visits:,} replicas visited")
        print(f"memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
        store.close()


class SlowModel(ScriptedModel):
    """A model of fixed latency. Its summary is another one whenever a text is another one."""

    def __init__(self, latency: float) -> None:
        super().__init__({"summarise": lambda given: {"summary": content_id("summary", *given.texts)}})
        self._latency = latency

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        await asyncio.sleep(self._latency)
        return await super().ask(role, given)


def read_wiki(limit: int) -> list[str]:
    lines = (SHARED / "wiki" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()[:limit]
    return [f"{row['title']}\n{row['text']}" for row in map(json.loads, lines)]


async def grow(store: SqliteStore, latency: float) -> tuple[int, float]:
    """Calls and seconds of a build of the schemata."""
    model = SlowModel(latency)
    clock = Clock()
    cached = Cached(
        model, Prompts(), store.calls
    )  # as a tome does: unchanged parts of a cluster are not asked for again
    await build([SchemataLayer(store, cached, FakeEmbedder(DIMENSIONS))], store, quiet)
    return len(model.calls), clock.wall


async def measure_batches(memory: int, latency: float, vectors: NDArray[np.float32]) -> None:
    """Every passage is a document of its own. A rebuild begins without a network, so it also sets the threshold."""
    with tempfile.TemporaryDirectory() as folder:
        base = SqliteStore.open(Path(folder) / "base.tome")
        put_vectors(base, vectors[:memory], np.arange(memory), 0)
        calls, seconds = await grow(base, latency)
        print(f"memory of {memory:,}: {calls:,} calls, {seconds:.1f} s; {base.builds()['schemata']['network']}")
        base.close()
        print("| batch | calls | s | calls of a rebuild | s | share | calls one by one | s |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for size in (1, 10, 100, 400, 1000):
            batch = vectors[memory : memory + size]
            cells = [str(size)]
            for whole in (False, True):
                store = SqliteStore.open(Path(folder) / f"{size}-{whole}.tome")
                if whole:
                    put_vectors(store, vectors[:memory], np.arange(memory), 0)
                else:
                    store.close()
                    shutil.copy(Path(folder) / "base.tome", store.path)
                    store = SqliteStore.open(store.path)
                put_vectors(store, batch, np.arange(len(batch)), memory)
                calls, seconds = await grow(store, latency)
                cells += [f"{calls:,}", f"{seconds:.1f}"]
                store.close()
            cells.append(f"{int(cells[1].replace(',', '')) / calls:.3f}")
            cells += await measure_one_by_one(Path(folder), batch, memory, latency) if size <= 100 else ["", ""]
            print(f"| {' | '.join(cells)} |", flush=True)


async def measure_one_by_one(folder: Path, batch: NDArray[np.float32], memory: int, latency: float) -> tuple[str, str]:
    path = folder / f"one-{len(batch)}.tome"
    shutil.copy(folder / "base.tome", path)
    store = SqliteStore.open(path)
    calls, seconds = 0, 0.0
    for number in range(len(batch)):
        put_vectors(store, batch[number : number + 1], np.zeros(1, np.int64), memory + number)
        more, took = await grow(store, latency)
        calls, seconds = calls + more, seconds + took
    store.close()
    return f"{calls:,}", f"{seconds:.1f}"


# ---------------------------------------------------------------- overlapping communities


def chain_cliques(count: int, size: int) -> tuple[Links, Cover]:
    """Cliques in a row; each shares one vertex with the next."""
    communities = [set(range(number * (size - 1), number * (size - 1) + size)) for number in range(count)]
    return link_pairs({pair for each in communities for pair in combinations(sorted(each), 2)}), communities


def plant_communities(vertices: int, shared: float, mixing: float, seed: int) -> tuple[Links, Cover]:
    """A benchmark graph in the way of Lancichinetti and Fortunato (2009), simpler: planted overlapping communities.

    Sizes are drawn from 15 to 40. The share `shared` of the vertices is in two communities. A vertex has about 10
    links in each of its communities; a share `mixing` of all links joins two random vertices.
    """
    random = np.random.default_rng(seed)
    places = np.concatenate((np.arange(vertices), random.choice(vertices, int(shared * vertices), replace=False)))
    order = random.permutation(len(places))
    communities, start = [], 0
    while start < len(order):
        size = int(random.integers(15, 41))
        communities.append(set(places[order[start : start + size]].tolist()))
        start += size
    pairs = set()
    for each in communities:
        density = min(1.0, 10 / max(1, len(each) - 1))
        pairs |= {pair for pair in combinations(sorted(each), 2) if random.random() < density}
    noise = int(mixing / (1 - mixing) * len(pairs))
    pairs |= {(min(a, b), max(a, b)) for a, b in random.integers(0, vertices, (noise, 2)).tolist() if a != b}
    return link_pairs(pairs), communities


def link_pairs(pairs: set[tuple[int, int]]) -> Links:
    table = np.array(sorted(pairs), np.int64)
    return Links.from_pairs(table[:, 0], table[:, 1], np.ones(len(table)))


def cluster_in_batches(links: Links, vertices: int, batch: int, seed: int) -> Cover:
    """The clusters of the lowest level when vertices come in random order, so many at a time."""
    arrival = np.random.default_rng(seed).permutation(vertices)
    none = np.empty(0, np.int64)
    known, born, names = SlotLabels(none, none, none), vertices, np.arange(vertices)
    for end in range(batch, vertices + batch, batch):
        is_here = np.zeros(vertices, np.bool_)
        is_here[arrival[:end]] = True
        here = is_here[links.a] & is_here[links.b]
        network = Network.from_links(vertices, Links(links.a[here], links.b[here], links.weights[here]))
        labels = find_labels(known, network.owners, network.neighbours)
        clusters = find_clusters(network, labels, names, FIRST_LABEL)
        is_known = clusters.labels != NO_LABEL
        fresh, places = np.unique(clusters.labels[is_known], return_inverse=True)
        is_new = fresh >= FIRST_LABEL
        fresh[is_new] = born + np.arange(np.count_nonzero(is_new))
        born += int(np.count_nonzero(is_new))
        known = SlotLabels(network.owners[is_known], network.neighbours[is_known], fresh[places])
    members: dict[int, set[int]] = {}
    for label, vertex in zip(clusters.member_labels.tolist(), clusters.member_vertices.tolist(), strict=True):
        members.setdefault(label, set()).add(vertex)
    return list(members.values())


def compute_omega(found: Cover, wanted: Cover, vertices: int) -> float:
    """The omega index (Collins and Dent 1988): do both put each pair into as many common clusters, beyond chance."""
    above = np.triu_indices(vertices, 1)
    counts = []
    for cover in (found, wanted):
        table = np.zeros((len(cover), vertices), np.float32)
        for row, members in enumerate(cover):
            table[row, list(members)] = 1
        counts.append(np.rint(table.T @ table)[above].astype(np.int64))
    observed = float((counts[0] == counts[1]).mean())
    shares = [np.bincount(each, minlength=1 + max(int(c.max()) for c in counts)) / len(each) for each in counts]
    expected = float(shares[0] @ shares[1])
    return (observed - expected) / (1 - expected)


def measure_overlap() -> None:
    graphs = {
        "30 cliques of 8, neighbours share a vertex": (*chain_cliques(30, 8), 211),
        "planted, 600 vertices, 10 % shared, mixing 0": (*plant_communities(600, 0.1, 0.0, 1), 600),
        "planted, 600 vertices, 10 % shared, mixing 0.1": (*plant_communities(600, 0.1, 0.1, 2), 600),
        "planted, 600 vertices, 30 % shared, mixing 0.1": (*plant_communities(600, 0.3, 0.1, 3), 600),
        "planted, 600 vertices, 10 % shared, mixing 0.3": (*plant_communities(600, 0.1, 0.3, 4), 600),
    }
    batches = (1, 10, 50, 200)
    print(f"| graph | clusters | offline and truth | {' | '.join(f'batches of {size}' for size in batches)} |")
    print("| --- " * (3 + len(batches)) + "|")
    for name, (links, truth, vertices) in graphs.items():
        offline = cluster_in_batches(links, vertices, vertices, 0)
        cells = [name, f"{len(offline)} (truth {len(truth)})", f"{compute_omega(offline, truth, vertices):.2f}"]
        for size in batches:
            online = [cluster_in_batches(links, vertices, size, seed) for seed in range(3)]
            beside = np.mean([compute_omega(each, offline, vertices) for each in online])
            right = np.mean([compute_omega(each, truth, vertices) for each in online])
            cells.append(f"{beside:.2f}, {right:.2f}")
        print(f"| {' | '.join(cells)} |")
    print("online: omega index with offline, then with the truth; means of 3 orders of arrival")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "batches", "overlap"], nargs="?", help="without it, all three")
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--memory", type=int, default=5_119)
    parser.add_argument("--latency", type=float, default=0.1, help="seconds of a call of the scripted model")
    parser.add_argument("--embedder", default="bundled")
    options = parser.parse_args()
    if options.what in (None, "speed"):
        asyncio.run(measure_speed(options.passages))
    if options.what in (None, "batches"):
        if SHARED.exists():
            vectors = choose_embedder(options.embedder).embed(read_wiki(options.memory + 1000))
            asyncio.run(measure_batches(options.memory, options.latency, vectors))
        else:
            print("batches are skipped: ../shared/data is absent")
    if options.what in (None, "overlap"):
        measure_overlap()


if __name__ == "__main__":
    main()
