"""Ten questions as one session and one by one: calls, tokens and the size of the session.

On the novel and on a meeting of QMSum, with the extractive model and the bundled embedder. The novel has the given
graph. The questions are the same ones both times: full questions, so that the comparison is about the memory.

python bench/sessions.py [novel | meeting]
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from tomewise.evaluate.datasets.qmsum import read_qmsum
from tomewise.tome.tome import Tome
from tomewise.types import Answer, Document

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
EMBEDDER = "bundled"
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
SYSTEMS = {
    "novel": ("hgmem", "hybrid+evolve", "hybrid+probe", "hybrid"),
    "meeting": ("hybrid+evolve", "hybrid+probe", "hybrid"),
}


def prepare(name: str, tome: Tome) -> Sequence[str]:
    """Add the texts; the ten questions about them."""
    if name == "novel":
        tome.add(Document(id="novel", text=(DATA / "novels" / "gods_of_mars.txt").read_text(encoding="utf-8")))
        tome.build("hgmem", extractions=DATA / "novels" / "gods_of_mars_graph.jsonl")
        return NOVEL
    dataset = read_qmsum(DATA / "qmsum")
    for document in dataset.documents:
        questions = [item.question.text for item in dataset.items if item.documents == (document.id,)]
        if len(questions) >= 10:
            tome.add(document)
            return questions[:10]
    raise SystemExit("no meeting has ten questions")


def show(system: str, kind: str, answers: Sequence[Answer], size: int = 0) -> None:
    """One row of the table."""
    half = len(answers) // 2
    calls = [answer.usage.total.calls for answer in answers]
    tokens = [answer.usage.total.input_tokens + answer.usage.total.output_tokens for answer in answers]
    origins = [answer.session for answer in answers if answer.session]
    taken = f"{mean(len(each.notes) for each in origins):.1f}" if origins else ""
    resolved = sum(answer.resolved for answer in answers)
    cells = [
        system,
        kind,
        f"{mean(calls):.1f}",
        f"{mean(tokens):,.0f}",
        f"{mean(tokens[:half]):,.0f}, {mean(tokens[half:]):,.0f}",
        str(resolved),
        taken,
        f"{size:,}" if size else "",
    ]
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    if not DATA.exists():
        print("skipped: ../shared/data is absent")
        return
    for name in sys.argv[1:] or SYSTEMS:
        with tempfile.TemporaryDirectory() as folder, Tome.open(Path(folder) / "a.tome", embedder=EMBEDDER) as tome:
            questions = prepare(name, tome)
            print(f"\n{name}\n| system | asked | calls | tokens | first, second half | answered | notes | bytes |")
            for system in SYSTEMS[name]:
                alone = [tome.ask(question, system=system, fresh=True) for question in questions]
                show(system, "one by one", alone)
                session = tome.session(system)
                together = [session.ask(question, system=system, fresh=True) for question in questions]
                show(system, "session", together, len(json.dumps(tome.store.session(system))))


if __name__ == "__main__":
    main()
