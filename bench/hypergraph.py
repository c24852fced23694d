"""What a question costs HGMem's loop: calls, tokens, how deep its calls wait for one another, and the time of a round.

Ten questions on the novel with its given graph. The extractive model plays the roles. Then each question is asked again
of a model that remembers these replies and takes half a second: a round lasts as many latencies as its calls are deep,
and our own work besides.

python bench/hypergraph.py [--tome FILE] [SYSTEM...]
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

from sessions import EMBEDDER, NOVEL, prepare
from tomewise.language.extractive import ExtractiveModel
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit
from tomewise.systems.registry import parse_variant
from tomewise.tome.tome import Tome
from tomewise.types import Answer, Embedder, Event, In, Out, Question, Role

LATENCY = 0.5  # seconds
SYSTEMS = ("hgmem", "hgmem:without merging", "hybrid+evolve", "hybrid+probe", "hybrid")
_ENDS = ("planned", "stopped")  # in the loop `evolve`: a round begins with a plan, and the last one ends


class RememberingModel(ExtractiveModel):
    """The extractive model, which replies to a call that it knows after `LATENCY`, as a server would."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self._replies: dict[tuple[str, str], Any] = {}

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        key = (role.name, given.model_dump_json())
        if key in self._replies:
            await asyncio.sleep(LATENCY)
        else:
            self._replies[key] = await super().ask(role, given)
        reply: Out = self._replies[key]
        return reply


async def ask_twice(tome: Tome, system: str, question: str) -> tuple[Answer, list[float]]:
    """The first answer, and the latencies of each round of the second, from one plan to the next."""
    ends: list[float] = []

    def note_round(event: Event) -> None:
        if event.name in _ENDS:
            ends.append(time.perf_counter())

    wired = parse_variant(system).wire(Kit(tome.store, RememberingModel(tome.kit.embedder), tome.kit.embedder))
    answer = await answer_question(wired, Question(text=question))
    await answer_question(wired, Question(text=question), note_round)
    return answer, [(after - before) / LATENCY for before, after in pairwise(ends)]


async def measure(tome: Tome, system: str, questions: Sequence[str]) -> str:
    """One row of the table."""
    asked = [await ask_twice(tome, system, question) for question in questions]
    totals = [answer.cost for answer, _ in asked]
    rounds = [latencies for _, found in asked for latencies in found]
    events = (event for answer, _ in asked for event in answer.events)
    answered = [event.detail for event in events if event.name == "answered from points"]
    cells = (
        system,
        f"{fmean(total.calls for total in totals):.1f}",
        f"{fmean(total.input_tokens + total.output_tokens for total in totals):,.0f}",
        f"{fmean(total.output_tokens for total in totals):,.0f}",
        str(max(answer.cost.depth for answer, _ in asked)),
        f"{median(rounds):.2f}, {max(rounds):.2f}" if rounds else "",
        f"{fmean(each['points'] for each in answered):.1f}" if answered else "",
        f"{fmean(each['vertices_per_point'] for each in answered):.2f}" if answered else "",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", default=SYSTEMS)
    parser.add_argument("--tome", type=Path, help="keep the novel in this file and use it again")
    options = parser.parse_args()
    print("| system | calls | tokens | of these out | deep | a round, latencies: median, worst | points | vertices |")
    with tempfile.TemporaryDirectory() as folder:
        place = options.tome or Path(folder) / "novel.tome"
        is_new = not place.exists()
        with Tome.open(place, embedder=EMBEDDER) as tome:
            if is_new:
                prepare("novel", tome)
            for system in options.systems:
                print(asyncio.run(measure(tome, system, NOVEL)), flush=True)


if __name__ == "__main__":
    main()
