"""What a ledger keeps, by the window of the model, and how many calls a reading takes.

    .venv/bin/python bench/ledger.py [--only story|calls|planted] [--pairs 20]

The extractive model reads; tokens are counted with the prompts of a real model, so windows are as tight as there.

- story: the sample, with one question: facts that were extracted, and those in the ledger at the end. Once in chunks
  of the greatest size, and once in small ones, which give as many facts in every window.
- calls: the first 60 paragraphs and all of MuSiQue (`../shared/data/musique`) at chunks of 32,000 tokens: the calls
  that the loop states before, and those that were made.
- planted: facts in pairs, at known depths of a novel (`../shared/data/novels`). A question needs both of its pair.
  A fact is kept if the ledger holds it at the end, and a pair is joined if an inference rests on both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.errors import UsageError
from tomewise.language.chat import ChatModel
from tomewise.language.extractive import ExtractiveModel
from tomewise.run import meter
from tomewise.sample import STORY
from tomewise.systems.answer import run_loop
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble
from tomewise.tome.tome import Tome
from tomewise.types import Answer, Document, Embedder, Question
from tomewise.working.ledger import Ledger, LedgerMemory

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
NOVEL = DATA / "novels" / "christmas_carol.txt"
MUSIQUE = DATA / "musique" / "corpus.jsonl"
STORY_QUESTION = "Who put out the light, and why?"
NAMES = """Tarn Ostwick Lune Perrin Hale Corbet Mabry Sorrel Quill Anselm Dray Fenwick Isolde Jarvis Kester Lorne Merrow
    Nolan Odell Pascoe""".split()
BIRDS = """heron wren plover curlew dunlin siskin linnet martin ousel petrel redwing swift tern whimbrel avocet bittern
    crake dotterel egret fulmar""".split()
THINGS = """lantern compass ledger kettle mirror anchor saddle flute hatchet barrel candle helmet needle pistol ribbon
    shovel teapot violin walnut zither""".split()
PLACES = """mill chapel quarry orchard ferry tannery belfry granary smithy cistern dovecote kiln brewery weir lodge
    stable cellar pier tower barn""".split()


class Windowed(ExtractiveModel):
    """The extractive model with a window, which counts the prompts of a real one."""

    def __init__(self, embedder: Embedder, window: int) -> None:
        super().__init__(embedder)
        self._window = window
        self._real = ChatModel("openai:any", window=window)

    @property
    def window(self) -> int:
        return self._window

    def count_input_tokens(self, role: Any, given: Any) -> int:
        return self._real.count_input_tokens(role, given)


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading: its answer with the trace, its ledger, and the calls that were stated before."""

    answer: Answer
    ledger: Ledger
    stated: int

    @property
    def chunks(self) -> int:
        return next(event.detail["chunks"] for event in self.answer.events if event.name == "divided")

    @property
    def extracted(self) -> int:
        extracted = (event for event in self.answer.events if event.name == "extracted")
        return len({note for event in extracted for note in event.detail["notes"]})

    @property
    def calls(self) -> int:
        return self.answer.cost.calls


def read(tome: Tome, window: int, question: str, **settings: Any) -> Reading:
    model = Windowed(tome.kit.embedder, window)
    system = assemble("read_through", Kit(tome.store, model, tome.kit.embedder), **settings)
    asked = Question(text=question, force=True)

    async def run() -> Reading:
        stated = system.loop.count_calls(await system.loop.find_chunks(asked))
        memory = LedgerMemory()
        with meter() as used:
            answer = await run_loop(system, asked, used, None, memory)
            answer = replace(answer, cost=used.measure_cost())
        return Reading(answer, memory.ledger, stated)

    return asyncio.run(run())


@contextmanager
def open_tome(*documents: Document) -> Iterator[Tome]:
    with tempfile.TemporaryDirectory() as folder, Tome.open(Path(folder) / "a.tome") as tome:
        tome.add(*documents)
        yield tome


def measure_story() -> None:
    print("\nthe story\n\n| window | chunks | calls | extracted | kept |\n| ---: | ---: | ---: | ---: | ---: |")
    small = {"chunk": 256}
    with open_tome(Document(id="story", text=STORY.read_text("utf-8"))) as tome:
        for settings in ({}, small):
            for window in (4_096, 8_192, 16_384, 32_768):
                try:
                    done = read(tome, window, STORY_QUESTION, recovery=0.0, **settings)
                except UsageError as error:
                    print(f"| {window:,} | refused: {str(error)[:90]} … |")
                    continue
                kept = len(done.ledger.facts)
                print(f"| {window:,} | {done.chunks} | {done.calls} | {done.extracted} | {kept} |", flush=True)


def measure_calls() -> None:
    rows = [json.loads(line) for line in MUSIQUE.read_text("utf-8").splitlines()]
    documents = [Document(id=str(row["id"]), title=row.get("title", ""), text=row["text"]) for row in rows]
    print("\ncalls\n\n| documents | chunks | stated | made |\n| ---: | ---: | ---: | ---: |")
    for count in (60, len(documents)):
        with open_tome(*documents[:count]) as tome:
            done = read(tome, 128_000, "Which of these people was born first?", chunk=32_000)
            print(f"| {count:,} | {done.chunks} | {done.stated} | {done.calls} |", flush=True)


def plant(text: str, pairs: int) -> tuple[str, list[tuple[str, str, str]]]:
    """The text with pairs of facts, and of each pair the two facts and the question that joins them."""
    planted, asked = [], []
    for name, bird, thing, place in list(zip(NAMES, BIRDS, THINGS, PLACES, strict=True))[:pairs]:
        hidden = f"That night {name} hid the brass {thing} beneath the old {place}."
        known = f"Among the pilots {name} was known as the grey {bird}."
        planted.append((hidden, known))
        asked.append((hidden, known, f"Where did the grey {bird} hide the brass {thing}?"))
    facts = [hidden for hidden, _ in planted] + [known for _, known in planted]  # a pair is half a novel apart
    paragraphs = text.split("\n\n")
    step = len(paragraphs) / len(facts)
    for number, fact in reversed(list(enumerate(facts))):
        paragraphs.insert(int(number * step), fact)
    return "\n\n".join(paragraphs), asked


def measure_planted(pairs: int) -> None:
    text, asked = plant(NOVEL.read_text("utf-8", errors="replace"), pairs)
    print(f"\n{2 * pairs} planted facts\n\n| window | chunks | calls | facts kept | pairs joined | pairs shown |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    with open_tome(Document(id="novel", text=text)) as tome:
        for window in (8_192, 32_768, 131_072):
            kept = joined = shown = calls = 0
            for hidden, known, question in asked:
                done = read(tome, window, question)
                facts = {fact.text for fact in done.ledger.facts}
                kept += (hidden in facts) + (known in facts)
                joined += any(hidden in each.text and known in each.text for each in done.ledger.inferences)
                seen = " ".join(piece.text for piece in done.answer.evidence)
                shown += hidden in seen and known in seen
                calls += done.calls
            counts = f"{calls / pairs:.1f} | {kept} of {2 * pairs} | {joined} of {pairs} | {shown} of {pairs}"
            print(f"| {window:,} | {done.chunks} | {counts} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["story", "calls", "planted"])
    parser.add_argument("--pairs", type=int, default=20)
    options = parser.parse_args()
    if options.only in (None, "story"):
        measure_story()
    if options.only in (None, "calls") and MUSIQUE.is_file():
        measure_calls()
    if options.only in (None, "planted") and NOVEL.is_file():
        measure_planted(options.pairs)


if __name__ == "__main__":
    choose_embedder("bundled")
    main()
