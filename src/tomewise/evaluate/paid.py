"""The replies of one output folder: each is paid for once, and charged to every system that asks for it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import ValidationError

from tomewise.evaluate.digests import code_digest, digest_of
from tomewise.language.cached import Cached, CallCache
from tomewise.language.prompts import Prompts
from tomewise.language.usage import Clock, ModelCall, meter, report_call
from tomewise.types import LanguageModel

if TYPE_CHECKING:
    from tomewise.types import In, Out, Role

EXTRACTIVE = "extractive"  # the model that is part of this package
_Paid: TypeAlias = tuple[dict[str, Any], ...]
_COUNTED = ("model", "input_tokens", "output_tokens", "cost", "cached_tokens", "reasoning_tokens")


@dataclass(slots=True)
class Reused:
    """How many asks were answered by a reply that was paid for before."""

    asks: int = 0


_reused: ContextVar[Reused | None] = ContextVar("tomewise_reused", default=None)


@contextmanager
def counting_reused() -> Iterator[Reused]:
    """Counts the asks inside that were answered by a kept reply."""
    counted = Reused()
    token = _reused.set(counted)
    try:
        yield counted
    finally:
        _reused.reset(token)


class PaidOnce(Cached):
    """A model whose replies are kept with the calls, tokens and money that they took.

    A reply that is used again is reported to the meters as if it were paid again, so that what a system costs does not
    depend on what was run before; the seconds of the first time are not. Replies of the extractive model are code of
    this package: a change of the package asks for them again.
    """

    def __init__(
        self, model: LanguageModel, prompts: Prompts, calls: CallCache, *, clock: Clock = time.perf_counter
    ) -> None:
        super().__init__(model, prompts, calls)
        self._code = code_digest() if model.name == EXTRACTIVE else ""
        self._paid: dict[str, _Paid] = {}
        self._clock = clock

    def key(self, role: Role[In, Out], given: In) -> str:
        """The key of an ask: 64 hexadecimal digits."""
        asked = super().key(role, given)
        return digest_of(asked, self._code) if self._code else asked

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """As the model."""
        started = self._clock()
        with meter() as around:
            reply = await super().ask(role, given)
        if not around.calls:  # kept from before, or asked for by somebody else at this moment
            await asyncio.sleep(0)  # so that asks made side by side are seen side by side by the meters
            self._charge(role.name, self._paid.get(self.key(role, given), ()), started)
            if (counted := _reused.get()) is not None:
                counted.asks += 1
        return reply

    async def _fetch(self, key: str, role: Role[In, Out], given: In) -> Out:
        if (kept := await self._calls.get(key)) is not None:
            record = json.loads(kept)
            try:
                reply = role.output.model_validate(record["reply"])
            except ValidationError:
                pass  # written by a version whose output looked different: a miss
            else:
                self._paid[key] = tuple(record["paid"])
                return reply
        with meter() as around:
            reply = await self._model.ask(role, given)
        self._paid[key] = _recorded(around.calls)
        text = json.dumps({"reply": reply.model_dump(mode="json"), "paid": self._paid[key]})
        await self._calls.keep(key, role=role.name, model=self._model.name, reply=text)
        return reply

    def _charge(self, role: str, paid: _Paid, started: float) -> None:
        """Report calls again, one after the other, from when they were asked for until now."""
        step = (self._clock() - started) / max(len(paid), 1)
        for number, call in enumerate(paid):
            report_call(role, started=started + number * step, ended=started + (number + 1) * step, **call)


def _recorded(calls: Sequence[ModelCall]) -> _Paid:
    return tuple({name: getattr(call, name) for name in _COUNTED} for call in calls)
