"""What the last attempt of the probing loop gets to see, where a strong model's reading is the memory.

`python bench/loop.py` reads the bundled story with the replies of a strong model to facts, gists, summaries and
episodes (`../shared/data/story/memory.jsonl`, found by their texts; the extractive model replies to what is not there)
and asks its questions without their options. The extractive model plays the loop, but every attempt that may be
declined is. Printed are, per system and number of tokens, the shares of supporting excerpts that stand word for word
in what the answering role is given: in the passages of the first attempt, in those of the last one that could be
declined, there or in its notes, and in the passages of the forced answer (one shot: always the one call); then calls
and tokens a question, the forced answer included. Settings are chosen on questions of odd number.

To compare with other code, say where its `src` is: `PYTHONPATH=../other/src python bench/loop.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tomewise.embedding.choose_embedder import embedder_named
from tomewise.language.extractive.model import ExtractiveModel
from tomewise.language.roles import FAILURE, AnswerIn, AnswerOut
from tomewise.language.usage import meter
from tomewise.sample import STORY, SampleQuestion, questions
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble
from tomewise.systems.spec import parse_variants
from tomewise.tome.tome import Tome
from tomewise.types import Embedder, In, LanguageModel, Out, Question, Role

MEMORY = Path(__file__).resolve().parents[2] / "shared" / "data" / "story" / "memory.jsonl"
ONE_SHOT = ("naive", "hybrid", "hipporag2", "cogitorag", "associative", "raptor")
LOOPS = ("comorag", "comorag:all", "hybrid+probe", "hipporag2+probe", "raptor+probe")
BUDGETS = (1200, 6000)


class Replay:
    """Replies that were recorded, found by role and texts; else those of another model."""

    def __init__(self, path: Path, other: LanguageModel) -> None:
        lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        self._replies = {(line["role"], tuple(line["texts"])): line["reply"] for line in lines}
        self._other = other
        self.name = "recorded"
        self.window = other.window
        self.counts: Counter[tuple[str, str]] = Counter()

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        texts = getattr(given, "texts", None) or [getattr(given, "text", "")]
        reply = self._replies.get((role.name, tuple(texts)))
        self.counts[role.name, "recorded" if reply else "extractive"] += 1
        return role.output.model_validate(reply) if reply else await self._other.ask(role, given)

    def reckon(self, role: Role[In, Out], given: In) -> int:
        return self._other.reckon(role, given)


class Declining:
    """A model that declines every attempt that may be declined, and keeps what attempts were given."""

    def __init__(self, other: LanguageModel) -> None:
        self._other = other
        self.name = other.name
        self.window = other.window
        self.attempts: list[AnswerIn] = []

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        reply = await self._other.ask(role, given)  # also here, so that its cost is counted
        if isinstance(given, AnswerIn):
            self.attempts.append(given)
            if given.may_decline:
                return cast("Out", AnswerOut(answer=FAILURE))
        return reply

    def reckon(self, role: Role[In, Out], given: In) -> int:
        return self._other.reckon(role, given)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What attempts at one question saw of its supporting excerpts, from 0 to 1, and what it cost."""

    seen: tuple[float, ...]  # in passages, by attempts that could be declined, in turn
    noted: float  # by the last of these, in its notes as well
    final: float  # in passages, by the call whose answer counts
    calls: int
    tokens: int


def share_in(texts: Sequence[str], question: SampleQuestion) -> float:
    """The share of supporting excerpts that stand word for word in some text, white space apart."""
    flat = [" ".join(text.split()) for text in texts]
    excerpts = [" ".join(excerpt.split()) for excerpt in question.supporting]
    return mean([any(excerpt in text for text in flat) for excerpt in excerpts])


