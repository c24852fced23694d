"""Approximate search in PostgreSQL with pgvector: recall and time against a scan of the same table.

    .venv/bin/python bench/nearest.py [--tune]

200,000 vectors of 384 numbers: windows of 12 words, each 4 words after the last, of the passages, novels and
transcripts in ../shared/data, embedded by the bundled embedder (20 minutes on two cores; kept in build/nearest). The
queries are the 309 questions of MuSiQue and QMSum, so they are not drawn from the rows. `--tune` tries settings on
every second query; without it, the others give the figures. The server is one that this script starts, with fsync and
without autovacuum.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psycopg
from tests.postgres_server import Server

from postgres import lend, start_server
from tomewise.embedding.bundled import BundledMiniLM
from tomewise.store.address import find_tome_address
from tomewise.store.records import SETTINGS
from tomewise.store.sql import near_search
from tomewise.store.sql.near_search import NearTable, round_to_half, write_literal
from tomewise.store.sql.sql_store import SqlStore

DATA = Path(__file__).parents[1] / ".." / "shared" / "data"
KEPT = Path("build/nearest")
ROWS, WORDS, STEP, LIMIT, EXACT_ROWS = 200_000, 12, 4, 20, 100_000
SPACE = "passages"
RUNS, PER_RUN = 9, 20


def main() -> None:
    rows, queries = make_vectors()
    with tempfile.TemporaryDirectory() as cache, start_server() as server:
        os.environ["TOMEWISE_CACHE"] = cache
        server.stop()
        server.start("fsync=on", "shared_buffers=128MB", "autovacuum=off")
        with lend(f"{server.url}#first") as address:
            keys = np.arange(1, len(rows) + 1)
            store = load(address, keys, rows)
            print_time("adding 60 vectors without an index (median of 5)", [add_few(store, rows, n) for n in range(5)])
            with psycopg.connect(server.url, autocommit=True) as owner:
                owner.execute("CREATE EXTENSION vector")
            print_time("making table and index", [measure(store.dialect.tend_indexes)])
            print_sizes(store)
            if "--tune" in sys.argv:
                tune(server, store, keys, rows, queries[::2])
            else:
                compare(server, store, keys, rows, queries[1::2])
            store.close()


def compare(server: Server, store: SqlStore, keys: np.ndarray, rows: np.ndarray, queries: np.ndarray) -> None:
    print_time("adding 60 vectors with an index (median of 5)", [add_few(store, rows, n) for n in range(5, 10)])
    report("as loaded", server, store, keys, rows, queries)
    for count in (5_000, 20_000, 100_000):
        chosen = np.sort(np.random.default_rng(3).permutation(len(rows))[:count])
        report_scope(store, keys[chosen], rows[chosen], queries[:40])
    is_there = np.ones(len(rows), np.bool_)
    is_there[np.random.default_rng(2).permutation(len(rows))[: len(rows) // 10]] = False
    print_time("removing a tenth", [measure(lambda: remove(store, keys[~is_there]))])
    report("after a tenth was removed, before VACUUM", server, store, keys[is_there], rows[is_there], queries)
    with lend(f"{server.url}#second") as address:
        second = load(address, keys, rows)
        report("beside a second tome of as many", server, store, keys[is_there], rows[is_there], queries)
        report("the second tome", server, second, keys, rows, queries)
        second.close()


def make_vectors() -> tuple[np.ndarray, np.ndarray]:
    """The rows (n, d) and the queries (q, d), embedded once."""
    KEPT.mkdir(parents=True, exist_ok=True)
    for name, read in (("rows", read_windows), ("queries", read_questions)):
        if not (file := KEPT / f"{name}.npy").exists():
            np.save(file, BundledMiniLM().embed(read()))
    return np.load(KEPT / "rows.npy"), np.load(KEPT / "queries.npy")


def read_windows() -> list[str]:
    split = [text.split() for text in read_texts()]
    windows = [
        " ".join(words[at : at + WORDS]) for words in split for at in range(0, max(1, len(words) - WORDS + 1), STEP)
    ]
    windows = list(dict.fromkeys(windows))
    chosen = np.sort(np.random.default_rng(1).permutation(len(windows))[:ROWS])
    return [windows[place] for place in chosen]


def read_texts() -> Iterator[str]:
    for name in ("musique", "wiki"):
        for row in read_lines(DATA / name / "corpus.jsonl"):
            yield row["text"]
    for file in sorted((DATA / "novels").glob("*.txt")):
        yield file.read_text(errors="replace")
    for row in read_lines(DATA / "qmsum" / "test.jsonl"):
        yield " ".join(turn["content"] for turn in row["meeting_transcripts"])


def read_questions() -> list[str]:
    found = [row["question"] for row in read_lines(DATA / "musique" / "questions.jsonl")]
    for row in read_lines(DATA / "qmsum" / "test.jsonl"):
        found += [query["query"] for query in row["general_query_list"] + row["specific_query_list"]]
    return list(dict.fromkeys(found))


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, file.read_text(encoding="utf-8").splitlines())


def load(address: str, keys: np.ndarray, rows: np.ndarray) -> SqlStore:
    store = SqlStore.open(find_tome_address(address), exact_rows=EXACT_ROWS)
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", str(rows.shape[1]))
        change.put_vectors(SPACE, keys, rows)
    return store


def remove(store: SqlStore, keys: np.ndarray) -> None:
    with store.write() as change:
        change._drop("vectors", "key IN :keys", keys=keys.tolist())


def add_few(store: SqlStore, rows: np.ndarray, turn: int) -> float:
    """The seconds for 60 more vectors, which go again."""
    rng = np.random.default_rng(turn)
    keys = np.arange(60) + 10_000_000 + 100 * turn
    moved = rows[rng.choice(len(rows), 60)] + 0.01 * rng.standard_normal((60, rows.shape[1])).astype(np.float32)

    def add() -> None:
        with store.write() as change:
            change.put_vectors(SPACE, keys, moved)

    seconds = measure(add)
    remove(store, keys)
    return seconds


def measure(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure_processor(server: Server, work: Callable[[], Any]) -> tuple[float, float]:
    """The seconds of some work, and the processor time of this process and of the server: others hardly change that."""
    before = time.process_time() + read_processor_seconds(server)
    seconds = measure(work)
    return seconds, time.process_time() + read_processor_seconds(server) - before


def read_processor_seconds(server: Server) -> float:
    """The processor time of all processes of a server, those that have ended too."""
    assert server._process is not None
    parent, ticks = server._process.pid, 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if file.parent.name == str(parent):
            ticks += sum(map(int, fields[11:15]))
        elif fields[1] == str(parent):
            ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def find_table(store: SqlStore) -> NearTable:
    near = store.dialect.near
    assert near is not None
    with store.read() as transaction:
        found = near.find_table(transaction, SPACE)
    assert found is not None, "the space is not searched by an index"
    return found


def scan(store: SqlStore, table: NearTable, query: np.ndarray) -> set[int]:
    """The nearest rows by a scan of the table with the index."""
    half = round_to_half(query)
    assert half is not None
    product = f"vector OPERATOR({table.schema}.<#>) %s::{table.schema}.halfvec"
    with store.read() as transaction:
        found = transaction.run(
            f"SELECT key FROM {table.name} ORDER BY ({product}) + 0 LIMIT {LIMIT}", (write_literal(half),)
        )
        return set(found.scalars())


def find_recall(store: SqlStore, keys: np.ndarray, rows: np.ndarray, queries: np.ndarray) -> tuple[float, float]:
    """The mean recall, and how far the lowest cosine is off at most."""
    shares, off = [], 0.0
    for query in queries:
        cosines = rows.astype(np.float32) @ query
        best = set(keys[np.argsort(-cosines)[:LIMIT]].tolist())
        found = store.nearest(SPACE, query, LIMIT)
        top = found.keys[np.argsort(-found.cosines)[:LIMIT]]
        shares.append(len(best & set(top.tolist())) / LIMIT)
        off = max(off, found.lowest - float(cosines.min()))
    return float(np.mean(shares)), off


def report(
    label: str, server: Server, store: SqlStore, keys: np.ndarray, rows: np.ndarray, queries: np.ndarray
) -> None:
    table = find_table(store)
    recall, off = find_recall(store, keys, rows, queries)
    ours, scans = [], []
    for run in range(RUNS):
        batch = queries[(run * PER_RUN + np.arange(PER_RUN)) % len(queries)]
        ours.append(
            measure_processor(server, lambda batch=batch: [store.nearest(SPACE, query, LIMIT) for query in batch])
        )
        scans.append(measure_processor(server, lambda batch=batch: [scan(store, table, query) for query in batch]))
    (a, a_processor), (b, b_processor) = (1000 / PER_RUN * np.median(found, axis=0) for found in (ours, scans))
    print(
        f"{label}: recall@{LIMIT} {recall:.4f} ({len(queries)} queries); a search {a:.1f} ms, a scan {b:.1f} ms, "
        f"1/{b / a:.1f}; processor {a_processor:.1f} and {b_processor:.1f} ms, 1/{b_processor / a_processor:.1f}; "
        f"load {os.getloadavg()[0]:.1f}; the lowest cosine at most {off:.3f} too high",
        flush=True,
    )


def report_scope(store: SqlStore, keys: np.ndarray, rows: np.ndarray, queries: np.ndarray) -> None:
    shares, seconds = [], []
    for query in queries:
        best = set(keys[np.argsort(-(rows @ query))[:LIMIT]].tolist())
        start = time.perf_counter()
        found = store.nearest(SPACE, query, LIMIT, among=keys)
        seconds.append(time.perf_counter() - start)
        shares.append(len(best & set(found.keys.tolist())) / LIMIT)
    print(f"a scope of {len(keys):,} rows: recall {np.mean(shares):.4f}, {median(seconds) * 1000:.1f} ms", flush=True)


def tune(server: Server, store: SqlStore, keys: np.ndarray, rows: np.ndarray, queries: np.ndarray) -> None:
    for ef_search in (120, 160, 200, 240, 300):
        near_search._EF_SEARCH = ef_search
        report(f"ef_search {ef_search}", server, store, keys, rows, queries)


def print_sizes(store: SqlStore) -> None:
    name = find_table(store).name
    query = f"SELECT pg_relation_size('{name}'), pg_relation_size('{name}_index'), pg_table_size('vectors')"
    with store.read() as transaction:
        table, index, whole = transaction.run(query).one()
    print(f"MB: table {table / 1e6:,.0f}, index {index / 1e6:,.0f}; vectors in float32 {whole / 1e6:,.0f}", flush=True)


def print_time(label: str, seconds: list[float]) -> None:
    print(f"{median(seconds):8.3f} s  {label}", flush=True)


if __name__ == "__main__":
    main()
