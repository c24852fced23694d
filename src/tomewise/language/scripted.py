"""A language model that says what it was told to say: the double that tests and examples use."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel, ValidationError

from tomewise.errors import BadReply, ModelError
from tomewise.language.places import Places
from tomewise.language.usage import Bill, Clock, Request, announce_request, estimate_tokens, report_call
from tomewise.types import Spent

if TYPE_CHECKING:
    from tomewise.types import In, Out, Role

Reply: TypeAlias = BaseModel | Mapping[str, Any] | Exception
Replies: TypeAlias = Sequence[Reply] | Callable[[Any], Reply]


@dataclass(frozen=True, slots=True)
class Call:
    """One ask: the role's name and what was given."""

    role: str
    given: BaseModel


class ScriptedModel:
    """Plays back replies by role name.

    `replies[role]` is a list, used up in order, or a function of the role's input. A reply is the role's output, a
    dict that validates as such, or an exception, which is raised. `latency` is how many seconds each call takes,
    `limit` how many run at the same time (None: any number). Tokens are estimated
    from the JSON of what goes in and out.
    """

    def __init__(
        self,
        replies: Mapping[str, Replies],
        *,
        name: str = "scripted",
        window: int = 128_000,
        latency: float = 0.0,
        limit: int | None = None,
        clock: Clock = time.perf_counter,
    ) -> None:
        self.name = name
        self.window = window
        self.calls: list[Call] = []
        self._replies = {role: script if callable(script) else deque(script) for role, script in replies.items()}
        self._latency = latency
        self._places = Places(limit) if limit is not None else None
        self._clock = clock

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """The next reply of the role. Raises `ModelError` when there is none left, `BadReply` when it does not fit."""
        started = self._clock()
        tokens = self.reckon(role, given)
        bill = Bill(Spent())
        try:
            async with (
                self._places or nullcontext(),
                announce_request(Request(tokens, role.output_tokens, lambda *_: 0.0)) as bill,
            ):
                self.calls.append(Call(role.name, given))
                reply = self._next(role.name, given)
                # Also without latency, so that calls asked for side by side are seen side by side by the meters.
                await asyncio.sleep(self._latency)
                if isinstance(reply, Exception):
                    raise reply
                output = role.accept(given, _fitted(role, reply))
                received = estimate_tokens(output.model_dump_json())
                bill.spent = Spent(calls=1, input_tokens=tokens, output_tokens=received)
                return output
        finally:
            if bill.spent.calls:
                self._report(role.name, bill.spent, started)

    def _report(self, role: str, taken: Spent, started: float) -> None:
        report_call(
            role,
            model=self.name,
            started=started,
            ended=self._clock(),
            input_tokens=taken.input_tokens,
            output_tokens=taken.output_tokens,
            cost=0.0,
        )

    def reckon(self, role: Role[In, Out], given: In) -> int:
        """What `ask` would report as input tokens."""
        return estimate_tokens(given.model_dump_json())

    def _next(self, role: str, given: BaseModel) -> Reply:
        script = self._replies.get(role)
        if callable(script):
            return script(given)
        if not script:
            asked = sum(call.role == role for call in self.calls)
            raise ModelError(f"no scripted reply left for the role {role!r} (call {asked}): give {role!r} one more")
        return script.popleft()


def _fitted(role: Role[In, Out], reply: Reply) -> Out:
    if isinstance(reply, role.output):
        return reply
    try:
        return role.output.model_validate(reply)
    except ValidationError as error:
        raise BadReply(f"the scripted reply for {role.name!r} does not fit {role.output.__name__}: {error}") from error
