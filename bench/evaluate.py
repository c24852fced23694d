"""What an experiment costs beside a bare loop of `Tome.aask`: questions to a model that answers at once.

    .venv/bin/python bench/evaluate.py [questions] [embedder]

Both ask the same questions of the same tome, which is made beforehand. The bare loop asks one after the other and, as
every `ask`, keeps a trace in the tome; the experiment keeps rows, and where there is gold evidence also ranks the first
50 passages, which the bare loop does not. Also: a rerun, which asks nothing. Ratios are of wall time and, since that
says little on a machine with other work, of processor time.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tomewise.embedding.choose_embedder import embedder_named
from tomewise.evaluate.experiment import Experiment
from tomewise.evaluate.items import Dataset, Item
from tomewise.evaluate.metrics import metric_named
from tomewise.evaluate.running import run
from tomewise.language.scripted import ScriptedModel
from tomewise.systems.spec import parse_variants
from tomewise.tome.tome import Tome
from tomewise.types import Document, Embedder, Question

DOCUMENTS, WORDS = 1000, 120
REPLIES = {"answer": lambda given: {"answer": "Paris"}}


def dataset(questions: int, *, gold: bool) -> Dataset:
    """Documents of one passage each, drawn from 4,000 words, and a question about each."""
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
    """Two clocks read together."""

    wall: float
    processor: float

    @classmethod
    def now(cls) -> Seconds:
        return cls(time.perf_counter(), time.process_time())

    def since(self) -> Seconds:
        now = Seconds.now()
        return Seconds(now.wall - self.wall, now.processor - self.processor)


async def measured(system: str, questions: int, embedder: Embedder, folder: Path, *, gold: bool) -> str:
    """One line: seconds of the bare loop, of the experiment, and of a rerun."""
    data = dataset(questions, gold=gold)
    with Tome.open(folder / "bare.tome", model=ScriptedModel(REPLIES), embedder=embedder) as tome:
        await tome.aadd(*data.documents)
        await tome.aask("warm?", system=system)
        bare = Seconds.now()
        for item in data.items:
            await tome.aask(item.question, system=system)
        bare = bare.since()
    metrics = (metric_named("em"), *([metric_named("recall@5")] if gold else []))

    def experiment(items: tuple[Item, ...]) -> Experiment:
        return Experiment(
            dataset=Dataset(name=data.name, documents=data.documents, items=items),
            variants=parse_variants([system]),
            model=ScriptedModel(REPLIES),
            embedder=embedder,
            metrics=metrics,
        )

    await run(experiment(data.items[:1]), folder)
    seconds = []
    for _ in range(2):
        started = Seconds.now()
        results = await run(experiment(data.items), folder)
        seconds.append(started.since())
    assert len(results.rows) == questions
    asked, again = seconds
    ratio = f"ratio {asked.wall / bare.wall:4.2f}, of processor time {asked.processor / bare.processor:4.2f}"
    what = f"{system:<8} {'with' if gold else 'without':>7} gold evidence"
    return f"{what}  bare {bare.wall:6.2f} s  run {asked.wall:6.2f} s  {ratio}  rerun {again.wall:5.2f} s"


def main() -> None:
    questions = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    name = sys.argv[2] if len(sys.argv) > 2 else "hash"
    print(f"{questions:,} questions over {DOCUMENTS:,} passages, embedder {name}, a model that answers at once")
    for system in ("naive", "hybrid"):
        for gold in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                print(asyncio.run(measured(system, questions, embedder_named(name), Path(folder), gold=gold)))


if __name__ == "__main__":
    main()
