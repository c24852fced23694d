"""How much of the supporting text each attempt of the probing loop sees, over a memory that a strong model wrote.

`python bench/loop.py` builds the memory of the bundled story from recorded replies of a strong model: its facts, gists,
summaries and episodes (`../shared/data/story/memory.jsonl`, found by their texts). The extractive model replies to
calls that are not recorded. Then the script asks the story's questions without their options. The extractive model
plays the roles of the loop, and every attempt that may be declined is declined.

For each system and number of tokens it prints the share of supporting excerpts that stand word for word

- in the passages of the first attempt;
- in the passages of the last attempt that could be declined;
- in those passages or in the notes of that attempt;
- in the passages of the forced answer (a one-shot system has only one call, which counts for all).

Calls and tokens a question follow, the forced answer included. Settings are chosen on questions of odd number.

To measure other code, name its `src`: `PYTHONPATH=../other/src python bench/loop.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, cast
from unittest.mock import patch

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.roles import FAILURE, AnswerIn, AnswerOut
from tomewise.reading.places import PlaceFinder
from tomewise.reading.splitter import PassageSplitter
from tomewise.run import meter
from tomewise.sample import STORY, SampleQuestion, read_questions
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble, parse_variants
from tomewise.tome.tome import Tome
from tomewise.types import Document, Embedder, In, LanguageModel, Out, Passage, Question, Role, content_id

MEMORY = Path(__file__).resolve().parents[2] / "shared" / "data" / "story" / "memory.jsonl"
ONE_SHOT = ("naive", "hybrid", "hipporag2", "cogitorag", "associative", "raptor")
LOOPS = ("comorag", "comorag:all", "hybrid+probe", "hipporag2+probe", "raptor+probe")
BUDGETS = (1200, 6000)


class ReplayModel:
    """Recorded replies, found by role and texts; another model replies to the other calls."""

    def __init__(self, path: Path, fallback: LanguageModel) -> None:
        lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        self._replies = {(line["role"], tuple(line["texts"])): line["reply"] for line in lines}
        self._fallback = fallback
        self.name = "recorded"
        self.window = fallback.window
        self.counts: Counter[tuple[str, str]] = Counter()

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        texts = getattr(given, "texts", None) or [getattr(given, "text", "")]
        reply = self._replies.get((role.name, tuple(texts)))
        self.counts[role.name, "recorded" if reply else "extractive"] += 1
        return role.output.model_validate(reply) if reply else await self._fallback.ask(role, given)

    def count_input_tokens(self, role: Role[In, Out], given: In) -> int:
        return self._fallback.count_input_tokens(role, given)


class DecliningModel:
    """A model that declines every attempt that may be declined, and keeps the input of each attempt."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.name = model.name
        self.window = model.window
        self.attempts: list[AnswerIn] = []

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        reply = await self._model.ask(role, given)  # before declining too, so that its cost counts
        if isinstance(given, AnswerIn):
            self.attempts.append(given)
            if given.may_decline:
                return cast("Out", AnswerOut(answer=FAILURE))
        return reply

    def count_input_tokens(self, role: Role[In, Out], given: In) -> int:
        return self._model.count_input_tokens(role, given)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The share of supporting excerpts that the attempts at one question saw, from 0 to 1, and their cost."""

    seen: tuple[float, ...]  # in the passages of each attempt that could be declined, in turn
    noted: float  # in the passages or the notes of the last of these attempts
    final: float  # in the passages of the call whose answer counts
    calls: int
    tokens: int


def measure_share(texts: Sequence[str], question: SampleQuestion) -> float:
    """The share of supporting excerpts that stand word for word in one of the texts. White space does not count."""
    flat = [" ".join(text.split()) for text in texts]
    excerpts = [" ".join(excerpt.split()) for excerpt in question.supporting]
    return fmean([any(excerpt in text for text in flat) for excerpt in excerpts])


async def ask_one(tome: Tome, system: str, settings: Mapping[str, Any], question: SampleQuestion) -> Outcome:
    model = DecliningModel(tome.kit.model)
    made = assemble(system, Kit(tome.store, model, tome.kit.embedder), **settings)
    with meter() as used:
        await answer_question(made, Question(text=question.question, force=True))
    total = used.measure_cost()
    attempts = [attempt for attempt in model.attempts if attempt.may_decline] or model.attempts
    seen = [measure_share([piece.text for piece in attempt.evidence], question) for attempt in attempts]
    noted = measure_share([*(piece.text for piece in attempts[-1].evidence), *attempts[-1].notes], question)
    final = measure_share([piece.text for piece in model.attempts[-1].evidence], question)
    return Outcome(tuple(seen), noted, final, total.calls, total.input_tokens + total.output_tokens)


async def ask_all(tome: Tome, system: str, settings: Mapping[str, Any]) -> list[Outcome]:
    return [await ask_one(tome, system, settings, question) for question in read_questions()]


def cut_as_recorded(document: Document) -> Iterator[Passage]:
    """The passages of the story as they were cut when the replies were recorded, for they are found by their texts."""
    lines = [json.loads(line) for line in MEMORY.read_text(encoding="utf-8").splitlines()]
    texts = {line["texts"][0] for line in lines if line["role"] == "gist"}
    for position, text in enumerate(sorted(texts, key=document.text.index)):
        start = document.text.index(text)
        end = start + len(text)
        id = content_id("p", document.id, start, end, text)
        place = PlaceFinder(document.text, document.marks).find(start, end)
        yield Passage(
            id=id, document=document.id, position=position, start=start, end=end, text=text, title=document.title,
            place=place,
        )  # fmt: skip


def build_memory(place: Path, embedder: Embedder, systems: Sequence[str] = ("comorag", "cogitorag", "raptor")) -> None:
    """Read the story and build the layers of these systems, from recorded replies where they exist."""
    model = ReplayModel(MEMORY, ExtractiveModel(embedder))
    with (
        patch.object(PassageSplitter, "split", lambda _, document: cut_as_recorded(document)),
        Tome.open(place, model=model, embedder=embedder) as tome,
    ):
        tome.add(STORY)
        for system in systems:
            tome.build(system)
    for (role, source), count in sorted(model.counts.items()):
        print(f"{role}: {count} {source}", file=sys.stderr)


def format_row(name: str, outcomes: Sequence[Outcome], *, cycles: bool) -> str:
    """One row of the table: odd, even and all questions."""
    groups = [outcomes[0::2], outcomes[1::2], outcomes]
    first = " / ".join(f"{100 * fmean([outcome.seen[0] for outcome in group]):.0f}" for group in groups)
    last = " / ".join(f"{100 * fmean([outcome.seen[-1] for outcome in group]):.0f}" for group in groups)
    noted = " / ".join(f"{100 * fmean([outcome.noted for outcome in group]):.0f}" for group in groups)
    final = " / ".join(f"{100 * fmean([outcome.final for outcome in group]):.0f}" for group in groups)
    calls, tokens = (fmean([getattr(outcome, field) for outcome in outcomes]) for field in ("calls", "tokens"))
    row = f"| {name} | {first} | {last} | {noted} | {final} | {calls:.1f} | {tokens:,.0f} |"
    if not cycles:
        return row
    seen = [outcome.seen for outcome in outcomes[0::2]]
    most = max(len(outcome.seen) for outcome in outcomes)
    by_attempt = [fmean([shares[min(attempt, len(shares) - 1)] for shares in seen]) for attempt in range(most)]
    return row + "  " + " ".join(f"{100 * share:.0f}" for share in by_attempt)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", default=[*ONE_SHOT, *LOOPS], help="for instance 'comorag cycles=1'")
    parser.add_argument("--budget", type=int, action="append", help="tokens of context; may be repeated")
    parser.add_argument("--tome", type=Path, help="keep the memory in this file and use it again")
    parser.add_argument(
        "--cycles", action="store_true", help="also print the share that each attempt sees, for the odd questions"
    )
    options = parser.parse_args()
    if not MEMORY.is_file():
        print(f"skipped: {MEMORY} is absent, which holds the recorded replies of a strong model")
        return
    embedder = choose_embedder("bundled")
    with tempfile.TemporaryDirectory() as folder:
        place = options.tome or Path(folder) / "story.tome"
        if not place.exists():
            build_memory(place, embedder)
        with Tome.open(place, model=ExtractiveModel(embedder), embedder=embedder) as tome:
            for budget in options.budget or BUDGETS:
                print(f"\n{budget:,} tokens; odd / even / all questions, percent\n")
                print("| system | first attempt | last attempt | with notes | forced answer | calls | tokens |")
                print("| --- | --- | --- | --- | --- | --- | --- |")
                for variant in parse_variants(options.systems):
                    settings = {**variant.settings, "context": budget}
                    outcomes = asyncio.run(ask_all(tome, variant.system, settings))
                    print(format_row(variant.name, outcomes, cycles=options.cycles), flush=True)


if __name__ == "__main__":
    main()
