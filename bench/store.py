"""The store at the size of a large graph memory: how long changes take, how fast it opens, how much memory it uses.

    .venv/bin/python bench/store.py [share] [--postgres]

Builds a synthetic tome of 40,000 passages, 140,000 shared entities and 160,000 shared facts, each with a vector of 384
numbers. 600,000 edges link entities and facts to their passages; 500,000 more link them to each other. `share` (default
1.0) scales these numbers. Times are of the store alone, without model and embedding. Opening runs in a fresh process.

With `--postgres` the same is done in a file and then in a database, by turns, and a table has the ratios (medians where
a step repeats). The server is one that this script starts, on a socket and with fsync, or TOMEWISE_TEST_POSTGRES. Then
it counts the statements of a question to `hybrid` and `hipporag2` on both, on a small tome.
"""

from __future__ import annotations

import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np
from sqlalchemy import event

from tomewise.sample import STORY
from tomewise.store.address import DatabaseAddress, TomeAddress, find_tome_address
from tomewise.store.export import export
from tomewise.store.lookups import read_edges, read_vectors
from tomewise.store.records import SETTINGS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.store.sql.write import Write
from tomewise.tome.tome import Tome
from tomewise.types import Document, Node, Passage

DIMENSIONS = 384
PER_DOCUMENT = 4
WORDS = [f"{a}{b}" for a in "bcdfglmnprst" for b in ("arrow", "ellow", "ight", "ound", "onder", "imber", "atter")]
ENTITIES, FACTS = "entities:x", "facts:x"


LABEL = re.compile(r" *([0-9.]+) ms  +(.*?)(?:; resident .*)?")
LOGGED = re.compile(r"LOG:  (?:statement|execute [^:]*): (.*)")  # what the log of a server calls a statement
FRAME = re.compile(r"BEGIN|COMMIT|ROLLBACK|;|PRAGMA|SET |-- ")  # transactions, settings, the test of a connection
Times = dict[str, list[float]]  # milliseconds by step and label


def main() -> None:
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    if words and words[0] in ("make", "change", "open"):
        return run_step(words[0], find_tome_address(words[1]), float(words[2]))
    share = words[0] if words else "1.0"
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name).absolute()
        file, cache = folder / "large.tome", folder / "cache"
        os.environ["TOMEWISE_CACHE"] = str(cache)  # where the arrays of a database are
        in_file = run_steps(str(file), Path(f"{file}-cache"), share)
        if "--postgres" not in sys.argv:
            return None
        from postgres import find_server, lend

        with find_server() as (server, log):
            with lend(f"{server}#large{os.getpid()}") as address:
                print_ratios(in_file, run_steps(address, cache, share))
                print_sizes(address)
            for system in ("hybrid", "hipporag2"):
                count_statements(str(folder / f"{system}.tome"), system, None)
                with lend(f"{server}#{system}{os.getpid()}") as address:
                    count_statements(address, system, log)
    return None


def run_step(step: str, place: TomeAddress, share: float) -> None:
    if step == "make":
        make_tome(place, share)
    elif step == "change":
        time_changes(place)
    else:
        time_opening(place)


def run_steps(address: str, cache: Path, share: str) -> Times:
    """Each step in a process of its own. Returns the times that they print."""
    times: Times = {}
    for step in ("make", "change", "open", "open, without the cached arrays"):
        if step.endswith("arrays"):
            for cached in sorted(each for each in cache.rglob("*") if each.is_file() and each.suffix != ".sqlite"):
                cached.unlink()
        print(f"{step}: {find_tome_address(address)}", flush=True)
        words = [sys.executable, __file__, step.partition(",")[0], address, share]
        words += [word for word in sys.argv if word == "--export"]
        ran = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
        print(ran.stdout, end="", flush=True)
        for line in ran.stdout.splitlines():
            if found := LABEL.fullmatch(line):
                times.setdefault(f"{step}: {found[2]}", []).append(float(found[1]))
    return times


def print_ratios(in_file: Times, in_database: Times) -> None:
    print("| step (median) | file, ms | PostgreSQL, ms | |")
    print("| --- | ---: | ---: | ---: |")
    for label, found in in_file.items():
        a, b = median(found), median(in_database[label])
        print(f"| {label} | {a:,.1f} | {b:,.1f} | {b / a:.2f} |")
    a, b = (sum(sum(found) for label, found in each.items() if label.startswith("make")) for each in
            (in_file, in_database))  # fmt: skip
    print(f"| all of make | {a:,.1f} | {b:,.1f} | {b / a:.2f} |", flush=True)