async def ask_one(tome: Tome, system: str, settings: Mapping[str, Any], question: SampleQuestion) -> Outcome:
    model = Declining(tome.kit.model)
    made = assemble(system, Kit(tome.store, model, tome.kit.embedder), **settings)
    with meter() as used:
        await answer_question(made, Question(text=question.question, force=True))
    total = used.usage().total
    attempts = [attempt for attempt in model.attempts if attempt.may_decline] or model.attempts
    seen = [share_in([piece.text for piece in attempt.evidence], question) for attempt in attempts]
    noted = share_in([*(piece.text for piece in attempts[-1].evidence), *attempts[-1].notes], question)
    final = share_in([piece.text for piece in model.attempts[-1].evidence], question)
    return Outcome(tuple(seen), noted, final, total.calls, total.input_tokens + total.output_tokens)


async def ask_all(tome: Tome, system: str, settings: Mapping[str, Any]) -> list[Outcome]:
    return [await ask_one(tome, system, settings, question) for question in questions()]


def build_memory(place: Path, embedder: Embedder) -> None:
    """Read the story and make every layer, with recorded replies where there are any."""
    model = Replay(MEMORY, ExtractiveModel(embedder))
    with Tome.open(place, model=model, embedder=embedder) as tome:
        tome.add(STORY)
        for system in ("comorag", "cogitorag", "raptor"):
            tome.build(system)
    for (role, source), count in sorted(model.counts.items()):
        print(f"{role}: {count} {source}", file=sys.stderr)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def line_of(name: str, outcomes: Sequence[Outcome], cycles: bool) -> str:
    """One row: odd, even and all questions."""
    groups = [outcomes[0::2], outcomes[1::2], outcomes]
    first = " / ".join(f"{100 * mean([one.seen[0] for one in some]):.0f}" for some in groups)
    last = " / ".join(f"{100 * mean([one.seen[-1] for one in some]):.0f}" for some in groups)
    noted = " / ".join(f"{100 * mean([one.noted for one in some]):.0f}" for some in groups)
    final = " / ".join(f"{100 * mean([one.final for one in some]):.0f}" for some in groups)
    calls, tokens = mean([one.calls for one in outcomes]), mean([one.tokens for one in outcomes])
    row = f"| {name} | {first} | {last} | {noted} | {final} | {calls:.1f} | {tokens:,.0f} |"
    if not cycles:
        return row
    deepest = max(len(one.seen) for one in outcomes)
    by_attempt = [mean([one.seen[min(n, len(one.seen) - 1)] for one in outcomes[0::2]]) for n in range(deepest)]
    return row + "  " + " ".join(f"{100 * share:.0f}" for share in by_attempt)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", default=[*ONE_SHOT, *LOOPS], help="such as 'comorag cycles=1'")
    parser.add_argument("--budget", type=int, action="append", help="tokens of context; again for each")
    parser.add_argument("--tome", type=Path, help="keep the memory here, and use it again")
    parser.add_argument("--cycles", action="store_true", help="also what each attempt sees of the odd questions")
    given = parser.parse_args()
    if not MEMORY.is_file():
        sys.exit(f"{MEMORY} is absent: this bench needs the recorded reading of a strong model")
    embedder = embedder_named("bundled")
    with tempfile.TemporaryDirectory() as folder:
        place = given.tome or Path(folder) / "story.tome"
        if not place.exists():
            build_memory(place, embedder)
        with Tome.open(place, model=ExtractiveModel(embedder), embedder=embedder) as tome:
            for budget in given.budget or BUDGETS:
                print(f"\n{budget:,} tokens; odd / even / all questions, percent\n")
                print("| system | first attempt | last attempt | with notes | forced answer | calls | tokens |")
                print("| --- | --- | --- | --- | --- | --- | --- |")
                for variant in parse_variants(given.systems):
                    settings = {**variant.settings, "context": budget}
                    outcomes = asyncio.run(ask_all(tome, variant.system, settings))
                    print(line_of(variant.name, outcomes, given.cycles), flush=True)


if __name__ == "__main__":
    main()
