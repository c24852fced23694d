"""From a file to an answer: what adding costs beyond embedding, how much memory an ask takes, how fast recall is.

`python bench/first_answer.py [TEXT]` reads the novel of ../shared, or the bundled story if the novel is absent.
Adding and embedding alternate in one process with one embedder, so that other work on the machine slows both equally.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from tomewise.embedding.bundled import BundledMiniLM
from tomewise.recall.flat import Dense, Fused, Lexical
from tomewise.sample import STORY
from tomewise.tome.tome import Tome

NOVEL = Path(__file__).resolve().parents[1] / ".." / "shared" / "data" / "novels" / "gods_of_mars.txt"
ROUNDS = 4
QUERIES = (
    "Who is Issus?",
    "What did Xodar say of the First Born?",
    "Where is the Temple of the Sun?",
    "the black pirates",
)


def time_once(work: Callable[[], object]) -> float:
    """Wall time of one run."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare_adding(text: Path, folder: Path, embedder: BundledMiniLM) -> None:
    """Time `tome add` and embedding alone, in turn."""
    first = folder / "first.tome"
    with Tome.open(first, embedder=embedder) as tome:
        tome.add(text)
        contents = [passage.content for passage in tome.store.passages().values()]
    pairs: list[tuple[float, float]] = []
    for number in range(ROUNDS):

        def add(number: int = number) -> None:
            with Tome.open(folder / f"{number}.tome", embedder=embedder) as tome:
                tome.add(text)

        embedding = time_once(lambda: embedder.embed(contents))
        pairs.append((time_once(add), embedding))
    least_add, least_embed = min(add for add, _ in pairs), min(embed for _, embed in pairs)
    best = least_add / least_embed
    middle = median(add / embed for add, embed in pairs)
    print(f"{len(contents)} passages of {text.name}; {ROUNDS} rounds")
    print(f"  tome add {least_add:.2f} s, embedding alone {least_embed:.2f} s")
    print(f"  ratio {best:.3f} of the best rounds, {middle:.3f} in the median (wanted: at most 1.15)")


def measure_memory(path: Path) -> None:
    """Measure the peak memory of a cold `tome ask`, in its own process."""
    peaks = []
    for _ in range(3):
        words = [sys.executable, "-m", "tomewise", "-m", str(path), "ask", QUERIES[0]]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        assert status == 0, f"tome ask ended with {status}"
        peaks.append(used.ru_maxrss / 1024 * (1 if sys.platform == "linux" else 1 / 1024))
    print(f"cold tome ask: peak memory {max(peaks):.0f} MB (wanted: under 600)")


def time_recall(path: Path, embedder: BundledMiniLM) -> None:
    """Time warm recall, with and without embedding the query."""

    class ReadyVectors(BundledMiniLM):
        """Returns vectors that were computed beforehand."""

        def embed(self, texts: object) -> object:  # type: ignore[override]
            return vectors[texts[0]]  # type: ignore[index]

    vectors = {query: embedder.embed([query]) for query in QUERIES}
    with Tome.open(path, embedder=embedder) as tome:
        store = tome.store
        for label, searcher in (("query embedded beforehand", ReadyVectors()), ("with embedding the query", embedder)):
            dense, lexical = Dense(store, searcher), Lexical(store)
            for name, retriever in (("dense", dense), ("lexical", lexical), ("hybrid", Fused([dense, lexical]))):
                calls = [time_second_call(retriever.retrieve, query) for _ in range(10) for query in QUERIES]
                times = [1000 * asyncio.run(call) for call in calls]
                print(f"  {name:8} {label:26} best {min(times):5.2f} ms, median {median(times):5.2f} ms")


async def time_second_call(retrieve: Callable[..., object], query: str) -> float:
    """Seconds of the second of two equal calls: the first one warms up."""
    await retrieve(query, 20)  # type: ignore[misc]
    start = time.perf_counter()
    await retrieve(query, 20)  # type: ignore[misc]
    return time.perf_counter() - start


def main() -> None:
    text = Path(sys.argv[1]) if len(sys.argv) > 1 else NOVEL if NOVEL.exists() else STORY
    embedder = BundledMiniLM()
    with tempfile.TemporaryDirectory() as folder:
        compare_adding(text, Path(folder), embedder)
        measure_memory(Path(folder) / "first.tome")
        print("warm recall of 20 passages (wanted: under 5 ms)")
        time_recall(Path(folder) / "first.tome", embedder)


if __name__ == "__main__":
    main()
