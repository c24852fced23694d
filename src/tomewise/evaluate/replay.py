"""Pay for no reply twice: `replay` within one question, `PaidOnce` across all experiments of a folder.

`replay` lets a system's retriever rank again from what its loop has asked already. `PaidOnce` stores each reply with
what it took, and charges every system for it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel

from tomewise.errors import BadReply, ModelError, PromptTooLong, Refused
from tomewise.evaluate.digests import digest_code, digest_data
from tomewise.language.cached import Cache
from tomewise.language.choose_model import EXTRACTIVE
from tomewise.language.prompts import Prompts
from tomewise.language.wrapped import find_name
from tomewise.run import ModelCall, count_replies, meter, report_call
from tomewise.types import CallCache, LanguageModel

if TYPE_CHECKING:
    from tomewise.types import In, Out, Role

_Costs: TypeAlias = Sequence[Mapping[str, Any]]  # what each call of one reply took
_COUNTED = "model input_tokens output_tokens dollars cached_tokens reasoning_tokens".split()
_memo: ContextVar[Memo | None] = ContextVar("tomewise_replay", default=None)


@dataclass(slots=True)
class Memo:
    """What the model replied to one question, also with an error."""

    replies: dict[tuple[str, str], Any] = field(default_factory=dict)
    replaying: bool = False


@contextmanager
def remember_question() -> Iterator[None]:
    """Remember the replies to one question, starting with none."""
    token = _memo.set(Memo())
    try:
        yield
    finally:
        _memo.reset(token)


@contextmanager
def replay() -> Iterator[None]:
    """Answer inside from what `remember_question` has remembered so far, without cost and without model time."""
    memo = _memo.get()
    if memo is None:
        raise RuntimeError("`replay` works inside `remember_question` only")
    memo.replaying = True
    try:
        yield
    finally:
        memo.replaying = False


async def ask_as_before(model: LanguageModel, role: Role[In, Out], given: In) -> Out:
    """Ask the model, remembering its reply for the question under way, or repeat one inside `replay`; a wrapper."""
    memo = _memo.get()
    if memo is None:
        return await model.ask(role, given)
    key = (role.name, given.model_dump_json())
    if memo.replaying and key in memo.replies:
        remembered = memo.replies[key]
        if isinstance(remembered, ModelError):
            raise remembered
        replayed: Out = remembered.model_copy(deep=True)
        return replayed
    try:
        reply = await model.ask(role, given)
    except (BadReply, PromptTooLong, Refused) as error:
        memo.replies[key] = error
        raise
    memo.replies[key] = reply
    return reply


class _Record(BaseModel):
    """A stored reply, and what each of its calls took."""

    reply: dict[str, Any]
    paid: list[dict[str, Any]]


class PaidOnce(Cache):
    """A cache of replies with the calls, tokens and money that they took.

    The meters count a reply that is used again as if it were paid again, but without the seconds it first took. So the
    cost of a system does not depend on what ran before. The replies of the extractive model depend on the code of this
    package: a changed package asks for them again.
    """

    keeps_batches = True  # to charge for a batch again, it must know what the batch took

    def __init__(self, prompts: Prompts, calls: CallCache) -> None:
        super().__init__(prompts, calls)
        self._code = digest_code()
        self._costs: dict[str, _Costs] = {}

    async def __call__(self, model: LanguageModel, role: Role[In, Out], given: In) -> Out:
        """The output that is kept, or else that of the model."""
        started = perf_counter()
        with meter() as used:
            reply = await super().__call__(model, role, given)
        if not used.calls:  # the reply is stored, or another task is asking for it now
            await asyncio.sleep(0)  # lets concurrent asks start first, so that the meters see them as concurrent
            self._charge(role.name, self._costs.get(self.make_key(model, role, given), ()), started)
            count_replies(reused=1)
        return reply

    def make_key(self, model: LanguageModel, role: Role[In, Out], given: In) -> str:
        """The key of an ask: 64 hexadecimal digits."""
        key = super().make_key(model, role, given)
        return digest_data(key, self._code) if find_name(model, role).startswith(EXTRACTIVE) else key

    async def _ask(self, key: str, model: LanguageModel, role: Role[In, Out], given: In) -> Out:
        with meter() as used:
            output = await super()._ask(key, model, role, given)
        self._costs[key] = [{name: getattr(call, name) for name in _COUNTED} for call in used.calls]
        return output

    def _read(self, key: str, role: Role[In, Out], text: str) -> Out:
        record = _Record.model_validate_json(text)
        output = role.output.model_validate(record.reply)
        self._costs[key] = record.paid
        return output

    def _write(self, key: str, output: BaseModel) -> str:
        return json.dumps({"reply": output.model_dump(mode="json"), "paid": self._costs.get(key, ())})

    def _charge(self, role: str, costs: _Costs, started: float) -> None:
        """Report the calls again to the meters, one after the other between `started` and now."""
        step = (perf_counter() - started) / max(len(costs), 1)
        for number, call in enumerate(costs):
            report_call(ModelCall(role, started=started + number * step, ended=started + (number + 1) * step, **call))
