"""Replies of one output folder: each is paid for once and charged to every system that asks for it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel

from tomewise.evaluate.digests import code_digest, digest_of
from tomewise.language.cached import Cached, CallCache
from tomewise.language.choose_model import EXTRACTIVE
from tomewise.language.prompts import Prompts
from tomewise.language.usage import count_replies, report_call
from tomewise.meter import Clock
from tomewise.run import meter
from tomewise.types import LanguageModel

if TYPE_CHECKING:
    from tomewise.types import In, Out, Role

_Paid: TypeAlias = Sequence[Mapping[str, Any]]
_COUNTED = ("model", "input_tokens", "output_tokens", "cost", "cached_tokens", "reasoning_tokens")


class _Record(BaseModel):
    """A stored reply, and what each of its calls took."""

    reply: dict[str, Any]
    paid: list[dict[str, Any]]


class PaidOnce(Cached):
    """A model whose replies are stored with the calls, tokens and money that they took.

    The meters count a reply that is used again as if it were paid again, but without the seconds it first took. So the
    cost of a system does not depend on what ran before. The replies of the extractive model depend on the code of this
    package: a changed package asks for them again.
    """

    def __init__(
        self, model: LanguageModel, prompts: Prompts, calls: CallCache, *, clock: Clock = time.perf_counter
    ) -> None:
        super().__init__(model, prompts, calls)
        self._code = code_digest()
        self._paid: dict[str, _Paid] = {}
        self._clock = clock

    def key(self, role: Role[In, Out], given: In) -> str:
        """The key of an ask: 64 hexadecimal digits."""
        key = super().key(role, given)
        return digest_of(key, self._code) if self.name_for(role) == EXTRACTIVE else key

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """Answer as the model does."""
        started = self._clock()
        with meter() as used:
            reply = await super().ask(role, given)
        if not used.calls:  # the reply is stored, or another task is asking for it now
            await asyncio.sleep(0)  # lets concurrent asks start first, so that the meters see them as concurrent
            self._charge(role.name, self._paid.get(self.key(role, given), ()), started)
            count_replies(reused=1)
        return reply

    async def _ask_model(self, key: str, role: Role[In, Out], given: In) -> Out:
        with meter() as used:
            output = await super()._ask_model(key, role, given)
        self._paid[key] = [{name: getattr(call, name) for name in _COUNTED} for call in used.calls]
        return output

    def _read(self, key: str, role: Role[In, Out], text: str) -> Out:
        record = _Record.model_validate_json(text)
        output = role.output.model_validate(record.reply)
        self._paid[key] = record.paid
        return output

    def _write(self, key: str, output: BaseModel) -> str:
        return json.dumps({"reply": output.model_dump(mode="json"), "paid": self._paid.get(key, ())})

    def _charge(self, role: str, paid: _Paid, started: float) -> None:
        """Report the calls again to the meters, one after the other between `started` and now."""
        step = (self._clock() - started) / max(len(paid), 1)
        for number, call in enumerate(paid):
            report_call(role, started=started + number * step, ended=started + (number + 1) * step, **call)
