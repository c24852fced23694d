"""What systems that read a whole text write down of the words that support an answer, and what that costs.

`python bench/relay.py` asks the extractive model

- four questions about a novel (`../shared/data/novels/gods_of_mars.txt`), read in chunks of 8,000 tokens;
- two specific questions about each meeting of QMSum (`../shared/data/qmsum`), read in chunks of 2,000 tokens with a
  ledger of an eighth of that, and a note of as many tokens.

Systems that need memory have it built by the same model first; these calls are not counted.

`seen` is the share of supporting excerpts that reach the answering call. Of the novel, an excerpt must stand there word
for word. Of QMSum, the turns that support the answer count as seen if one of their sentences, of four words or more,
stands there. Calls, depth and tokens are means a question. These rows show the machinery, not the accuracy of a model.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.evaluate.datasets import read_dataset
from tomewise.language.extractive import ExtractiveModel
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble, parse_variants
from tomewise.text.sentences import split_sentences
from tomewise.tome.tome import Tome
from tomewise.types import Document, Embedder, Question

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
NOVEL = DATA / "novels" / "gods_of_mars.txt"
QUESTIONS = {
    "Who is the father of Carthoris?": ("son of Dejah Thoris, Princess of Helium, and of her husband, John Carter",),
    "Whose daughter is Phaidor?": ("I am Phaidor, daughter of Matai Shang",),
    "What is the rank of Xodar among the First Born?": ("Xodar, Dator of the First Born of Barsoom",),
    "Where did John Carter find his son Carthoris?": ("I found him in the prison of Shador, on the Sea of Omean",),
}
ROWS = (
    "hybrid",
    "cosmir chunk={chunk}",
    "read_through chunk={chunk}",
    "read_through chunk={chunk} wave=8",
    "read_through:without recovery chunk={chunk}",
    "read_through:to the end chunk={chunk}",
    "chain_of_agents chunk={chunk} words={words}",
    "read_agent",
    "read_agent:sequential",
    "hybrid+interleave",
    "hipporag2+interleave",
    "raptor+interleave",
    "hybrid+stepwise",
    "auto",
)
_LEAST = 4  # words of a sentence that can only come from one place
_WORDS_PER_TOKEN = 0.7


@dataclass(frozen=True, slots=True)
class Task:
    """A text, and questions about it with the excerpts that support their answers."""

    text: Document
    questions: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The share of excerpts that the answering call saw, and the cost of one question."""

    seen: float
    calls: int
    depth: int
    tokens: int
    chunks: int


def flatten(text: str) -> str:
    return " ".join(text.split())


def is_seen(excerpt: str, shown: Sequence[str], *, whole: bool) -> bool:
    """Whether the excerpt stands in what is shown, or, unless it must be `whole`, one of its sentences does."""
    parts = [excerpt] if whole else [sentence.text for sentence in split_sentences(excerpt)]
    flat = [flatten(part) for part in parts]
    long_enough = [part for part in flat if whole or len(part.split()) >= _LEAST]
    return any(part in text for part in long_enough or flat for text in shown)


class Recorded(ExtractiveModel):
    """The extractive model, which keeps what it is shown for the answer. Without a cache, so that every call counts."""

    shown: Any = None

    async def ask(self, role: Any, given: Any) -> Any:
        if role.name == "answer":
            self.shown = given
        return await super().ask(role, given)


async def ask_one(tome: Tome, name: str, question: str, excerpts: Sequence[str], *, whole: bool) -> Outcome:
    model = Recorded(tome.kit.embedder)
    (variant,) = parse_variants([name])
    system = assemble(variant.system, Kit(tome.store, model, tome.kit.embedder), **variant.settings)
    answer = await answer_question(system, Question(text=question, force=True))
    shown = [flatten(text) for text in (*(piece.text for piece in model.shown.evidence), *model.shown.notes)]
    seen = fmean([is_seen(excerpt, shown, whole=whole) for excerpt in excerpts])
    divided = next((event.detail["chunks"] for event in answer.events if event.name == "divided"), 0)
    total = answer.cost
    return Outcome(seen, total.calls, answer.cost.depth, total.input_tokens + total.output_tokens, divided)


def measure(tasks: Sequence[Task], embedder: Embedder, chunk: int, *, whole: bool) -> None:
    words = round(0.125 * chunk * _WORDS_PER_TOKEN)
    names = [row.format(chunk=chunk, words=words) for row in ROWS]
    outcomes: dict[str, list[Outcome]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for number, task in enumerate(tasks):
            with Tome.open(Path(folder) / f"{number}.tome", model=ExtractiveModel(embedder), embedder=embedder) as tome:
                tome.add(task.text)
                for name in names:
                    tome.build(name)
                    for question, excerpts in task.questions:
                        outcomes[name].append(asyncio.run(ask_one(tome, name, question, excerpts, whole=whole)))
    print("| system | seen | calls | depth | tokens | chunks |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, found in outcomes.items():
        seen = 100 * fmean([outcome.seen for outcome in found])
        calls, depth, tokens, chunks = (
            fmean([getattr(outcome, field) for outcome in found]) for field in ("calls", "depth", "tokens", "chunks")
        )
        print(f"| {name} | {seen:.0f} | {calls:.1f} | {depth:.1f} | {tokens:,.0f} | {chunks:.1f} |", flush=True)


def read_meetings() -> list[Task]:
    """Every meeting with its first two specific questions."""
    data = read_dataset("qmsum", DATA / "qmsum")
    texts = {document.id: document for document in data.documents}
    tasks = []
    for name, document in texts.items():
        asked = [item for item in data.items if item.spans and item.documents == (name,)][:2]
        pairs = [(item.question.text, tuple(document.text[s.start : s.end] for s in item.spans)) for item in asked]
        tasks.append(Task(document, tuple(pairs)))
    return tasks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meetings", type=int, default=35, help="how many meetings of QMSum, from the first")
    parser.add_argument("--only", choices=["novel", "qmsum"], help="one of the two texts")
    parser.add_argument("--embedder", default="bundled", help="for a quick look: hash")
    options = parser.parse_args()
    embedder = choose_embedder(options.embedder)
    if not NOVEL.is_file():
        print(f"skipped: {NOVEL} is absent")
        return
    if options.only != "qmsum":
        print("the novel, chunks of 8,000 tokens\n")
        novel = Document(id="gods_of_mars", text=NOVEL.read_text(encoding="utf-8", errors="replace"))
        measure([Task(novel, tuple(QUESTIONS.items()))], embedder, 8_000, whole=True)
    if options.only != "novel":
        print("\nQMSum, chunks of 2,000 tokens\n")
        measure(read_meetings()[: options.meetings], embedder, 2_000, whole=False)


if __name__ == "__main__":
    main()
