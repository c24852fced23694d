"""The doubles of a language model and of an embedder, for tests and examples."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from pydantic import BaseModel, ValidationError

from tomewise.embedding.hash import DEFAULT_DIMENSIONS, HashEmbedder
from tomewise.errors import BadReply, ModelError
from tomewise.language.call_slots import CallSlots
from tomewise.language.usage import Bill, announce_request, estimate_tokens
from tomewise.run import ModelCall, Request, report_call
from tomewise.types import Cost

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.types import In, LanguageModel, Out, Role

Reply: TypeAlias = BaseModel | Mapping[str, Any] | Exception
Replies: TypeAlias = Sequence[Reply] | Callable[[Any], Reply | Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Call:
    """One ask: the role's name and its input."""

    role: str
    given: BaseModel


class ScriptedModel:
    """Plays back replies by role name, and notes what it was asked in `calls`.

    `replies[role]` is a list, which is used up in order, or a function of the role's input, which may be async. A reply
    is the role's output, a dict that validates as the output, or an exception, which is raised. Roles without replies
    are asked from `others`. `latency` is how many seconds each call takes, `limit` how many calls run at the same time
    (None: any number), `cost` the price of a call in dollars (None: unknown). Tokens are estimated from the JSON of
    input and output.
    """

    def __init__(
        self,
        replies: Mapping[str, Replies],
        *,
        others: LanguageModel | None = None,
        name: str = "scripted",
        window: int = 128_000,
        latency: float = 0.0,
        limit: int | None = None,
        cost: float | None = 0.0,
    ) -> None:
        self.name = name
        self.window = window
        self.calls: list[Call] = []
        self._replies = {role: script if callable(script) else deque(script) for role, script in replies.items()}
        self._others = others
        self._latency = latency
        self._slots = CallSlots(limit) if limit is not None else None
        self._cost = cost

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """The next reply of the role. Raises `ModelError` if no reply is left, `BadReply` if the reply does not fit."""
        if self._others and role.name not in self._replies:
            self.calls.append(Call(role.name, given))
            return await self._others.ask(role, given)
        started = perf_counter()
        tokens = self.count_input_tokens(role, given)
        bill = Bill(Cost())
        try:
            async with (
                self._slots.take() if self._slots else nullcontext(),
                announce_request(Request(tokens, role.output_tokens, lambda *_: 0.0)) as bill,
            ):
                self.calls.append(Call(role.name, given))
                reply = self._take_reply(role.name, given)
                if inspect.isawaitable(reply):
                    reply = await reply
                # Without latency too, so that meters see calls side by side if they were made side by side.
                await asyncio.sleep(self._latency)
                if isinstance(reply, Exception):
                    raise reply
                output = role.accept(given, _validate(role, reply))
                received = estimate_tokens(output.model_dump_json())
                bill.spent = Cost(calls=1, input_tokens=tokens, output_tokens=received, dollars=self._cost)
                return output
        finally:
            if bill.spent.calls:
                received, dollars = bill.spent.output_tokens, bill.spent.dollars
                report_call(ModelCall(role.name, self.name, started, perf_counter(), tokens, received, dollars))

    def count_input_tokens(self, role: Role[In, Out], given: In) -> int:
        """The input tokens that `ask` would report."""
        return estimate_tokens(given.model_dump_json())

    def _take_reply(self, role: str, given: BaseModel) -> Reply | Awaitable[Reply]:
        script = self._replies.get(role)
        if callable(script):
            return script(given)
        if not script:
            count = sum(call.role == role for call in self.calls)
            raise ModelError(f"no scripted reply is left for the role {role!r} (call {count}): give {role!r} one more")
        return script.popleft()


def _validate(role: Role[In, Out], reply: Reply) -> Out:
    if isinstance(reply, role.output):
        return reply
    try:
        return role.output.model_validate(reply)
    except ValidationError as error:
        raise BadReply(f"the scripted reply for {role.name!r} does not fit {role.output.__name__}: {error}") from error


class NotingEmbedder(HashEmbedder):
    """The hash embedder, which notes the texts of each call in `batches`, and refuses a text that holds `refused`."""

    def __init__(self, dimensions: int = DEFAULT_DIMENSIONS, *, refused: str = "") -> None:
        super().__init__(dimensions)
        self.batches: list[tuple[str, ...]] = []
        self._refused = refused

    @property
    def texts(self) -> list[str]:
        """All texts in the order in which they came."""
        return [text for batch in self.batches for text in batch]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of the hash embedder. Raises `ModelError` for a text that is refused."""
        self.batches.append(tuple(texts))
        if self._refused and any(self._refused in text for text in texts):
            raise ModelError(f"the embedder refuses texts that hold {self._refused!r}")
        return super().embed(texts)
