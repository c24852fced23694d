"""How much of the supporting text the last answering call sees: one-shot systems and loops, at two sizes of context.

    python bench/last_prompt.py                       # all data, all systems, 1,200 and 6,000 tokens
    python bench/last_prompt.py hybrid comorag --data qmsum --budget 1200
    python bench/last_prompt.py --reader gold         # the frozen texts, read by `gold_reader`
    PYTHONPATH=../other/src python bench/last_prompt.py    # to measure other code

Every attempt at an answer is declined, so that a loop makes all its rounds. The extractive model plays every role, or
with `--reader gold` a plain reader who notes the gold that it is shown, with `--beside 5` other sentences too. Gold is:
the story's supporting excerpts and the sentences of the frozen texts, word for word; of QMSum the passages of the spans
of 48 specific questions, each asked within its meeting; of MuSiQue the supporting passages.

Figures are percent of odd and of even questions: gold in passages, which can be cited; gold word for word in passages,
in other evidence, or in notes ("noted"; not measured where gold is not words). Then how much of the gold that only
later rounds found was shown; tokens of the last prompt; calls and tokens a question. The words of prompts themselves
are not counted. Settings are chosen on odd questions. A system without a context of its own has one row, with "own".
Questions without gold are not asked.

The memory is made once and kept under `bench/out`: the story's from replies of a strong model, MuSiQue's graph from
published extractions, all else by the extractive model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from secrets import token_hex
from statistics import fmean
from typing import Any

from gold_reader import GoldReader, flatten, stands_in
from loop import DecliningModel, build_memory
from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.evaluate.datasets import read_dataset
from tomewise.evaluate.items import Span
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.roles import AnswerIn
from tomewise.run import change_run, meter
from tomewise.sample import read_questions
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit
from tomewise.systems.registry import Variant, assemble, parse_variants
from tomewise.tome.tome import Tome
from tomewise.types import Answer, Embedder, Passage, Question, Scope

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
OUT = Path(__file__).resolve().parent / "out"
FROZEN = Path(__file__).resolve().parent / "frozen"
FROZEN_TEXTS = ("mystery", "reports")
BUILT = {
    "story": ("comorag", "cogitorag", "raptor", "hgmem"),
    **dict.fromkeys(FROZEN_TEXTS, ("comorag", "hgmem", "cam", "graphrag")),
}
DATA_OF_READER = {"extractive": ("story", "qmsum", "musique"), "gold": FROZEN_TEXTS}
SYSTEMS_OF_READER = {
    "extractive": ("naive", "hybrid", "associative", "comorag", "hybrid+probe", "hgmem"),
    "gold": (
        *("hybrid", "comorag", "hybrid+probe", "investigate", "explore", "grep_agent", "hgmem"),
        *("read_through", "read_through chunk=3000", "cosmir", "cosmir chunk=3000"),
        *("chain_of_agents", "chain_of_agents chunk=3000", "bm25+interleave", "hybrid+stepwise", "cam", "graphrag"),
    ),
}
QUESTIONS = 48  # of QMSum


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, whether its number is odd, and its gold: excerpts, ids of documents, or spans."""

    question: Question
    is_odd: bool
    excerpts: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()


MakeModel = Callable[[Asked, ExtractiveModel], DecliningModel | GoldReader]


@dataclass(frozen=True, slots=True)
class Row:
    """The share of the gold that the last prompt showed, from 0 to 1, and what the question cost.

    `share` is of the gold in passages, `noted` of that in passages, other evidence or notes, None if not measured.
    `later` is how many pieces of gold only later rounds found, `later_shown` how many of these were shown.
    """

    is_odd: bool
    share: float
    noted: float | None
    later: int
    later_shown: int
    last: int  # tokens of the last prompt
    calls: int = 0
    tokens: int = 0


def prepare(name: str, place: Path, embedder: Embedder) -> None:
    """Make the memory that the systems need."""
    if name == "story":
        build_memory(place, embedder, BUILT[name])
        return
    with Tome.open(place, embedder=embedder) as tome:
        if name in FROZEN_TEXTS:
            tome.add(FROZEN / f"{name}.md")
        elif name == "musique":
            tome.add(DATA / "musique" / "corpus.jsonl")
            tome.build("associative", extractions=DATA / "musique" / "openie.jsonl")
        else:
            tome.add(*read_dataset("qmsum", DATA / "qmsum").documents)
        for system in BUILT.get(name, ("comorag", "hgmem")):
            tome.build(system)


def list_questions(name: str) -> list[Asked]:
    """The questions of a data set, in their order."""
    if name == "story":
        return _number((Question(text=each.question), {"excerpts": each.supporting}) for each in read_questions())
    if name in FROZEN_TEXTS:
        rows = map(json.loads, (FROZEN / "questions.jsonl").read_text(encoding="utf-8").splitlines())
        asked = _number(
            (Question(text=row["question"]), {"excerpts": tuple(row["gold"])}) for row in rows if row["set"] == name
        )
        return [each for each in asked if each.excerpts]
    if name == "musique":
        rows = map(json.loads, (DATA / "musique" / "questions.jsonl").read_text(encoding="utf-8").splitlines())
        return _number(
            (Question(text=row["question"]), {"documents": tuple(map(str, row["supporting"]))}) for row in rows
        )
    items = [item for item in read_dataset("qmsum", DATA / "qmsum").items if item.spans]
    step = len(items) / QUESTIONS
    chosen = [items[int(number * step)] for number in range(QUESTIONS)]
    return _number(
        (replace(item.question, within=Scope(documents=frozenset(item.documents))), {"spans": item.spans})
        for item in chosen
    )


