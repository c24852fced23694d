"""How much of the supporting text the last answering call sees: one-shot systems and loops, at two sizes of context.

    python bench/last_prompt.py                       # all data, all systems, 1,200 and 6,000 tokens
    python bench/last_prompt.py hybrid comorag --data qmsum --budget 1200
    PYTHONPATH=../other/src python bench/last_prompt.py    # to measure other code

The extractive model plays every role, and every attempt at an answer is declined, so that a loop makes all its rounds.
Gold is: the story's supporting excerpts, word for word; of QMSum the passages of the spans of 48 specific questions,
each asked within its meeting; of MuSiQue the supporting passages. Figures are percent of odd and of even questions; how
much of the gold that only later rounds found was shown; calls and tokens a question. Settings are chosen on odd ones.

The memory is made once and kept under `bench/out`: the story's from replies of a strong model, MuSiQue's graph from
published extractions, all else by the extractive model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from statistics import fmean
from typing import Any

from loop import DecliningModel, build_memory
from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.evaluate.datasets import read_dataset
from tomewise.evaluate.items import Span
from tomewise.language.extractive import ExtractiveModel
from tomewise.run import change_run, meter
from tomewise.sample import read_questions
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble, parse_variants
from tomewise.tome.tome import Tome
from tomewise.types import Answer, Embedder, Passage, Question, Scope

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
OUT = Path(__file__).resolve().parent / "out"
SYSTEMS = ("naive", "hybrid", "associative", "comorag", "hybrid+probe", "hgmem")
QUESTIONS = 48  # of QMSum


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and its gold: excerpts, ids of documents, or spans."""

    question: Question
    excerpts: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """The share of the gold that the last prompt showed, from 0 to 1, and what the question cost.

    `later` is how many pieces of gold only later rounds found, `later_shown` how many of these were shown.
    """

    share: float
    later: int
    later_shown: int
    calls: int = 0
    tokens: int = 0


def prepare(name: str, place: Path, embedder: Embedder) -> None:
    """Make the memory that the systems need."""
    if name == "story":
        build_memory(place, embedder, ("comorag", "cogitorag", "raptor", "hgmem"))
        return
    with Tome.open(place, embedder=embedder) as tome:
        if name == "musique":
            tome.add(DATA / "musique" / "corpus.jsonl")
            tome.build("associative", extractions=DATA / "musique" / "openie.jsonl")
        else:
            tome.add(*read_dataset("qmsum", DATA / "qmsum").documents)
        tome.build("comorag")
        tome.build("hgmem")


def list_questions(name: str) -> list[Asked]:
    """The questions of a data set, in their order."""
    if name == "story":
        return [Asked(Question(text=each.question), excerpts=each.supporting) for each in read_questions()]
    if name == "musique":
        with (DATA / "musique" / "questions.jsonl").open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        return [Asked(Question(text=row["question"]), documents=tuple(map(str, row["supporting"]))) for row in rows]
    items = [item for item in read_dataset("qmsum", DATA / "qmsum").items if item.spans]
    step = len(items) / QUESTIONS
    return [
        Asked(replace(item.question, within=Scope(documents=frozenset(item.documents))), spans=item.spans)
        for item in (items[int(number * step)] for number in range(QUESTIONS))
    ]


def find_gold(asked: Asked, passages: Mapping[str, Passage]) -> list[set[str]]:
    """For each piece of gold the passages that hold it, each of which is enough."""
    if asked.excerpts:
        flat = {id: " ".join(passage.text.split()) for id, passage in passages.items()}
        excerpts = [" ".join(excerpt.split()) for excerpt in asked.excerpts]
        return [{id for id, text in flat.items() if excerpt in text} for excerpt in excerpts]
    if asked.documents:
        return [{id for id, passage in passages.items() if passage.document == name} for name in asked.documents]
    return [
        {id}
        for id, passage in passages.items()
        if any(
            passage.document == span.document and passage.start < span.end and span.start < passage.end
            for span in asked.spans
        )
    ]


def measure(asked: Asked, answer: Answer, texts: Sequence[str], passages: Mapping[str, Passage]) -> Row:
    """What the last prompt showed of the gold, and of the gold that only later rounds had found."""
    gold = find_gold(asked, passages)
    shown = {source for piece in answer.evidence for source in piece.sources if piece.layer == "passages"}
    found: dict[bool, set[str]] = {False: set(), True: set()}
    for event in answer.events:
        if event.name in ("searched", "recalled", "explored"):
            found[event.step > 0] |= {piece["id"] for piece in event.detail["evidence"]}
    later = [each for each in gold if each & found[True] and not each & found[False]]
    share = measure_excerpts(asked, texts) if asked.excerpts else fmean(bool(each & shown) for each in gold)
    return Row(share, len(later), sum(bool(each & shown) for each in later))


def measure_excerpts(asked: Asked, texts: Sequence[str]) -> float:
    """The share of the excerpts that stand word for word in the last prompt: some run over the end of a passage."""
    flat = [" ".join(text.split()) for text in texts]
    return fmean(any(" ".join(excerpt.split()) in text for text in flat) for excerpt in asked.excerpts)


async def ask(tome: Tome, system: str, settings: Mapping[str, Any], asked: Sequence[Asked]) -> list[Row]:
    """The row of each question."""
    passages = {passage.id: passage for passage in tome.store.passages().values()}
    rows = []
    for each in asked:
        model = DecliningModel(tome.kit.model)
        made = assemble(system, Kit(tome.store, model, tome.kit.embedder), **settings)
        with change_run(fresh_mark=token_hex(8)), meter() as used:
            answer = await answer_question(made, each.question)
        total = used.measure_cost()
        texts = [piece.text for piece in model.attempts[-1].evidence]
        row = measure(each, answer, texts, passages)
        rows.append(replace(row, calls=total.calls, tokens=total.input_tokens + total.output_tokens))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", default=SYSTEMS)
    parser.add_argument("--data", action="append", choices=("story", "qmsum", "musique"))
    parser.add_argument("--budget", type=int, action="append")
    parser.add_argument("--every", type=int, default=1, help="ask one pair of questions in so many")
    parser.add_argument("--prepare", action="store_true", help="make the memory and ask nothing")
    options = parser.parse_args()
    embedder = choose_embedder("bundled")
    OUT.mkdir(exist_ok=True)
    print("| data | tokens | system | odd | even | later | calls | tokens a question |\n|" + " --- |" * 8)
    for name in options.data or ("story", "qmsum", "musique"):
        place = OUT / f"last-prompt-{name}.tome"
        if not place.exists():
            prepare(name, place, embedder)
        if options.prepare:
            continue
        asked = [each for place, each in enumerate(list_questions(name)) if place // 2 % options.every == 0]
        with Tome.open(place, model=ExtractiveModel(embedder), embedder=embedder) as tome:
            for budget in options.budget or (1200, 6000):
                for variant in parse_variants(options.systems):
                    rows = asyncio.run(ask(tome, variant.system, {**variant.settings, "context": budget}, asked))
                    odd, even = (100 * fmean(row.share for row in half) for half in (rows[0::2], rows[1::2]))
                    calls, tokens = fmean(row.calls for row in rows), fmean(row.tokens for row in rows)
                    cells = [name, f"{budget:,}", variant.name, f"{odd:.0f}", f"{even:.0f}"]
                    cells += [f"{sum(row.later_shown for row in rows)} of {sum(row.later for row in rows)}"]
                    cells += [f"{calls:.1f}"]
                    print(f"| {' | '.join(cells)} | {tokens:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
