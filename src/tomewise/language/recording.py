"""Seeing every exchange with a model, for traces and logs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel

from tomewise.language.usage import Clock
from tomewise.types import LanguageModel

if TYPE_CHECKING:
    from tomewise.types import In, Out, Role


@dataclass(frozen=True, slots=True)
class Exchange:
    """One ask and what came of it: an output, or the error that was raised. `seconds` is how long it took."""

    role: str
    given: BaseModel
    output: BaseModel | None
    error: Exception | None
    seconds: float


class Recorded:
    """Hands each exchange to `sink`, also a failed one, before the asker gets it. A cancelled ask is none."""

    def __init__(
        self, model: LanguageModel, sink: Callable[[Exchange], None], *, clock: Clock = time.perf_counter
    ) -> None:
        self._model = model
        self._sink = sink
        self._clock = clock

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def window(self) -> int:
        return self._model.window

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        started = self._clock()
        try:
            output = await self._model.ask(role, given)
        except Exception as error:
            self._sink(Exchange(role.name, given, None, error, self._clock() - started))
            raise
        self._sink(Exchange(role.name, given, output, None, self._clock() - started))
        return output

    def reckon(self, role: Role[In, Out], given: In) -> int:
        return self._model.reckon(role, given)

    async def rehearse(self, role: Role[In, Out], given: In) -> int | None:
        """Output tokens of the reply, where the model costs nothing to ask; None where it does."""
        inner = getattr(self._model, "rehearse", None)
        return None if inner is None else await inner(role, given)

    async def close(self) -> None:
        """Closes the model, where it has something to close."""
        if closing := getattr(self._model, "close", None):
            await closing()
