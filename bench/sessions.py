"""Ten questions as one session and one by one: calls, tokens, and the gold that the answering call sees.

On the novel, on a meeting of QMSum and on the sample, where two topics alternate; with the extractive model and the
bundled embedder. The novel has the given graph and no gold. The questions are the same ones both times: full questions,
so that the comparison is about the memory.

python bench/sessions.py [novel | meeting | sample] [SYSTEM ...]
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from tomewise.evaluate.datasets import read_dataset
from tomewise.evaluate.items import RankedPassage, Span
from tomewise.evaluate.metrics.rankings import span_recall_at
from tomewise.loops.evidence import PASSAGE, name_kind
from tomewise.sample import STORY, read_questions
from tomewise.store.lookups import find_keys
from tomewise.store.records import SESSIONS
from tomewise.tome.tome import Tome
from tomewise.types import Answer, Document

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
EMBEDDER = "bundled"
TEXTS = ("novel", "meeting", "sample")
NOVEL = (
    "Why is Xodar given to Carter as a slave?",
    "Who degraded Xodar?",
    "How does Carter defeat Xodar?",
    "Who are the First Born?",
    "What is the Temple of Issus?",
    "Who is Phaidor?",
    "Why does Phaidor hate Dejah Thoris?",
    "Who is the boy in the prison of Shador?",
    "How do the prisoners escape from Shador?",
    "What happens to Dejah Thoris in the Temple of the Sun?",
)
# Of the sample: how the body was found and the clocks deceived, and what Mrs. Moy is to Constance.
TOPICS = ("f1", "i1", "f3", "i2", "f7", "i4", "n1", "i7", "n3", "n6")
SYSTEMS = ("hgmem", "hybrid+evolve", "hybrid+probe", "hybrid")
Asked = dict[str, tuple[Span, ...]]  # the gold of each question


def prepare(name: str, tome: Tome) -> Asked:
    """Add the texts; the ten questions about them."""
    if name == "novel":
        tome.add(Document(id="novel", text=(DATA / "novels" / "gods_of_mars.txt").read_text(encoding="utf-8")))
        tome.build("hgmem", extractions=DATA / "novels" / "gods_of_mars_graph.jsonl")
        return dict.fromkeys(NOVEL, ())
    asked = add_sample(tome) if name == "sample" else add_meeting(tome)
    tome.build("hgmem")
    return asked


def add_sample(tome: Tome) -> Asked:
    text = STORY.read_text(encoding="utf-8")
    tome.add(Document(id="story", text=text))
    known = {each.id: each for each in read_questions()}
    return {
        known[id].question: tuple(
            Span(document="story", start=text.index(words), end=text.index(words) + len(words))
            for words in known[id].supporting
        )
        for id in TOPICS
    }


def add_meeting(tome: Tome) -> Asked:
    """The first meeting with ten questions."""
    dataset = read_dataset("qmsum", DATA / "qmsum")
    for document in dataset.documents:
        items = [item for item in dataset.items if item.documents == (document.id,)]
        if len(items) >= 10:
            tome.add(document)
            return {item.question.text: item.spans for item in items[:10]}
    raise SystemExit("no meeting has ten questions")


def measure_seen(tome: Tome, answer: Answer, gold: tuple[Span, ...]) -> float:
    """The share of the gold spans that the passages shown to the answering call hold."""
    sources = [source for piece in answer.evidence if name_kind(piece) == PASSAGE for source in piece.sources]
    passages = tome.store.passages(find_keys(tome.store, sources).values()).values()
    shown = [RankedPassage(id=each.id, document=each.document, start=each.start, end=each.end) for each in passages]
    return span_recall_at(shown, gold)


def show(tome: Tome, system: str, kind: str, asked: Asked, answers: Sequence[Answer], size: int = 0) -> float:
    """Print one row of the table. Returns the tokens of a question."""
    half = len(answers) // 2
    calls = [answer.cost.calls for answer in answers]
    tokens = [answer.cost.input_tokens + answer.cost.output_tokens for answer in answers]
    origins = [answer.session for answer in answers if answer.session]
    taken = f"{mean(len(each.notes) for each in origins):.1f}" if origins else ""
    seen = [measure_seen(tome, answer, gold) for answer, gold in zip(answers, asked.values(), strict=True) if gold]
    cells = [
        system,
        kind,
        f"{mean(calls):.1f}",
        f"{mean(tokens):,.0f}",
        f"{mean(tokens[:half]):,.0f}, {mean(tokens[half:]):,.0f}",
        f"{100 * mean(seen):.0f}" if seen else "",
        taken,
        f"{size:,}" if size else "",
    ]
    print(f"| {' | '.join(cells)} |", flush=True)
    return mean(tokens)


def main() -> None:
    if not DATA.exists():
        print("skipped: ../shared/data is absent")
        return
    names = [name for name in sys.argv[1:] if name in TEXTS] or TEXTS
    systems = [name for name in sys.argv[1:] if name not in TEXTS] or SYSTEMS
    for name in names:
        with tempfile.TemporaryDirectory() as folder, Tome.open(Path(folder) / "a.tome", embedder=EMBEDDER) as tome:
            asked = prepare(name, tome)
            print(f"\n{name}\n| system | asked | calls | tokens | first, second half | gold seen, % | notes | bytes |")
            for system in systems:
                answers = [tome.ask(question, system=system, fresh=True) for question in asked]
                alone = show(tome, system, "one by one", asked, answers)
                session = tome.sessions[system]
                answers = [session.ask(question, system=system, fresh=True) for question in asked]
                together = show(
                    tome, system, "session", asked, answers, len(json.dumps(tome.store.note(SESSIONS, system)))
                )
                print(f"tokens of the session: {together / alone:.2f} times those one by one", flush=True)


if __name__ == "__main__":
    main()
