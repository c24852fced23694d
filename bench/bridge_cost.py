"""What a question costs with rewriting, part by part: processor time in milliseconds, and shares of one search.

    python bench/bridge_cost.py                     # the 60 questions of MuSiQue, bundled embedder
    python bench/bridge_cost.py --tome LARGE.tome   # a tome of bench/large_tome.py, random vectors

Processor time of the whole process, best of three rounds for each question, then medians: a busy machine counts little.
Products use one thread. Vectors of rewrites are forgotten between the rounds.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # threads that wait would count as processor time

import argparse
import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from large_tome import StandIn
from large_tome import open_tome as open_large
from musique import OUT, open_tome, read_rows
from tomewise.recall.diffusion import Diffusion, WordCoverage
from tomewise.recall.rewriting import Rewriter
from tomewise.systems.registry import assemble
from tomewise.tome.tome import Tome

ROUNDS = 3
PARTS = ("embedding the question", "walk and seeds", "embedding the rewrites", "rewriting", "coverage", "the rest")


class Clock:
    """The processor time of parts; what one part spends inside another is taken off the outer one."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self._inner = 0.0

    def watch(self, owner: Any, method: str, name: Callable[..., str]) -> None:
        """Time a method of a class or an object, under the name that its arguments give."""
        original = getattr(owner, method)

        def begin() -> tuple[float, float]:
            outer, self._inner = self._inner, 0.0
            return time.process_time(), outer

        def end(label: str, start: float, outer: float) -> None:
            whole = time.process_time() - start
            self.spent[label] += whole - self._inner
            self._inner = outer + whole

        def run(*given: Any, **named: Any) -> Any:
            start, outer = begin()
            try:
                return original(*given, **named)
            finally:
                end(name(*given), start, outer)

        async def run_async(*given: Any, **named: Any) -> Any:
            start, outer = begin()
            try:
                return await original(*given, **named)
            finally:
                end(name(*given), start, outer)

        setattr(owner, method, run_async if asyncio.iscoroutinefunction(original) else run)


def measure(tome: Tome, questions: list[str]) -> np.ndarray[Any, Any]:
    """Milliseconds (questions, parts)."""
    retriever = assemble("associative", tome.kit, comparisons="whole").retriever
    clock = Clock()
    clock.watch(tome.kit.embedder, "embed", lambda texts: PARTS[0] if len(texts) == 1 else PARTS[2])
    clock.watch(Diffusion, "_walk", lambda *_: PARTS[1])
    clock.watch(Rewriter, "find_lifts", lambda *_: PARTS[3])
    clock.watch(WordCoverage, "reorder", lambda *_: PARTS[4])
    clock.watch(type(retriever), "retrieve", lambda *_: PARTS[5])
    asyncio.run(retriever.retrieve("Which name is it?", 20))  # type: ignore[union-attr]
    rounds = np.empty((ROUNDS, len(questions), len(PARTS)))
    for each in range(ROUNDS):
        for place, question in enumerate(questions):
            retriever.rewriter._vectors.clear()  # type: ignore[union-attr]
            clock.spent.clear()
            asyncio.run(retriever.retrieve(question, 20))  # type: ignore[union-attr]
            rounds[each, place] = [1e3 * clock.spent[part] for part in PARTS]
    return rounds[rounds.sum(axis=2).argmin(axis=0), np.arange(len(questions))]


def compare_batches(embedder: Any) -> str:
    """24 rewrites in batches of equal length, as the embedder makes them, against one batch padded to the longest."""
    question = "who did the {} play in the world series last year and where was the game"
    texts = [question.format(" ".join(["harbour"] * (number % 8) + [str(number)])) for number in range(24)]
    ids = [encoding.ids for encoding in embedder.tokenizer.encode_batch_fast(texts)]
    longest = max(map(len, ids))
    padded = np.array([[*row, *[0] * (longest - len(row))] for row in ids], np.int32)
    session = embedder._ready_session()

    def time_best(run: Callable[[], object]) -> float:
        spent = []
        for _ in range(9):
            start = time.process_time()
            run()
            spent.append(time.process_time() - start)
        return 1e3 * min(spent)

    by_length, padded_ms = (
        time_best(lambda: embedder.embed(texts)),
        time_best(lambda: session.run(None, {"ids": padded})),
    )
    sizes = f"24 rewrites, {min(map(len, ids))} to {longest} tokens"
    return f"{sizes}: batches of equal length {by_length:.0f} ms, one padded batch {padded_ms:.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tome", type=Path, help="a tome that bench/large_tome.py made")
    path = parser.parse_args().tome
    if path:
        with open_large(path, StandIn()) as tome:
            table = measure(tome, [f"Which name has to do with name {n * 3001} and Name {n * 17}?" for n in range(40)])
    else:
        with open_tome(OUT / "musique.tome") as tome:
            print(compare_batches(tome.kit.embedder))
            table = measure(tome, [row["question"] for row in read_rows("questions.jsonl")])
    medians = np.median(table, axis=0)
    print("| part | ms | share |\n| --- | ---: | ---: |")
    for part, median in zip(PARTS, medians, strict=True):
        print(f"| {part} | {median:.1f} | {median / medians.sum():.0%} |")
    print(f"| all | {medians.sum():.1f} | |")


if __name__ == "__main__":
    main()
