"""The extractive model, the default language model: text algorithms without weights, key and network.

Each file beside this one holds the algorithms of some roles.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from typing import Any, cast

from pydantic import BaseModel

from tomewise.errors import ModelError
from tomewise.language.extractive import (
    answering,
    extracting,
    gist,
    hypergraph_plays,
    judging,
    quotations,
    relaying,
    rephrasing,
    steering,
    summarising,
)
from tomewise.language.roles import ANSWER
from tomewise.language.together import Batch, write_items
from tomewise.language.usage import report_call
from tomewise.meter import ModelCall
from tomewise.types import Embedder, In, Out, Role

__all__ = ["ExtractiveModel"]

Play = Callable[[Any], BaseModel]
EmbeddingPlay = Callable[[Any, Embedder], BaseModel]

PLAYS: Mapping[str, Play] = {
    "gist": gist.write_gist,
    "extract_triples": extracting.extract_triples,
    "extract_facts": extracting.extract_triples,
    "extract_entities": extracting.extract_entities,
    "extract_relations": extracting.extract_relations,
    "summarise": summarising.summarise,
    "narrate": summarising.narrate,
    "shorten": summarising.shorten,
    "decompose": steering.decompose,
    "follow_up": steering.follow_up,
    "probe": steering.probe,
    "step": steering.step,
    "fuse": steering.fuse,
    "plan": hypergraph_plays.plan,
    "rephrase": rephrasing.rephrase,
    "merge_points": hypergraph_plays.merge_points,
    "plan_reading": relaying.plan_reading,
    "infer_notes": relaying.infer_notes,
    "refine_questions": relaying.refine_questions,
    "carry_note": relaying.carry_note,
    "judge_correct": judging.judge_correct,
    "judge_entailed": judging.judge_entailed,
    "judge_level": judging.judge_level,
    "judge_statements": judging.judge_statements,
}
# These compare meanings. That takes so long that they run in a thread, beside the event loop.
EMBEDDING_PLAYS: Mapping[str, EmbeddingPlay] = {
    "answer": quotations.quote,
    "filter_facts": steering.filter_facts,
    "encode": steering.encode,
    "evolve": hypergraph_plays.evolve,
    "look_up": steering.look_up,
    "think": steering.think,
    "extract_notes": relaying.extract_notes,
    "select_nodes": steering.select_nodes,
}
SHORT_ANSWERS: Mapping[str, EmbeddingPlay] = {"answer": answering.answer}
_LONG = 20_000  # characters of input; longer input may take 10 ms even without embedding


class ExtractiveModel:
    """Plays every role with patterns, salience and the embedder. It quotes rather than writes, and needs no network.

    It answers with whole sentences. With `short_answers` it cuts a name, a number or a choice out of one: often a wrong
    one, but what metrics of answers can score.

    Equal input gives equal output. Every algorithm reads a bounded part of its input, so the work of a call is bounded.
    """

    def __init__(self, embedder: Embedder, *, short_answers: bool = False) -> None:
        self._embedder = embedder
        self._embedding_plays = {**EMBEDDING_PLAYS, **SHORT_ANSWERS} if short_answers else EMBEDDING_PLAYS
        self._short_answers = short_answers

    @property
    def name(self) -> str:
        return "extractive"

    def name_for(self, role: Role[In, Out]) -> str:
        """Short answers are those of another model, so that nobody takes one kind of answer for the other."""
        return f"{self.name} with short answers" if self._short_answers and role.name == ANSWER.name else self.name

    def window_for(self, role: Role[In, Out]) -> int:
        """That of every role."""
        return self.window

    @property
    def window(self) -> int:
        """The tokens of the longest evidence that the algorithms read."""
        return 32_000

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """The output of the role's algorithm. Raises `ModelError` for a role without one."""
        started = perf_counter()
        size = len(given.model_dump_json())
        output = await self._play(role, given, size)
        output_tokens = len(output.model_dump_json()) // 4
        report_call(ModelCall(role.name, self.name, started, perf_counter(), size // 4, output_tokens, cost=0.0))
        return cast("Out", output)

    def count_input_tokens(self, role: Role[In, Out], given: In) -> int:
        """Four characters of the input count as one token, whatever the role."""
        return len(given.model_dump_json()) // 4

    async def measure_reply(self, role: Role[In, Out], given: In) -> int:
        """Output tokens of the reply. Asking costs nothing, so an estimate may ask. Reported to no meter."""
        output = await self._play(role, given, len(given.model_dump_json()))
        return len(output.model_dump_json()) // 4

    async def _play(self, role: Role[In, Out], given: In, size: int) -> BaseModel:
        embedding = self._embedding_plays.get(role.name)
        if embedding is not None and role.play is None:
            return await asyncio.to_thread(embedding, given, self._embedder)
        play = role.play or PLAYS.get(role.name)
        if play is None:
            known = ", ".join(sorted([*PLAYS, *EMBEDDING_PLAYS]))
            raise ModelError(
                f"the extractive model cannot play the role {role.name!r}: use one of {known}, give the role a `play`, "
                "or use a real model"
            )
        if isinstance(given, Batch):
            play = partial(_play_each, play, role.output)
        return await asyncio.to_thread(play, given) if size > _LONG else play(given)


def _play_each(play: Play, output: type[BaseModel], given: Batch) -> BaseModel:
    """Play each passage of a batch alone: no algorithm gains from its neighbours."""
    return output.model_validate({"passages": write_items([play(each) for each in given.passages])})