def _number(rows: Iterable[tuple[Question, dict[str, Any]]]) -> list[Asked]:
    return [Asked(question, number % 2 == 1, **gold) for number, (question, gold) in enumerate(rows, start=1)]


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


def measure(asked: Asked, answer: Answer, last: AnswerIn, passages: Mapping[str, Passage]) -> Row:
    """What the last prompt showed of the gold, and of the gold that only later rounds had found."""
    gold = find_gold(asked, passages)
    shown = {source for piece in answer.evidence for source in piece.sources if piece.layer == "passages"}
    found: dict[bool, set[str]] = {False: set(), True: set()}
    for event in answer.events:
        if event.name in ("searched", "recalled", "explored", "looked"):
            found[event.step > 0] |= {piece["id"] for piece in event.detail["evidence"]}
    later = [each for each in gold if each & found[True] and not each & found[False]]
    share, noted = fmean(bool(each & shown) for each in gold), None
    if asked.excerpts:  # some run over the end of a passage
        quotable = [piece.text for piece in last.evidence if piece.kind == "passage"]
        cited = [any(stands_in(excerpt, text) for text in quotable) for excerpt in asked.excerpts]
        texts = [flatten(text) for text in (*(piece.text for piece in last.evidence), *last.notes)]
        share = fmean(cited)
        noted = fmean(any(flatten(excerpt) in text for text in texts) for excerpt in asked.excerpts)
    return Row(
        asked.is_odd,
        share,
        noted,
        len(later),
        sum(bool(each & shown) for each in later),
        len(last.model_dump_json()) // 4,
    )


async def ask(
    tome: Tome, variant: Variant, budget: int | None, make_model: MakeModel, asked: Sequence[Asked]
) -> list[Row]:
    """The row of each question. A system without a context has no `budget`."""
    passages = {passage.id: passage for passage in tome.store.passages().values()}
    extractive = ExtractiveModel(tome.kit.embedder)
    settings = {**variant.settings, **({} if budget is None else {"context": budget})}
    rows = []
    for each in asked:
        model = make_model(each, extractive)
        made = assemble(variant.system, Kit(tome.store, model, tome.kit.embedder), **settings)
        with change_run(fresh_mark=token_hex(8)), meter() as used:
            answer = await answer_question(made, each.question)
        total = used.measure_cost()
        row = measure(each, answer, model.attempts[-1], passages)
        rows.append(replace(row, calls=total.calls, tokens=total.input_tokens + total.output_tokens))
    return rows


def write_row(name: str, budget: int | None, variant: Variant, rows: Sequence[Row]) -> str:
    """A line of the table."""
    halves = [[row for row in rows if row.is_odd is is_odd] for is_odd in (True, False)]
    noted = [[row.noted for row in half if row.noted is not None] for half in halves]
    cells = [name, "own" if budget is None else f"{budget:,}", variant.name]
    cells += [f"{100 * fmean(row.share for row in half):.0f}" for half in halves]
    cells += [f"{100 * fmean(half):.0f}" if half else "–" for half in noted]
    cells += [f"{sum(row.later_shown for row in rows)} of {sum(row.later for row in rows)}"]
    cells += [f"{fmean(row.last for row in rows):,.0f}"]
    cells += [f"{fmean(row.calls for row in rows):.1f}", f"{fmean(row.tokens for row in rows):,.0f}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*")
    parser.add_argument("--data", action="append", choices=("story", "qmsum", "musique", *FROZEN_TEXTS))
    parser.add_argument("--budget", type=int, action="append")
    parser.add_argument("--reader", choices=("extractive", "gold"), default="extractive")
    parser.add_argument("--beside", type=int, default=0, help="sentences that the gold reader writes beside gold")
    parser.add_argument("--every", type=int, default=1, help="ask one pair of questions in so many")
    parser.add_argument("--prepare", action="store_true", help="make the memory and ask nothing")
    options = parser.parse_args()
    data = options.data or DATA_OF_READER[options.reader]
    if options.reader == "gold" and not {*data} <= {"story", *FROZEN_TEXTS}:
        parser.error("the gold reader knows sentences: give it story, mystery or reports")

    def make_model(asked: Asked, model: ExtractiveModel) -> DecliningModel | GoldReader:
        if options.reader == "gold":
            return GoldReader(asked.question.text, asked.excerpts, model, beside=options.beside)
        return DecliningModel(model)

    embedder = choose_embedder("bundled")
    OUT.mkdir(exist_ok=True)
    columns = "data tokens system odd even noted,odd noted,even later last,prompt calls tokens,a,question".split()
    print(f"| {' | '.join(columns).replace(',', ' ')} |\n|" + " --- |" * len(columns))
    for name in data:
        place = OUT / f"last-prompt-{name}.tome"
        if not place.exists():
            prepare(name, place, embedder)
        if options.prepare:
            continue
        asked = [each for place, each in enumerate(list_questions(name)) if place // 2 % options.every == 0]
        with Tome.open(place, model=ExtractiveModel(embedder), embedder=embedder) as tome:
            for variant in parse_variants(options.systems or SYSTEMS_OF_READER[options.reader]):
                has_context = "context" in signature(variant.declaration.recipe).parameters
                for budget in (options.budget or (1200, 6000)) if has_context else (None,):
                    rows = asyncio.run(ask(tome, variant, budget, make_model, asked))
                    print(write_row(name, budget, variant, rows), flush=True)


if __name__ == "__main__":
    main()
