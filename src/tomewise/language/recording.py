"""Pass every exchange with a model to a function, for traces and logs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel

from tomewise.language.forwarding import Forwarding
from tomewise.meter import Clock
from tomewise.types import LanguageModel

if TYPE_CHECKING:
    from tomewise.types import In, Out, Role


@dataclass(frozen=True, slots=True)
class Exchange:
    """One ask and its result: an output, or the error that was raised. `seconds` is how long it took."""

    role: str
    given: BaseModel
    output: BaseModel | None
    error: Exception | None
    seconds: float


class Recorded(Forwarding):
    """Hands each exchange to `sink` before the caller gets it, failed ones too. A cancelled ask is not handed on."""

    def __init__(
        self, model: LanguageModel, sink: Callable[[Exchange], None], *, clock: Clock = time.perf_counter
    ) -> None:
        super().__init__(model)
        self._sink = sink
        self._clock = clock

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """As the model."""
        started = self._clock()
        try:
            output = await self._model.ask(role, given)
        except Exception as error:
            self._sink(Exchange(role.name, given, None, error, self._clock() - started))
            raise
        self._sink(Exchange(role.name, given, output, None, self._clock() - started))
        return output