def print_sizes(address: str) -> None:
    """The bytes of each table of a tome in a database, with and without its indices."""
    store = SqlStore.open(find_tome_address(address))
    print("| table | rows | bytes a row | with indices |")
    print("| --- | ---: | ---: | ---: |")
    with store.read() as transaction:
        for table in ("documents", "nodes", "edges", "vectors"):
            query = f"SELECT count(*), pg_table_size('{table}'), pg_total_relation_size('{table}') FROM {table}"
            rows, size, whole = transaction.run(query).one()
            print(f"| {table} | {rows:,} | {size / rows:,.0f} | {whole / rows:,.0f} |", flush=True)
    store.close()


def count_statements(address: str, system: str, log: Path | None) -> None:
    """The statements of the second question to a tome of the sample story, as SQLite or the log of the server has them.

    Some of them pass SQLAlchemy by, so its events do not count them.
    """
    sent: list[str] = []
    with Tome.open(address, embedder="hash", model="extractive") as tome:
        tome.add(STORY)
        if system != "hybrid":
            tome.build(system)
    if log is not None:
        before, _, name = address.partition("#")
        address = f"{before}&options=-c%20log_statement%3Dall%20-c%20log_min_messages%3Dlog#{name}"
    elif isinstance(find_tome_address(address), DatabaseAddress):
        return
    with Tome.open(address, embedder="hash", model="extractive") as tome:
        if log is None:
            engine = tome.store.dialect._engine
            event.listen(engine, "checkout", lambda driver, *_: driver.set_trace_callback(sent.append))
        tome.ask("Who kept the lighthouse?", system=system)
        sent.clear()
        start = log.stat().st_size if log is not None else 0
        tome.ask("What did the examiner find?", system=system)
        if log is not None:
            lines = log.read_bytes()[start:].decode().splitlines()
            sent += [found[1] for line in lines if (found := LOGGED.search(line))]
    frames = [line for line in sent if FRAME.match(line)]
    print(f"{system}: {len(sent) - len(frames)} statements and {len(frames)} around them, {find_tome_address(address)}")


