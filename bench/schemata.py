"""How the schemata of CAM come out and what they cost: clusters, overlap, calls of a batch, speed.

    python bench/schemata.py clusters                     sizes, coverage and overlap on three corpora and 35 meetings
    python bench/schemata.py overlap                      against planted communities, beside other rules
    python bench/schemata.py batches [--data wiki]        figure 3(a): calls of a batch beside a rebuild, one by one
    python bench/schemata.py speed [--passages 100000]    a build and batches of 100, without model time

Seconds are processor time of this process unless they say wall; the machine may be shared. Reads ../shared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from tomewise.evaluate.datasets import read_dataset
from tomewise.memory.building import build
from tomewise.memory.schemata.hierarchy import MOST, Hierarchy, find_clusters, grow_hierarchy
from tomewise.memory.schemata.kernels import find_components
from tomewise.memory.schemata.network import Links, Lists, Network, Passages, complete_lists
from tomewise.memory.schemata.schemata_layer import SchemataLayer
from tomewise.memory.schemata.schemata_names import USUAL, SchemataRules
from tomewise.store.records import BUILDS, SETTINGS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Document, Passage, content_id

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


def put_vectors(store: SqlStore, vectors: NDArray[np.float32], documents: NDArray[np.int64], first: int) -> None:
    """Add passages with these vectors, several to a document; `documents` ascend."""
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", str(vectors.shape[1]))
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
        store = SqlStore.open(Path(folder) / "a.tome")
        put_vectors(store, vectors[:passages], documents[:passages], 0)
        model = ScriptedModel({"summarise": lambda given: {"summary": given.texts[0][:80]}})
        layer = SchemataLayer(store, model, FakeEmbedder(DIMENSIONS))
        clock = Clock()
        await build([layer], store, quiet)
        network = store.notes(BUILDS)["schemata"]["network"]
        print(f"{passages:,} passages: {clock}; {len(model.calls):,} calls; clusters {network['clusters']}", flush=True)
        for batch in range(3):
            rows = slice(passages + 100 * batch, passages + 100 * batch + 100)
            put_vectors(store, vectors[rows], np.arange(100) // 20, 10_000_000 + 100 * batch)
            calls, clock = len(model.calls), Clock()
            await build([layer], store, quiet)
            print(f"batch of 100: {clock}; {len(model.calls) - calls} calls", flush=True)
        print(f"memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
        store.close()


def say_which(given: object) -> dict[str, str]:
    """A summary that is another one whenever a text is another one."""
    return {"summary": f"What these texts say is known as {content_id('summary', *given.texts)}."}  # type: ignore[attr-defined]


def read_corpus(name: str) -> list[Document]:
    """`carol`, `musique`, `wiki`, or `qmsum` with the number of a meeting."""
    if name == "carol":
        text = (SHARED / "novels" / "christmas_carol.txt").read_text(encoding="utf-8")
        return [Document(id="carol", text=text)]
    if name == "wiki":
        rows = map(json.loads, (SHARED / "wiki" / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
        return [Document(id=f"w{row['id']:05}", title=row["title"], text=row["text"]) for row in rows]
    if name.startswith("qmsum"):
        return [read_dataset("qmsum", SHARED / "qmsum").documents[int(name.removeprefix("qmsum"))]]
    return list(read_dataset("auto", SHARED / name).documents)


def embed(documents: Sequence[Document]) -> Passages:
    """The passages of documents with the vectors of the bundled embedder, in document order."""
    with tempfile.TemporaryDirectory() as folder, Tome.open(Path(folder) / "a.tome", model="extractive") as tome:
        tome.add(*documents)
        keys, homes, positions = tome.store.passage_order()
        vectors = tome.store.rows("passages", keys.tolist())
    return Passages(vectors, np.arange(len(keys)), np.unique(homes, return_inverse=True)[1], positions)


def cluster(passages: Passages, rules: SchemataRules = USUAL) -> Hierarchy:
    none = np.empty(0, np.int64)
    lists = Lists.from_entries(len(passages.rows), rules.k, none, none, np.empty(0))
    complete_lists(passages, lists, np.ones(len(passages.rows), np.bool_), rules)
    return grow_hierarchy(lists.link(), lists.partners, rules)[0]


def describe(hierarchy: Hierarchy) -> dict[str, float]:
    lowest = hierarchy.children[hierarchy.heights == 1]
    sizes = (lowest >= 0).sum(axis=1)
    covered = len(np.unique(lowest[lowest >= 0]))
    return {
        "passages": hierarchy.passages,
        "clusters": len(lowest),
        "median": median(sizes.tolist()),
        "largest": int(sizes.max()),
        "pairs": int((sizes < 3).sum()),
        "covered": covered / hierarchy.passages,
        "overlap": int(sizes.sum()) / covered,
        "calls a passage": len(hierarchy.children) / hierarchy.passages,
    }


def measure_clusters() -> None:
    for name in ("carol", "musique", "wiki"):
        hierarchy = cluster(embed(read_corpus(name)))
        row = {field: round(value, 3) for field, value in describe(hierarchy).items()}
        print(f"{name}: {row}; by level {np.bincount(hierarchy.heights)[1:].tolist()}", flush=True)
    meetings = [describe(cluster(embed(read_corpus(f"qmsum{number}")))) for number in range(35)]
    for field in meetings[0]:
        values = [row[field] for row in meetings]
        print(f"35 meetings, {field}: {median(values):.3g} ({min(values):.3g} to {max(values):.3g})")


def put_passages(store: SqlStore, passages: Passages, chosen: NDArray[np.int64]) -> None:
    """Add these passages, whole documents; the number of a document is its name."""
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", str(DIMENSIONS))
        for home in np.unique(passages.documents[chosen]).tolist():
            rows, name = chosen[passages.documents[chosen] == home], f"d{home:08}"
            own = [
                Passage(id=content_id("p", name, at), document=name, position=at, start=0, end=0, text=f"Part {at}.")
                for at in passages.positions[rows].tolist()
            ]
            keys = change.put_document(Document(id=name, text=name), content_id("d", name, *rows), own)
            change.put_vectors("passages", keys, passages.select(rows))


def grow(store: SqlStore, rules: SchemataRules) -> tuple[int, float]:
    """Calls and processor seconds of a build of the schemata."""
    model, start = ScriptedModel({"summarise": say_which}), time.process_time()
    asyncio.run(build([SchemataLayer(store, model, FakeEmbedder(DIMENSIONS), rules)], store, quiet))
    return len(model.calls), time.process_time() - start


def add_batches(passages: Passages, batches: Sequence[NDArray[np.int64]], rules: SchemataRules) -> tuple[int, float]:
    """Calls and seconds of building these batches of documents, one after another, into the memory of all others."""
    is_late = np.isin(passages.documents, np.concatenate(batches))
    with tempfile.TemporaryDirectory() as folder:
        store = SqlStore.open(Path(folder) / "a.tome")
        put_passages(store, passages, np.flatnonzero(~is_late))
        grow(store, rules)
        taken = []
        for homes in batches:
            put_passages(store, passages, np.flatnonzero(np.isin(passages.documents, homes)))
            taken.append(grow(store, rules))
        store.close()
    return sum(calls for calls, _ in taken), sum(seconds for _, seconds in taken)


def measure_batches(name: str, repeats: int) -> None:
    """Batches are documents that follow one another, from `repeats` places of the corpus; medians and the most."""
    passages = embed(read_corpus(name))
    count, homes = len(passages.rows), np.unique(passages.documents)
    kinds = SchemataRules(), SchemataRules(clusters="as published")
    whole = {}
    with tempfile.TemporaryDirectory() as folder:
        for rules in kinds:
            with_all = SqlStore.open(Path(folder) / f"{len(whole)}.tome")
            put_passages(with_all, passages, np.arange(count))
            whole[rules] = grow(with_all, rules)
            with_all.close()
            calls, seconds = whole[rules]
            print(f"{name}, {count:,} passages, {rules.clusters}; a rebuild takes {calls:,} calls, {seconds:.1f} s")
    print("| batch | clusters | calls, median | most | share, median | most | s | one by one, calls | s |")
    print("| --- " * 9 + "|")
    for size in (1, 8, count // 50):
        places = np.random.default_rng(size).integers(0, len(homes) - size, repeats).tolist()
        for rules in kinds:
            rows = [add_batches(passages, [homes[place : place + size]], rules) for place in places]
            late = homes[places[0] : places[0] + size]
            single = add_batches(passages, np.split(late, size), rules) if size < 10 else ("", 0.0)
            calls, shares = [row[0] for row in rows], [row[0] / whole[rules][0] for row in rows]
            cells = [size, rules.clusters, median(calls), max(calls), f"{median(shares):.3f}", f"{max(shares):.3f}"]
            cells += [f"{median([row[1] for row in rows]):.2f}", single[0], f"{single[1]:.2f}" if single[1] else ""]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


def chain_cliques(count: int, size: int) -> tuple[Links, Cover]:
    """Cliques in a row; each shares one vertex with the next."""
    communities = [set(range(number * (size - 1), number * (size - 1) + size)) for number in range(count)]
    return link_pairs({pair for each in communities for pair in combinations(sorted(each), 2)}), communities


def plant_communities(vertices: int, shared: float, mixing: float, seed: int, largest: int = 40) -> tuple[Links, Cover]:
    """A benchmark graph in the way of Lancichinetti and Fortunato (2009), simpler: planted overlapping communities.

    Sizes are drawn from 3/8 of the largest up. The share `shared` of the vertices is in two communities. A vertex has
    about 10 links in each of its communities; a share `mixing` of all links joins two random vertices.
    """
    random = np.random.default_rng(seed)
    places = np.concatenate((np.arange(vertices), random.choice(vertices, int(shared * vertices), replace=False)))
    order = random.permutation(len(places))
    communities, start = [], 0
    while start < len(order):
        size = int(random.integers(3 * largest // 8, largest + 1))
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


def find_cover(network: Network) -> Cover:
    return [set(row[row >= 0].tolist()) for row in find_clusters(network)]


def spread_labels(network: Network, choose: Callable[[Counter[int], int], int], *, at_once: bool) -> Cover:
    """Clusters by the majority labels of replicas (ego-splitting as in the paper), after at most 50 sweeps.

    `at_once`: replicas of one colour change together, as networkx does (Cordasco and Gargano 2010).
    """
    replicas = np.empty(len(network.neighbours), np.int64)
    count = find_components(network.starts, network.neighbours, replicas)
    ends = [set() for _ in range(count)]
    owners = np.empty(count, np.int64)
    owners[replicas] = network.owners
    for own, near in zip(replicas.tolist(), replicas[network.reverse].tolist(), strict=True):
        ends[own].add(near)
    colours: list[list[int]] = [list(range(count))]
    if at_once:
        colour_of: dict[int, int] = {}
        for own in sorted(range(count), key=lambda each: -len(ends[each])):
            taken = {colour_of.get(near) for near in ends[own]}
            colour_of[own] = next(number for number in range(count) if number not in taken)
        colours = [
            [own for own in range(count) if colour_of[own] == each] for each in range(1 + max(colour_of.values()))
        ]
    labels = list(range(count))
    for _ in range(50):
        before = list(labels)
        for group in colours:
            votes = {own: Counter(labels[near] for near in ends[own]) for own in group} if at_once else None
            for own in group:
                counted = votes[own] if votes else Counter(labels[near] for near in ends[own])
                if counted and counted[labels[own]] != max(counted.values()):
                    labels[own] = choose(counted, labels[own])
        if labels == before:
            break
    members: dict[int, set[int]] = {}
    for own, label in enumerate(labels):
        members.setdefault(label, set()).add(int(owners[own]))
    return [set(each) for each in {frozenset(each) for each in members.values()}]


def take_largest(counted: Counter[int], _: int) -> int:
    return max(label for label, votes in counted.items() if votes == max(counted.values()))


def take_smallest(counted: Counter[int], _: int) -> int:
    return min(label for label, votes in counted.items() if votes == max(counted.values()))


def compute_overlapping_nmi(found: Cover, wanted: Cover, vertices: int) -> float:
    """Overlapping NMI, normalised by the larger entropy (McDaid, Greene and Hurley 2011)."""

    def weigh(*counts: float) -> float:
        return -sum(count / vertices * np.log2(count / vertices) for count in counts if count > 0)

    def compute_rest(first: Cover, second: Cover) -> float:
        rest = 0.0
        for members in first:
            alone, best = weigh(len(members), vertices - len(members)), np.inf
            for others in second:
                both = len(members & others)
                table = (vertices - len(members | others), len(others) - both, len(members) - both, both)
                if weigh(table[0]) + weigh(table[3]) >= weigh(table[1]) + weigh(table[2]):
                    best = min(best, weigh(*table) - weigh(len(others), vertices - len(others)))
            rest += min(best, alone)
        return rest

    entropies = [sum(weigh(len(members), vertices - len(members)) for members in cover) for cover in (found, wanted)]
    shared = 0.5 * (entropies[0] - compute_rest(found, wanted) + entropies[1] - compute_rest(wanted, found))
    return float(shared / max(entropies))


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
    graphs = {"30 cliques of 8, neighbours share a vertex": (*chain_cliques(30, 8), 211)}
    for number, (largest, shared, mixing) in enumerate(
        ((16, 0.1, 0.0), (16, 0.1, 0.1), (16, 0.3, 0.1), (16, 0.1, 0.3), (40, 0.1, 0.1))
    ):
        name = f"planted, up to {largest}, {shared:.0%} shared, mixing {mixing}"
        graphs[name] = (*plant_communities(600, shared, mixing, number, largest), 600)
    print("| graph | truth | here: clusters, omega, NMI | semi-synchronous | ascending sweeps, the old rule |")
    print("| --- " * 5 + "|")
    for name, (links, truth, vertices) in graphs.items():
        network = Network.from_links(vertices, links)
        covers = (
            find_cover(network),
            spread_labels(network, take_largest, at_once=True),
            spread_labels(network, take_smallest, at_once=False),
        )
        cells = [name, str(len(truth))]
        for cover in covers:
            omega, nmi = compute_omega(cover, truth, vertices), compute_overlapping_nmi(cover, truth, vertices)
            cells.append(f"{len(cover)}, {omega:.2f}, {nmi:.2f}")
        print(f"| {' | '.join(cells)} |", flush=True)
    print(f"clusters here have at most {MOST} members")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what", choices=["clusters", "overlap", "batches", "speed"], nargs="?", help="without it, overlap and speed"
    )
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--data", default="musique", help="for batches: musique or wiki")
    parser.add_argument("--repeats", type=int, default=6, help="for batches: places of the corpus")
    options = parser.parse_args()
    if options.what in (None, "overlap"):
        measure_overlap()
    if options.what in (None, "speed"):
        asyncio.run(measure_speed(options.passages))
    if options.what in ("clusters", "batches") and not SHARED.exists():
        print("skipped: ../shared/data is absent")
    elif options.what == "clusters":
        measure_clusters()
    elif options.what == "batches":
        measure_batches(options.data, options.repeats)


if __name__ == "__main__":
    main()
