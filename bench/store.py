"""The store at the size of a large graph memory: how long changes take, how fast it opens, how much it holds.

    .venv/bin/python bench/store.py [share]

Builds a synthetic tome of 40,000 passages, 140,000 shared entities and 160,000 shared facts, each with a vector of 384
numbers, and 500,000 edges besides the 600,000 that say where they were seen; `share` (default 1.0) makes it smaller.
Every time is of the store alone: no model, no embedding. Opening is measured in a fresh process.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tomewise.store.sqlite.export import export
from tomewise.store.sqlite.store import SqliteStore
from tomewise.store.sqlite.write import Write
from tomewise.types import Document, Node, Passage

DIMENSIONS = 384
PER_DOCUMENT = 4
WORDS = [f"{a}{b}" for a in "bcdfglmnprst" for b in ("arrow", "ellow", "ight", "ound", "onder", "imber", "atter")]
ENTITIES, FACTS = "entities:x", "facts:x"


def main() -> None:
    if sys.argv[1:2] == ["open"]:
        return opened(Path(sys.argv[2]))
    if sys.argv[1:2] == ["change"]:
        return changed(Path(sys.argv[2]))
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / "large.tome"
        built(path, share)
        subprocess.run([sys.executable, __file__, "change", str(path)], check=True)
        subprocess.run([sys.executable, __file__, "open", str(path)], check=True)
        for cached in sorted(Path(f"{path}-cache").iterdir()):
            cached.unlink()
        print("and with the cached arrays gone:")
        subprocess.run([sys.executable, __file__, "open", str(path)], check=True)
    return None


def built(path: Path, share: float) -> None:
    chance = np.random.default_rng(1)
    store = SqliteStore.open(path)
    count = {"passages": int(40_000 * share), ENTITIES: int(140_000 * share), FACTS: int(160_000 * share)}
    with timed("documents and passages"), store.write() as change:
        change.set_meta("dimensions", str(DIMENSIONS))
        keys = []
        ids: list[str] = []
        for number in range(count["passages"] // PER_DOCUMENT):
            document, passages = _document(f"d{number}")
            keys += change.put_document(document, "", passages)
            ids += [passage.id for passage in passages]
        change.put_vectors("passages", keys, _vectors(chance, len(keys)))
    shared: dict[str, list[int]] = {}
    with timed("entities and facts, one transaction"), store.write() as change:
        for layer, seen in ((ENTITIES, 2), (FACTS, 2)):
            at = chance.integers(0, len(ids), (count[layer], seen)).tolist()
            nodes = [_node(layer, str(number), [ids[p] for p in places]) for number, places in enumerate(at)]
            found = change.put_nodes(nodes, shared=True)
            shared[layer] = [found[node.id] for node in nodes]
            change.put_vectors(layer, shared[layer], _vectors(chance, len(nodes)))
    with timed("500,000 edges, one transaction"), store.write() as change:
        facts, entities = np.array(shared[FACTS]), np.array(shared[ENTITIES])
        size = int(250_000 * share)
        ends = _pairs(chance, facts, entities, size)
        change.put_edges("ends:x", ends[:, 0], ends[:, 1], np.ones(len(ends)))
        alike = _pairs(chance, entities, entities, size)
        change.put_edges("synonyms:x", alike[:, 0], alike[:, 1], chance.random(len(alike)))
    with timed("closing"):
        store.close()
    for file in sorted([path, *Path(f"{path}-cache").iterdir()]):
        if file.stat().st_size > 1e6:
            print(f"    {file.stat().st_size / 1e6:8.1f} MB  {file.name}")


def changed(path: Path) -> None:
    chance = np.random.default_rng(2)
    store = SqliteStore.open(path)
    store.vectors(FACTS)
    with store.read() as connection:
        known = [row[0] for row in connection.exec_driver_sql("SELECT id FROM nodes WHERE layer = ?", (ENTITIES,))]
    before = hash(tuple(export(store))) if "--export" in sys.argv else 0
    for turn in range(3):
        with timed(f"add one document, {PER_DOCUMENT} passages, 60 entities and facts"), store.write() as change:
            added(change, chance, f"new{turn}", random.Random(turn).sample(known, 20))
        with timed("    read all arrays again"):
            _arrays(store)
        with timed("    remove it"), store.write() as change:
            gone = change.remove_document(f"new{turn}")
        assert len(gone) == PER_DOCUMENT + 60
        with timed("    read all arrays again"):
            _arrays(store)
    assert before == 0 or before == hash(tuple(export(store)))
    with timed("lexical search"):
        store.lexical(f"Where is the {WORDS[3]} {WORDS[9]} of {WORDS[40]} {WORDS[41]}?", 20)
    with timed("documents()"):
        store.documents()
    with store.write() as change:
        change.record_intake("graph:x", store.node_keys("passages"))
    with timed("node_keys('passages') and intake"):
        store.node_keys("passages")
        store.intake("graph:x")
    with timed("pending_keys('passages')"):
        store.pending_keys("graph:x", ["passages"])
    print(f"    peak resident {_resident():.0f} MB")
    store.close()


def added(change: Write, chance: np.random.Generator, name: str, known: list[str]) -> None:
    """A document, its passages, 60 new entities and facts, 20 known entities seen again, and edges among them."""
    document, passages = _document(name)
    keys = change.put_document(document, "", passages)
    change.put_vectors("passages", keys, _vectors(chance, len(keys)))
    fresh: dict[str, list[int]] = {}
    for layer in (ENTITIES, FACTS):
        nodes = [_node(layer, f"{name}-{n}", [passages[n % PER_DOCUMENT].id]) for n in range(30)]
        found = change.put_nodes(nodes, shared=True)
        fresh[layer] = [found[node.id] for node in nodes]
        change.put_vectors(layer, fresh[layer], _vectors(chance, len(nodes)))
    again = change.put_nodes(
        [Node(id=id, layer=ENTITIES, text="", sources=(passages[0].id,)) for id in known], shared=True
    )
    ends = _pairs(chance, np.array(fresh[FACTS]), np.array([*again.values(), *fresh[ENTITIES]]), 60)
    change.put_edges("ends:x", ends[:, 0], ends[:, 1], np.ones(len(ends)))
    change.put_edges("synonyms:x", np.array(fresh[ENTITIES][:20]), np.array(list(again.values())), np.full(20, 0.9))
    change.record_intake("graph:x", keys)


def opened(path: Path) -> None:
    start = time.perf_counter()
    store = SqliteStore.open(path)
    _arrays(store)
    spent = time.perf_counter() - start
    print(f"{spent * 1000:9.1f} ms  open all arrays, a fresh process; resident {_resident():.0f} MB")
    with timed("    one product with each set of vectors"):
        for space in ("passages", ENTITIES, FACTS):
            store.vectors(space).stored_rows @ np.ones(DIMENSIONS, np.float32)
    with timed("    the same again"):
        for space in ("passages", ENTITIES, FACTS):
            store.vectors(space).stored_rows @ np.ones(DIMENSIONS, np.float32)
    print(f"    peak resident {_resident():.0f} MB")
    store.close()


def _arrays(store: SqliteStore) -> None:
    for space in ("passages", ENTITIES, FACTS):
        store.vectors(space)
    for space in ("ends:x", "synonyms:x", f"seen-in:{ENTITIES}", f"seen-in:{FACTS}"):
        store.edges(space)


def _document(name: str) -> tuple[Document, list[Passage]]:
    chance = random.Random(name)
    texts = [" ".join(chance.choices(WORDS, k=90)) + "." for _ in range(PER_DOCUMENT)]
    document = Document(id=name, text="".join(texts), title=f"The book of {name}")
    passages, start = [], 0
    for position, text in enumerate(texts):
        end = start + len(text)
        passages.append(
            Passage(
                id=f"p-{name}-{position}",
                document=name,
                position=position,
                start=start,
                end=end,
                text=text,
                title=document.title,
            )
        )
        start = end
    return document, passages


def _node(layer: str, name: str, sources: list[str]) -> Node:
    return Node(id=f"{layer}-{name}", layer=layer, text=f"what is called {name}", sources=tuple(sources))


def _vectors(chance: np.random.Generator, count: int) -> np.ndarray:
    return chance.random((count, DIMENSIONS), dtype=np.float32) - 0.5


def _pairs(chance: np.random.Generator, a: np.ndarray, b: np.ndarray, size: int) -> np.ndarray:
    return np.unique(np.column_stack((chance.choice(a, size), chance.choice(b, size))), axis=0)


def _resident() -> float:
    """The most megabytes this process ever held, mapped files included."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage counts what the parent held when it forked
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


@contextmanager
def timed(what: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    print(f"{(time.perf_counter() - start) * 1000:9.1f} ms  {what}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    main()
