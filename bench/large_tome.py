"""A tome of 140,000 entities, 160,000 facts and 40,000 passages in daily use, beyond the time of model and embedding.

`python bench/large_tome.py` makes it (once, kept in `--folder`, 1 GB) and then, each in a fresh process: adds a
document of four passages through `Tome`, asks a warm retriever for it, removes it, and compares the exports; opens the
tome cold and asks a first question with the bundled embedder; and asks a warm retriever 40 questions. The best of
several counts where others share the machine. Start it with byte code allowed (`env -u PYTHONDONTWRITEBYTECODE`).
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import graph_store
from graph_store import RandomVectors, extraction, most_memory
from tomewise.embedding.bundled import BundledMiniLM
from tomewise.language.scripted import ScriptedModel
from tomewise.store.sqlite.store import SqliteStore
from tomewise.systems.registry import assemble
from tomewise.tome.tome import Tome
from tomewise.types import Document, Retriever

PASSAGES = 40_000
SYSTEMS = ("hipporag2", "cogitorag", "associative")
SETTINGS: Mapping[str, Mapping[str, Any]] = {  # those with which no model is asked
    "hipporag2": {"recognition": "none"},
    "cogitorag": {"source": "passages", "carrier": "passages", "asking": "whole"},
}
WORDS = "tide keeper letter doctor clerk boat harbour winter lamp ledger storm rope cliff bell anchor map coin".split()


class StandIn(RandomVectors):
    """Vectors at once, under the name of the embedder that the tome is opened with elsewhere."""

    name = BundledMiniLM.name


def fill(path: Path) -> None:
    graph_store.DOCUMENTS = PASSAGES // 4
    graph_store.fill(path)
    store = SqliteStore.open(path)
    with store.write() as change:
        for key, value in {"embedder": BundledMiniLM.name, "passage_tokens": "256", "overlap": "0"}.items():
            change.set_meta(key, value)
    store.close()


def recall(tome: Tome, system: str) -> Retriever:
    return assemble(system, tome.kit, **SETTINGS.get(system, {})).retriever


def opened(path: Path, embedder: object) -> Tome:
    model = ScriptedModel({"extract_facts": extraction})
    return Tome.open(path, model=model, embedder=embedder)  # type: ignore[arg-type]


def change(path: Path, repeats: int) -> None:
    """Add, find, remove. The first time also maps the arrays and loads what is compiled."""
    embedder = StandIn()
    with opened(path, embedder) as tome:
        retriever = recall(tome, "hipporag2")
        ask(retriever, "to be warm")
        times: dict[str, list[float]] = {}

        def timed(what: str, work: Callable[[], object]) -> object:
            embedder.seconds, started = 0.0, time.perf_counter()
            found = work()
            times.setdefault(what, []).append(time.perf_counter() - started - embedder.seconds)
            return found

        for number in range(repeats):
            name = f"new {time.time_ns()}"
            document = Document(id=name, text="\n\n".join(paragraph(name, place) for place in range(4)))
            timed("add the document", lambda document=document: tome.add(document))  # type: ignore[misc]
            report = timed("build the graph", lambda: tome.build("hipporag2"))
            assert report.layers[0].added == 88, report  # type: ignore[attr-defined]
            passages = tome.store.passages_of([name])
            assert len(passages) == 4
            fact = extraction(next(iter(passages.values())))["triples"][3]  # type: ignore[index]
            found = timed("find it, warm", lambda fact=fact: ask(retriever, str(tuple(fact))))  # type: ignore[misc]
            assert any(piece.node in {passage.id for passage in passages.values()} for piece in found[:2])  # type: ignore[index]
            timed("remove the document", lambda name=name: tome.remove(name))  # type: ignore[misc]
            timed("build after removal", lambda: tome.build("hipporag2"))
            left = timed("recall after removal", lambda fact=fact: ask(retriever, str(tuple(fact))))  # type: ignore[misc]
            assert not {piece.node for piece in left} & {passage.id for passage in passages.values()}  # type: ignore[attr-defined]
            print(f"  round {number}: " + ", ".join(f"{what} {some[-1]:.3f}" for what, some in times.items()))
        added = [sum(some) for some in zip(*list(times.values())[:3], strict=True)]
        removed = [sum(some) for some in zip(*list(times.values())[3:], strict=True)]
        show("add four passages and find them", added, 0.5)
        show("remove them and recall again", removed, 0.5)
        print(f"most memory {most_memory():.2f} GB (at most 1)")


def paragraph(name: str, place: int) -> str:
    """About 200 words, so that four make four passages."""
    random = np.random.default_rng([len(name), place, int(name.split()[1]) % 2**31])
    return f"{name}, {place}. " + " ".join(random.choice(WORDS, 200)) + "."


def ask(retriever: Retriever, query: str) -> list:  # type: ignore[type-arg]
    return asyncio.run(retriever.retrieve(query, 20))


def digest(path: Path) -> None:
    whole = sha256()
    with opened(path, StandIn()) as tome:
        for line in tome.export():
            whole.update(line.encode())
    print(whole.hexdigest())


def cold(path: Path, system: str, started: float) -> None:
    with opened(path, BundledMiniLM()) as tome:
        ready = time.time()
        found = ask(recall(tome, system), "Which name has to do with name 17?")
        first = time.time()
        assert len(found) == 20
        ask(recall(tome, system), "Which name has to do with name 18?")
        print(f"{first - started:.3f} {ready - started:.3f} {most_memory():.2f}")


def warm(path: Path, bundled: bool) -> None:
    with opened(path, BundledMiniLM() if bundled else StandIn()) as tome:
        for system in SYSTEMS:
            retriever = recall(tome, system)
            ask(retriever, "first")
            times = []
            for number in range(40):
                started = time.perf_counter()
                ask(retriever, f"Which name has to do with name {number * 3001} and Name {number * 17}?")
                times.append(time.perf_counter() - started)
            what = f"one warm recall, {system}, {'bundled' if bundled else 'random'} vectors"
            print(f"{what}: best {min(times) * 1e3:.1f} ms, median {np.median(times) * 1e3:.1f} ms (at most 30)")
        print(f"most memory {most_memory():.2f} GB (at most 1)")


def said(words: list[str]) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def show(what: str, seconds: list[float], target: float) -> None:
    some = f"best {min(seconds):.3f} s, median {np.median(seconds):.3f} s"
    print(f"{what}: first {seconds[0]:.3f} s, {some} (at most {target})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "tomewise-large-tome")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--compare", action="store_true", help="also compare exports, which takes a minute")
    parser.add_argument("--only", choices=("change", "cold", "warm"))
    parser.add_argument("--phase", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    path = given.folder / f"large-{PASSAGES}.tome"
    if given.phase:
        name, *rest = given.phase
        if name == "change":
            change(path, given.repeats)
        elif name == "digest":
            digest(path)
        elif name == "cold":
            cold(path, rest[0], float(rest[1]))
        else:
            warm(path, rest[0] == "bundled")
        return
    given.folder.mkdir(exist_ok=True)
    if not path.exists():
        started = time.perf_counter()
        fill(path)
        print(f"made in {time.perf_counter() - started:.0f} s, {path.stat().st_size / 1e6:.0f} MB")
    command = [sys.executable, __file__, "--folder", str(given.folder), "--repeats", str(given.repeats)]
    if given.only in (None, "change"):
        before = said([*command, "--phase", "digest"]) if given.compare else ""
        subprocess.run([*command, "--phase", "change"], check=True)
        if given.compare:
            assert said([*command, "--phase", "digest"]) == before, "the export is not as it was"
            print("the canonical export is as it was")
    for system in SYSTEMS if given.only in (None, "cold") else ():
        runs = []
        for _ in range(given.repeats):
            words = [*command, "--phase", "cold", system, repr(time.time())]
            runs.append([float(number) for number in said(words).split()])
        first, ready, memory = np.array(runs).T
        print(f"fresh process to first recall, {system}: best {first.min():.2f} s, median {np.median(first):.2f} s")
        print(f"  of these {np.median(ready):.2f} s until the tome is open; most memory {memory.max():.2f} GB")
    for vectors in ("random", "bundled") if given.only in (None, "warm") else ():
        subprocess.run([*command, "--phase", "warm", vectors], check=True)


if __name__ == "__main__":
    main()