def make_tome(path: TomeAddress, share: float) -> None:
    rng = np.random.default_rng(1)
    store = SqlStore.open(path)
    count = {"passages": int(40_000 * share), ENTITIES: int(140_000 * share), FACTS: int(160_000 * share)}
    with print_time("documents and passages"), store.write() as change:
        change.put_note(SETTINGS, "dimensions", str(DIMENSIONS))
        keys = []
        ids: list[str] = []
        for number in range(count["passages"] // PER_DOCUMENT):
            document, passages = _make_document(f"d{number}")
            keys += change.put_document(document, "", passages)
            ids += [passage.id for passage in passages]
        change.put_vectors("passages", keys, _draw_vectors(rng, len(keys)))
    shared: dict[str, list[int]] = {}
    with print_time("entities and facts, one transaction"), store.write() as change:
        for layer, seen in ((ENTITIES, 2), (FACTS, 2)):
            at = rng.integers(0, len(ids), (count[layer], seen)).tolist()
            made = [_make_node(layer, str(number), [ids[p] for p in places]) for number, places in enumerate(at)]
            found = change.put_nodes(made, lifetime="any")
            shared[layer] = [found[node.id] for node in made]
            change.put_vectors(layer, shared[layer], _draw_vectors(rng, len(made)))
    with print_time("500,000 edges, one transaction"), store.write() as change:
        facts, entities = np.array(shared[FACTS]), np.array(shared[ENTITIES])
        size = int(250_000 * share)
        ends = _draw_pairs(rng, facts, entities, size)
        change.put_edges("ends:x", ends[:, 0], ends[:, 1], np.ones(len(ends)))
        alike = _draw_pairs(rng, entities, entities, size)
        change.put_edges("synonyms:x", alike[:, 0], alike[:, 1], rng.random(len(alike)))
    with print_time("closing"):
        store.close()
    for file in sorted([path, *Path(f"{path}-cache").iterdir()]) if isinstance(path, Path) else []:
        if file.stat().st_size > 1e6:
            print(f"    {file.stat().st_size / 1e6:8.1f} MB  {file.name}")


def time_changes(path: TomeAddress) -> None:
    rng = np.random.default_rng(2)
    store = SqlStore.open(path)
    read_vectors(store, FACTS)
    with store.read() as transaction:
        query = "SELECT nodes.id\nFROM nodes WHERE nodes.layer = :layer"
        known = [name for (name,) in transaction.fetch(query, layer=ENTITIES)]
    before = hash(tuple(export(store))) if "--export" in sys.argv else 0
    for turn in range(3):
        with print_time(f"add one document, {PER_DOCUMENT} passages, 60 entities and facts"), store.write() as change:
            add_document(change, rng, f"new{turn}", random.Random(turn).sample(known, 20))
        with print_time("    read all arrays again"):
            _map_arrays(store)
        with print_time("    remove it"), store.write() as change:
            removed = change.remove_document(f"new{turn}")
        assert len(removed) == PER_DOCUMENT + 60
        with print_time("    read all arrays again"):
            _map_arrays(store)
    assert before == 0 or before == hash(tuple(export(store)))
    with print_time("lexical search"):
        store.lexical(f"Where is the {WORDS[3]} {WORDS[9]} of {WORDS[40]} {WORDS[41]}?", 20)
    with print_time("documents()"):
        store.documents()
    with store.write() as change:
        change.record_intake("graph:x", store.node_keys("passages"))
    with print_time("node_keys('passages') and intake"):
        store.node_keys("passages")
        store.intake("graph:x")
    with print_time("untaken('passages')"):
        store.find_pending_keys("graph:x", ["passages"])
    print(f"    peak resident {_read_peak_memory():.0f} MB")
    store.close()


def add_document(change: Write, rng: np.random.Generator, name: str, known: list[str]) -> None:
    """Add a document, its passages, 60 new entities and facts, 20 known entities again, and edges among them."""
    document, passages = _make_document(name)
    keys = change.put_document(document, "", passages)
    change.put_vectors("passages", keys, _draw_vectors(rng, len(keys)))
    fresh: dict[str, list[int]] = {}
    for layer in (ENTITIES, FACTS):
        made = [_make_node(layer, f"{name}-{n}", [passages[n % PER_DOCUMENT].id]) for n in range(30)]
        found = change.put_nodes(made, lifetime="any")
        fresh[layer] = [found[node.id] for node in made]
        change.put_vectors(layer, fresh[layer], _draw_vectors(rng, len(made)))
    again = change.put_nodes(
        [Node(id=id, layer=ENTITIES, text="", sources=(passages[0].id,)) for id in known], lifetime="any"
    )
    ends = _draw_pairs(rng, np.array(fresh[FACTS]), np.array([*again.values(), *fresh[ENTITIES]]), 60)
    change.put_edges("ends:x", ends[:, 0], ends[:, 1], np.ones(len(ends)))
    change.put_edges("synonyms:x", np.array(fresh[ENTITIES][:20]), np.array(list(again.values())), np.full(20, 0.9))
    change.record_intake("graph:x", keys)


def time_opening(path: TomeAddress) -> None:
    start = time.perf_counter()
    store = SqlStore.open(path)
    _map_arrays(store)
    seconds = time.perf_counter() - start
    print(f"{seconds * 1000:9.1f} ms  open all arrays, a fresh process; resident {_read_peak_memory():.0f} MB")
    with print_time("    one product with each set of vectors"):
        for space in ("passages", ENTITIES, FACTS):
            read_vectors(store, space).stored_rows @ np.ones(DIMENSIONS, np.float32)
    with print_time("    the same again"):
        for space in ("passages", ENTITIES, FACTS):
            read_vectors(store, space).stored_rows @ np.ones(DIMENSIONS, np.float32)
    print(f"    peak resident {_read_peak_memory():.0f} MB")
    store.close()


def _map_arrays(store: SqlStore) -> None:
    for space in ("passages", ENTITIES, FACTS):
        read_vectors(store, space)
    for space in ("ends:x", "synonyms:x", f"seen-in:{ENTITIES}", f"seen-in:{FACTS}"):
        read_edges(store, space)


def _make_document(name: str) -> tuple[Document, list[Passage]]:
    rng = random.Random(name)
    texts = [" ".join(rng.choices(WORDS, k=90)) + "." for _ in range(PER_DOCUMENT)]
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


def _make_node(layer: str, name: str, sources: list[str]) -> Node:
    return Node(id=f"{layer}-{name}", layer=layer, text=f"what is called {name}", sources=tuple(sources))


def _draw_vectors(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.random((count, DIMENSIONS), dtype=np.float32) - 0.5


def _draw_pairs(rng: np.random.Generator, a: np.ndarray, b: np.ndarray, size: int) -> np.ndarray:
    return np.unique(np.column_stack((rng.choice(a, size), rng.choice(b, size))), axis=0)


def _read_peak_memory() -> float:
    """Megabytes that this process held at its peak, mapped files included."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage also counts what the parent held at the fork
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


@contextmanager
def print_time(label: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    print(f"{(time.perf_counter() - start) * 1000:9.1f} ms  {label}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    main()
