"""The extractive model, the default language model: text algorithms without weights, key and network.

Each file beside this one holds the algorithms of some roles.
"""

import asyncio
from dataclasses import dataclass
from time import perf_counter
from typing import cast

from pydantic import BaseModel

from tomewise.run import ModelCall, report_call
from tomewise.types import Abilities, Embedder, In, Out, Role

__all__ = ["ExtractiveModel"]

_ANSWER = "answer"  # the role that can be played with short answers
_SHORT = 750  # tokens of input; longer input takes more than the 2 ms of its way to another process
_LONG = 5_000  # tokens of input; longer input may take 10 ms even without embedding


@dataclass(eq=False)
class ExtractiveModel:
    """Plays every role with patterns, salience and the embedder. It quotes rather than writes, and needs no network.

    It answers with whole sentences. With `short_answers` it cuts a name, a number or a choice out of one: often a wrong
    one, but what metrics of answers can score.

    Equal input gives equal output. Every algorithm reads a bounded part of its input, so the work of a call is bounded.
    """

    name = "extractive"
    window = 32_000  # the tokens of the longest evidence that the algorithms read

    embedder: Embedder
    short_answers: bool = False

    @property
    def abilities(self) -> Abilities:
        """Short answers are those of another name, so that nobody takes one kind of answer for the other."""
        return Abilities(
            names={_ANSWER: f"{self.name} with short answers"} if self.short_answers else {},
            is_quick=self.is_quick,
            measure_reply=self.measure_reply,
            prepare=self.prepare,
        )

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """The output of the role's algorithm. Raises `ModelError` for a role without one."""
        started = perf_counter()
        output = await self._play(role, given)
        tokens = self.count_input_tokens(role, given), len(output.model_dump_json()) // 4
        report_call(ModelCall(role.name, self.name, started, perf_counter(), *tokens, dollars=0.0))
        return cast("Out", output)

    def count_input_tokens(self, role: Role[In, Out], given: In) -> int:
        """Four characters of the input count as one token, whatever the role."""
        return len(given.model_dump_json()) // 4

    def is_quick(self, role: Role[In, Out], given: In) -> bool:
        """Roles that compare meanings take 25 ms or more, others about 2 ms for each 750 tokens of input."""
        from tomewise.language.extractive.plays import find_embedding_play

        compares = find_embedding_play(role, short_answers=self.short_answers) is not None
        return not compares and self.count_input_tokens(role, given) <= _SHORT

    async def prepare(self) -> None:
        """Import the algorithms of all roles."""
        import tomewise.language.extractive.plays  # noqa: F401

    async def measure_reply(self, role: Role[In, Out], given: In) -> int:
        """Output tokens of the reply. Asking costs nothing, so an estimate may ask. Reported to no meter."""
        output = await self._play(role, given)
        return len(output.model_dump_json()) // 4

    async def _play(self, role: Role[In, Out], given: In) -> BaseModel:
        # Late: the algorithms of all roles are many, and who opens a tome may only look at it.
        from tomewise.language.extractive.plays import find_embedding_play, find_play

        embedding = find_embedding_play(role, short_answers=self.short_answers)
        if embedding is not None:
            return await asyncio.to_thread(embedding, given, self.embedder)
        play = find_play(role, given)
        return await asyncio.to_thread(play, given) if self.count_input_tokens(role, given) > _LONG else play(given)
