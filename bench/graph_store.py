"""A graph of 140,000 entities and 160,000 facts: the time to add and to remove one document of four passages.

`python bench/graph_store.py` makes such a tome with random unit vectors (once, kept in `--folder`) and opens it in a
fresh process. There it times adding and removing documents with scripted extractions, without the time of embedding,
and prints the peak memory. With `../shared/data` it also imports the published triples of MuSiQue's 1,890 passages.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tomewise.embedding.hash import HashEmbedder
from tomewise.memory.build_records import record_build
from tomewise.memory.building import build
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.memory.imports.extraction_file import read_extractions
from tomewise.memory.passages import store_documents
from tomewise.reading.splitter import PassageSplitter
from tomewise.store.lookups import read_vectors
from tomewise.store.records import SETTINGS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Document, Node, Passage, Progress, content_id

ENTITIES, FACTS, DOCUMENTS, SYNONYMS, WIDTH = 140_000, 160_000, 4_000, 150_000, 384
NAMES = GraphNames("passages", "triples")
DATA = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"


class RandomVectors:
    """A random unit vector for each text; `seconds` is the time that this took."""

    name = "random"
    dimensions = WIDTH
    max_tokens = 256
    seconds = 0.0

    @property
    def tokenizer(self) -> object:
        return HashEmbedder(8).tokenizer

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        start = time.perf_counter()
        rows = np.empty((len(texts), WIDTH), np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = np.random.default_rng(crc32(text.encode())).standard_normal(WIDTH, np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        self.seconds += time.perf_counter() - start
        return rows


def ignore_progress(_: Progress) -> None:
    pass


def make_document(number: int) -> tuple[Document, list[Passage]]:
    texts = [f"passage {number} {position} " + "some words of text " * 30 for position in range(4)]
    passages, start = [], 0
    for position, text in enumerate(texts):
        end = start + len(text)
        key = content_id("p", number, position)
        passages.append(Passage(id=key, document=f"d{number}", position=position, start=start, end=end, text=text))
        start = end
    return Document(id=f"d{number}", text="".join(texts)), passages


def fill(path: Path) -> None:
    """Make a tome as a build leaves it."""
    store = SqlStore.open(path)
    random = np.random.default_rng(1)
    embedder = RandomVectors()
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", str(WIDTH))
        passages: list[Passage] = []
        keys: list[int] = []
        for number in range(DOCUMENTS):
            made, parts = make_document(number)
            keys += change.put_document(made, "digest", parts)
            passages += parts
        change.put_vectors("passages", keys, embedder.embed([passage.content for passage in passages]))
        change.record_intake(NAMES.layer, keys)
        record_build(change, NAMES.layer, {"taken": len(keys)})
    ids = [passage.id for passage in passages]
    # The first name is in every passage.
    seen = [ids] + [[ids[at] for at in random.integers(0, len(ids), 1 + row % 3)] for row in range(1, ENTITIES)]
    with store.write() as change:
        entities = put_nodes(change, embedder, NAMES.entities, [f"name {row}" for row in range(ENTITIES)], seen)
        ends = random.integers(0, ENTITIES, (FACTS, 2))
        texts = [f"name {a} has to do with name {b} {row}" for row, (a, b) in enumerate(ends)]
        facts = put_nodes(change, embedder, NAMES.facts, texts, [[ids[row % len(ids)]] for row in range(FACTS)])
        for weight in (0, 1):
            change.put_edges(NAMES.ends, facts, entities[ends[:, weight]], np.full(FACTS, float(weight)))
        pairs = random.integers(0, ENTITIES, (SYNONYMS, 2))
        change.put_edges(NAMES.synonyms, entities[pairs[:, 0]], entities[pairs[:, 1]], np.full(SYNONYMS, 0.85))
    store.close()


def put_nodes(change, embedder, layer, texts, sources):  # type: ignore[no-untyped-def]
    make = NAMES.entity if layer == NAMES.entities else lambda text: NAMES.fact((text,))
    nodes = [
        Node(id=make(text), layer=layer, text=text, sources=tuple(dict.fromkeys(passages)))
        for text, passages in zip(texts, sources, strict=True)
    ]
    keys = change.put_nodes(nodes, lifetime="any")
    rows = [keys[node.id] for node in nodes]
    change.put_vectors(layer, rows, embedder.embed(texts))
    return np.array(rows, np.int64)


def make_extraction(given: object) -> dict[str, object]:
    """Twelve facts on ten new names and eight known ones, and the name that is in every passage."""
    number = crc32(given.text.encode())  # type: ignore[attr-defined]
    new = [f"new {number} {row}" for row in range(10)]
    old = [f"name {(number + 977 * row) % ENTITIES}" for row in range(8)]
    triples = [[new[row % 10], "met", old[row % 8]] for row in range(12)]
    return {"entities": [*new, *old, "name 0"], "triples": triples}


def measure(path: Path, repeats: int) -> None:
    embedder = RandomVectors()
    start = time.perf_counter()
    store = SqlStore.open(path)
    read_vectors(store, NAMES.entities)
    print(f"open and map: {time.perf_counter() - start:.3f} s")
    model = ScriptedModel({"extract_facts": make_extraction})
    layer = GraphLayer(store, model, embedder)
    added, removed = [], []
    for number in range(DOCUMENTS, DOCUMENTS + repeats):
        made, parts = make_document(number)
        vectors = embedder.embed([passage.content for passage in parts])
        with store.write() as change:
            change.put_vectors("passages", change.put_document(made, "digest", parts), vectors)
        embedder.seconds, start = 0.0, time.perf_counter()
        (report,) = asyncio.run(build([layer], store, ignore_progress))
        added.append(time.perf_counter() - start - embedder.seconds)
        assert report.added == 88
    for number in range(DOCUMENTS, DOCUMENTS + repeats):
        start = time.perf_counter()
        with store.write() as change:
            change.remove_document(f"d{number}")
        asyncio.run(build([layer], store, ignore_progress))
        removed.append(time.perf_counter() - start)
    show("add four passages, and build", added)
    show("remove them, and build", removed)
    print(f"peak memory: {read_peak_memory():.2f} GB; on disk {path.stat().st_size / 1e6:.0f} MB")


def read_peak_memory() -> float:
    """Gigabytes that this process used at its peak. (`getrusage` would count the parent process too.)"""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1e6


def show(label: str, seconds: list[float]) -> None:
    print(f"{label}: first {seconds[0]:.3f} s, best {min(seconds):.3f} s, median {np.median(seconds):.3f} s")


async def time_musique_import(folder: Path) -> None:
    source = DATA / "musique"
    if not source.is_dir():
        print("shared/data/musique is absent: no import to measure")
        return
    embedder = RandomVectors()
    store = SqlStore.open(folder / f"musique-{os.getpid()}.tome")
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", str(WIDTH))
    rows = [json.loads(line) for line in (source / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    documents = [Document(id=str(row["id"]), text=row["text"], title=row["title"]) for row in rows]
    splitter = PassageSplitter(embedder.tokenizer, 256)  # type: ignore[arg-type]
    await store_documents(documents, store, embedder, splitter, ignore_progress)  # type: ignore[arg-type]
    embedder.seconds, start = 0.0, time.perf_counter()
    imported = read_extractions(source / "openie.jsonl", store)
    report = await GraphLayer(store, ScriptedModel({}), embedder).import_extractions(imported, ignore_progress)  # type: ignore[arg-type]
    took = time.perf_counter() - start - embedder.seconds
    entities = len(store.node_keys(NAMES.entities))
    print(f"import of MuSiQue: {took:.2f} s without embedding; {imported.coverage}; {entities} entities")
    print("  " + "; ".join(report.notes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "tomewise-graph-store")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--measure", action="store_true", help="only time the existing tome")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    path = options.folder / "large.tome"
    if options.measure:
        measure(path, options.repeats)
        return
    if not path.exists():
        start = time.perf_counter()
        fill(path)
        print(f"made in {time.perf_counter() - start:.0f} s")
    command = [sys.executable, __file__, "--folder", str(options.folder), "--repeats", str(options.repeats)]
    subprocess.run([*command, "--measure"], check=True)
    asyncio.run(time_musique_import(options.folder))


if __name__ == "__main__":
    main()
