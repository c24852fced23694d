"""A tome of 140,000 entities, 160,000 facts and 40,000 passages in daily use, without the time of model and embedding.

`python bench/large_tome.py` makes the tome (once, kept in `--folder`, 1 GB). Then it does three things, each in a fresh
process:

- add a document of four passages through `Tome`, find it with a warm retriever, remove it (`--compare` also compares
  the exports before and after);
- open the tome cold and ask a first question with the bundled embedder;
- ask a warm retriever 40 questions.

On a shared machine the best of several runs counts. Run it with byte code allowed
(`env -u PYTHONDONTWRITEBYTECODE`).
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import graph_store
from graph_store import RandomVectors, make_extraction, read_peak_memory
from tomewise.embedding.bundled import BundledMiniLM
from tomewise.store import records
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.registry import assemble
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Document, Retriever

PASSAGES = 40_000
SYSTEMS = ("hipporag2", "cogitorag", "associative")
SETTINGS: Mapping[str, Mapping[str, Any]] = {  # with these settings no system asks a model
    "hipporag2": {"recognition": "none", "extraction": "facts"},
    "cogitorag": {"source": "passages", "extraction": "facts", "carrier": "passages", "asking": "whole"},
}
WORDS = "tide keeper letter doctor clerk boat harbour winter lamp ledger storm rope cliff bell anchor map coin".split()


class StandIn(RandomVectors):
    """Random vectors, under the name of the bundled embedder: other phases open the same tome with that one.

    `processor` is the processor time that making them took.
    """

    name = BundledMiniLM.name
    processor = 0.0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        start = time.process_time()
        rows = super().embed(texts)
        self.processor += time.process_time() - start
        return rows


def fill(path: Path) -> None:
    graph_store.DOCUMENTS = PASSAGES // 4
    graph_store.fill(path)
    store = SqlStore.open(path)
    with store.write() as change:
        for key, value in {"embedder": BundledMiniLM.name, "passage_tokens": "256", "overlap": "0"}.items():
            change.put_note(records.SETTINGS, key, value)
    store.close()


def make_retriever(tome: Tome, system: str) -> Retriever:
    return assemble(system, tome.kit, **SETTINGS.get(system, {})).retriever


def open_tome(path: Path, embedder: object) -> Tome:
    model = ScriptedModel({"extract_facts": make_extraction})
    return Tome.open(path, model=model, embedder=embedder)  # type: ignore[arg-type]


def time_changes(path: Path, repeats: int) -> None:
    """Time adding, finding and removing. The first round also maps the arrays and loads compiled code."""
    embedder = StandIn()
    with open_tome(path, embedder) as tome:
        retriever = make_retriever(tome, "hipporag2")
        ask(retriever, "a first question")
        times: dict[str, list[float]] = {}
        processor: dict[str, list[float]] = {}

        def time_step(step: str, work: Callable[[], object]) -> object:
            embedder.seconds, embedder.processor = 0.0, 0.0
            start, before = time.perf_counter(), time.process_time()
            found = work()
            times.setdefault(step, []).append(time.perf_counter() - start - embedder.seconds)
            processor.setdefault(step, []).append(time.process_time() - before - embedder.processor)
            return found

        for number in range(repeats):
            name = f"new {time.time_ns()}"
            document = Document(id=name, text="\n\n".join(make_paragraph(name, place) for place in range(4)))
            time_step("add the document", lambda document=document: tome.add(document))  # type: ignore[misc]
            report = time_step("build the graph", lambda: tome.build("associative"))
            assert report.layers[0].added == 88, report  # type: ignore[attr-defined]
            passages = tome.store.passages(documents=[name])
            assert len(passages) == 4
            fact = make_extraction(next(iter(passages.values())))["triples"][3]  # type: ignore[index]
            found = time_step("find it, warm", lambda fact=fact: ask(retriever, str(tuple(fact))))  # type: ignore[misc]
            assert any(piece.id in {passage.id for passage in passages.values()} for piece in found[:2])  # type: ignore[index]
            time_step("remove the document", lambda name=name: tome.remove(name))  # type: ignore[misc]
            time_step("build after removal", lambda: tome.build("associative"))
            rest = time_step("recall after removal", lambda fact=fact: ask(retriever, str(tuple(fact))))  # type: ignore[misc]
            assert not {piece.id for piece in rest} & {passage.id for passage in passages.values()}  # type: ignore[attr-defined]
            print(f"  round {number}: " + ", ".join(f"{step} {seconds[-1]:.3f}" for step, seconds in times.items()))
        added = [sum(steps) for steps in zip(*list(times.values())[:3], strict=True)]
        removed = [sum(steps) for steps in zip(*list(times.values())[3:], strict=True)]
        show("add four passages and find them", added, 0.5)
        print("processor time, best: " + ", ".join(f"{step} {min(spent):.3f} s" for step, spent in processor.items()))
        show("remove them and recall again", removed, 0.5)
        print(f"peak memory {read_peak_memory():.2f} GB (at most 1)")


def make_paragraph(name: str, place: int) -> str:
    """About 200 words, so that four make four passages."""
    random = np.random.default_rng([len(name), place, int(name.split()[1]) % 2**31])
    return f"{name}, {place}. " + " ".join(random.choice(WORDS, 200)) + "."


def ask(retriever: Retriever, query: str) -> list:  # type: ignore[type-arg]
    return asyncio.run(retriever.retrieve(query, 20))


def print_digest(path: Path) -> None:
    whole = sha256()
    with open_tome(path, StandIn()) as tome:
        for line in tome.memory.export():
            whole.update(line.encode())
    print(whole.hexdigest())


def time_cold_start(path: Path, system: str, started: float) -> None:
    with open_tome(path, BundledMiniLM()) as tome:
        ready = time.time()
        found = ask(make_retriever(tome, system), "Which name has to do with name 17?")
        first, processor = time.time(), time.process_time()
        assert len(found) == 20
        ask(make_retriever(tome, system), "Which name has to do with name 18?")
        print(f"{first - started:.3f} {ready - started:.3f} {processor:.3f} {read_peak_memory():.2f}")


def time_warm_recall(path: Path, *, bundled: bool) -> None:
    with open_tome(path, BundledMiniLM() if bundled else StandIn()) as tome:
        for system in SYSTEMS:
            retriever = make_retriever(tome, system)
            ask(retriever, "first")
            times, processor = [], []
            for number in range(40):
                start, before = time.perf_counter(), time.process_time()
                ask(retriever, f"Which name has to do with name {number * 3001} and Name {number * 17}?")
                times.append(time.perf_counter() - start)
                processor.append(time.process_time() - before)
            label = f"one warm recall, {system}, {'bundled' if bundled else 'random'} vectors"
            best, median = min(times) * 1e3, np.median(times) * 1e3
            of_processor = f"{min(processor) * 1e3:.1f} ms and {np.median(processor) * 1e3:.1f} ms of processor time"
            print(f"{label}: best {best:.1f} ms, median {median:.1f} ms (at most 30); {of_processor}")
        print(f"peak memory {read_peak_memory():.2f} GB (at most 1)")


def read_output(words: list[str]) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def show(label: str, seconds: list[float], target: float) -> None:
    later = f"best {min(seconds):.3f} s, median {np.median(seconds):.3f} s"
    print(f"{label}: first {seconds[0]:.3f} s, {later} (at most {target})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "tomewise-large-tome")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--compare", action="store_true", help="also compare exports, which takes a minute")
    parser.add_argument("--only", choices=("change", "cold", "warm"))
    parser.add_argument("--phase", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    path = options.folder / f"large-{PASSAGES}.tome"
    if options.phase:
        name, *rest = options.phase
        if name == "change":
            time_changes(path, options.repeats)
        elif name == "digest":
            print_digest(path)
        elif name == "cold":
            time_cold_start(path, rest[0], float(rest[1]))
        else:
            time_warm_recall(path, bundled=rest[0] == "bundled")
        return
    options.folder.mkdir(exist_ok=True)
    if not path.exists():
        start = time.perf_counter()
        fill(path)
        print(f"made in {time.perf_counter() - start:.0f} s, {path.stat().st_size / 1e6:.0f} MB")
    command = [sys.executable, __file__, "--folder", str(options.folder), "--repeats", str(options.repeats)]
    if options.only in (None, "change"):
        before = read_output([*command, "--phase", "digest"]) if options.compare else ""
        subprocess.run([*command, "--phase", "change"], check=True)
        if options.compare:
            after = read_output([*command, "--phase", "digest"])
            assert after == before, "the export differs from the one before the changes"
            print("the export equals the one before the changes")
    for system in SYSTEMS if options.only in (None, "cold") else ():
        runs = []
        for _ in range(options.repeats):
            words = [*command, "--phase", "cold", system, repr(time.time())]
            runs.append([float(number) for number in read_output(words).split()])
        first, ready, processor, memory = np.array(runs).T
        print(f"fresh process to first recall, {system}: best {first.min():.2f} s, median {np.median(first):.2f} s")
        print(f"  of processor time best {processor.min():.2f} s")
        print(f"  of these {np.median(ready):.2f} s until the tome is open; peak memory {memory.max():.2f} GB")
    for vectors in ("random", "bundled") if options.only in (None, "warm") else ():
        subprocess.run([*command, "--phase", "warm", vectors], check=True)


if __name__ == "__main__":
    main()
