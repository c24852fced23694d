"""What an experiment costs compared with a bare loop of `Tome.aask`: questions to a model that answers at once.

    .venv/bin/python bench/evaluate.py [questions] [embedder]

Both ask the same questions of the same documents, which are added beforehand. The bare loop asks one question after
the other; like every `ask`, it keeps a trace in the tome. The experiment keeps rows. If there is gold evidence, it also
ranks the first 50 passages, which the bare loop does not do. A rerun, which asks nothing, is timed as well. Ratios are
of wall time and of processor time, because wall time says little on a machine with other work.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.evaluate.design import Design
from tomewise.evaluate.items import Dataset, Item
from tomewise.evaluate.metrics import find_metric
from tomewise.evaluate.running import run
from tomewise.systems.registry import parse_variants
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Document, Embedder, Question

DOCUMENTS, WORDS = 1000, 120
REPLIES = {"answer": lambda given: {"answer": "Paris"}}


def make_dataset(questions: int, *, gold: bool) -> Dataset:
    """Documents of one passage each, drawn from 4,000 words, and questions about them in turn."""
    draw = random.Random(0)
    words = [f"{draw.choice('bcdfglmnprst')}{draw.choice('aeiou')}{number:x}" for number in range(4000)]
    texts = [" ".join(draw.choices(words, k=WORDS)) for _ in range(DOCUMENTS)]
    documents = tuple(Document(id=f"d{number}", text=text) for number, text in enumerate(texts))
    items = tuple(
        Item(
            id=f"q{number}",
            question=Question(text=f"Who met {' '.join(texts[number % DOCUMENTS].split()[:8])} ({number})?"),
            answers=("Paris",),
            supporting=(f"d{number % DOCUMENTS}",) if gold else (),
        )
        for number in range(questions)
    )
    return Dataset(name="bench", documents=documents, items=items)


@dataclass(frozen=True, slots=True)
class Seconds:
    """Two clocks, read together."""

    wall: float
    processor: float

    @classmethod
    def read_clocks(cls) -> Seconds:
        return cls(time.perf_counter(), time.process_time())

    def measure_since(self) -> Seconds:
        now = Seconds.read_clocks()
        return Seconds(now.wall - self.wall, now.processor - self.processor)


async def measure(system: str, questions: int, embedder: Embedder, folder: Path, *, gold: bool) -> str:
    """One line: seconds of the bare loop, of the experiment, and of a rerun."""
    data = make_dataset(questions, gold=gold)
    with Tome.open(folder / "bare.tome", model=ScriptedModel(REPLIES), embedder=embedder) as tome:
        await tome.aadd(*data.documents)
        await tome.aask("warm?", system=system)
        bare = Seconds.read_clocks()
        for item in data.items:
            await tome.aask(item.question, system=system)
        bare = bare.measure_since()
    metrics = (find_metric("em"), *([find_metric("recall@5")] if gold else []))

    def make_experiment(items: tuple[Item, ...]) -> Design:
        return Design(
            dataset=Dataset(name=data.name, documents=data.documents, items=items),
            variants=parse_variants([system]),
            model=ScriptedModel(REPLIES),
            embedder=embedder,
            metrics=metrics,
        )

    await run(make_experiment(data.items[:1]), folder)
    seconds = []
    for _ in range(2):
        start = Seconds.read_clocks()
        results = await run(make_experiment(data.items), folder)
        seconds.append(start.measure_since())
    assert len(results.rows) == questions
    first, again = seconds
    ratio = f"ratio {first.wall / bare.wall:4.2f}, of processor time {first.processor / bare.processor:4.2f}"
    label = f"{system:<8} {'with' if gold else 'without':>7} gold evidence"
    return f"{label}  bare {bare.wall:6.2f} s  run {first.wall:6.2f} s  {ratio}  rerun {again.wall:5.2f} s"


def main() -> None:
    questions = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    name = sys.argv[2] if len(sys.argv) > 2 else "hash"
    print(f"{questions:,} questions over {DOCUMENTS:,} passages, embedder {name}, a model that answers at once")
    for system in ("naive", "hybrid"):
        for gold in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                print(asyncio.run(measure(system, questions, choose_embedder(name), Path(folder), gold=gold)))


if __name__ == "__main__":
    main()
