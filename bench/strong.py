"""Ask a strong model the story's open questions, and make the table of what it answered.

    python bench/strong.py memory story.tome                        # the memory, from recorded replies; asks nothing
    python bench/strong.py planted planted.tome                     # the story with four pairs of planted facts
    python bench/strong.py ask story.tome n1 --url http://127.0.0.1:8765/v1 --out rows      # writes rows/n1.jsonl
    python bench/strong.py sheet rows                               # what a judge reads: no names of systems
    python bench/strong.py table rows                               # after `verdict` was written into the rows

`ask` puts one question, without its options, to each system in turn. One reader plays the model for one question: give
each question a mail box and a port of its own (`../shared/tools/README.md`). Questions are the 16 open ones of the
story, and of `bench/strong/questions.jsonl` 8 of two meetings and 6 that need the whole story; p1 to p4 each need two
planted facts that stand half a story apart. What one reader extracted from each text for `hgmem` is in
`bench/strong/relations-*.jsonl` (`tome build hgmem --extractions`). A verdict is "right", "partly" or "wrong"; a
declined question needs none.

To measure the prompts of another commit, copy this file into the `bench` of its checkout, run it there with its `src`
in `PYTHONPATH`, and give other folders.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

from ledger import plant
from loop import MEMORY, build_memory
from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.sample import STORY, read_questions
from tomewise.tome.tome import Tome
from tomewise.types import Document

SYSTEMS = ("hybrid context=1200", "comorag context=1200")
QUESTIONS = Path(__file__).resolve().parent / "strong" / "questions.jsonl"  # of two meetings of QMSum, and of the story
PAIRS = 4
VERDICTS = ("right", "partly", "wrong")


@dataclass(frozen=True, slots=True)
class Open:
    """An open question with its reference answers."""

    id: str
    question: str
    answers: tuple[str, ...]


def list_open() -> dict[str, Open]:
    """By id: the open questions of the story (n1, i1, ...), of the meetings (m16/..., m34/...), w1 to w6, p1 to p4."""
    story = [Open(each.id, each.question, tuple(each.answers)) for each in read_questions() if each.type != "factoid"]
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    meetings = [Open(row["id"], row["question"], tuple(row["answers"])) for row in map(json.loads, lines)]
    pairs = [
        Open(f"p{number}", question, (hidden,))
        for number, (hidden, _, question) in enumerate(plant(STORY.read_text("utf-8"), PAIRS)[1], 1)
    ]
    return {each.id: each for each in (*story, *meetings, *pairs)}


def build_planted(place: Path) -> None:
    """The story with planted facts; no layer is built."""
    text, _ = plant(STORY.read_text("utf-8"), PAIRS)
    with Tome.open(place, embedder=choose_embedder("bundled")) as tome:
        tome.add(Document(id="story", text=text))


WAIT = 9000.0  # seconds for one reply: a reader is slower than a server


def make_row(tome: Tome, system: str, question: Open) -> dict[str, Any]:
    """One answer, with what it cost and an empty verdict."""
    answer = tome.ask(question.question, system=system)
    total = answer.cost
    return {
        "question": question.id,
        "system": system,
        "answer": answer.text,
        "resolved": answer.resolved,
        "supported": answer.claimed,
        "missing": answer.missing,
        "citations": len(answer.quotes),
        "dropped": answer.dropped_quotes,
        "calls": total.calls,
        "tokens_in": total.input_tokens,
        "tokens_out": total.output_tokens,
        "verdict": "" if answer.resolved else "declined",
    }


def ask(place: Path, wanted: list[str], systems: list[str], url: str, out: Path) -> None:
    """Ask each question of each system, and write its rows; a question whose rows are there is passed over."""
    out.mkdir(parents=True, exist_ok=True)
    model: dict[str, Any] = {"model": "openai:strong", "base_url": url, "api_key": "none", "timeout": WAIT}
    with Tome.open(place, embedder=choose_embedder("bundled"), settings=model) as tome:
        for question in (list_open()[name] for name in wanted):
            file = out / f"{question.id.replace('/', '-')}.jsonl"
            if file.exists():
                continue
            rows = [make_row(tome, system, question) for system in systems]
            file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def read_rows(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def print_sheet(rows: list[dict[str, Any]]) -> None:
    """Questions, reference answers and answers in an order that does not tell the systems apart."""
    for question in list_open().values():
        answers = [row["answer"] for row in rows if row["question"] == question.id and row["resolved"]]
        if not answers:
            continue
        Random(question.id).shuffle(answers)
        references = " / ".join(question.answers)
        print(f"## {question.id}: {question.question}\n\nreference: {references}\n")
        print("".join(f"- {answer}\n" for answer in answers))


def print_table(rows: list[dict[str, Any]]) -> None:
    print("| system | questions | right | partly | wrong | declined | full | calls | tokens in | tokens out |")
    print("| --- |" + " ---: |" * 9)
    for system in dict.fromkeys(row["system"] for row in rows):
        own = [row for row in rows if row["system"] == system]
        unjudged = [row["question"] for row in own if row["verdict"] not in (*VERDICTS, "declined")]
        if unjudged:
            raise SystemExit(f"{system}: no verdict on {', '.join(unjudged)}; write one of {', '.join(VERDICTS)}")
        counts = Counter(row["verdict"] for row in own)
        full = sum(row["supported"] == "full" for row in own)
        verdicts = " | ".join(str(counts[verdict]) for verdict in (*VERDICTS, "declined"))
        means = [fmean([row[name] for row in own]) for name in ("calls", "tokens_in", "tokens_out")]
        costs = f"{means[0]:.1f} | {means[1]:,.0f} | {means[2]:,.0f}"
        print(f"| {system} | {len(own)} | {verdicts} | {full} | {costs} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("memory", "planted", "ask", "sheet", "table"), nargs="?")
    parser.add_argument("place", type=Path, nargs="?", help="the tome, or the folder of rows")
    parser.add_argument("questions", nargs="*", help="ids such as n1")
    parser.add_argument("--system", action="append", help="may be repeated; the default is hybrid and comorag")
    parser.add_argument("--url", default="http://127.0.0.1:8765/v1")
    parser.add_argument("--out", type=Path, default=Path("rows"))
    options = parser.parse_args()
    if not options.what or not options.place:
        print("skipped: it needs a strong model that is played by hand; --help says how")
    elif options.what == "memory":
        if not MEMORY.is_file():
            raise SystemExit(f"{MEMORY} is absent, which holds the recorded replies of a strong model")
        build_memory(options.place, choose_embedder("bundled"))
    elif options.what == "planted":
        build_planted(options.place)
    elif options.what == "ask":
        ask(options.place, options.questions, options.system or list(SYSTEMS), options.url, options.out)
    elif options.what == "sheet":
        print_sheet(read_rows(options.place))
    else:
        print_table(read_rows(options.place))


if __name__ == "__main__":
    main()
