"""Stop a piece of work whose model only fails: whatever it asks further would be paid for in vain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tomewise.errors import BudgetExceeded, KeepsFailing, ModelError, ModelUnavailable, UsageError
from tomewise.language.forwarding import Forwarding
from tomewise.language.usage import Meter, meter

if TYPE_CHECKING:
    from tomewise.types import In, LanguageModel, Out, Role

MOST_FAILURES = 20


@dataclass(slots=True)
class _Work:
    """One piece of work: what it spent, its replies, and its failures since the last reply, in order of ending."""

    used: Meter
    replies: int = 0
    failures: int = 0


_work: ContextVar[_Work | None] = ContextVar("tomewise_failures", default=None)


@contextmanager
def watch_failures() -> Iterator[None]:
    """Count the failures of all asks inside this context as one piece of work, also from tasks started inside."""
    with meter() as used:
        token = _work.set(_Work(used))
        try:
            yield
        finally:
            _work.reset(token)


def check_max_failures(most: int) -> None:
    """Raise UsageError for a limit below 1."""
    if most < 1:
        raise UsageError(f"max_failures is {most}: give 1 or more, or a large number for no limit")


class StopAtFailures(Forwarding):
    """Raises `KeepsFailing` when `most` asks of a piece of work (`watch_failures`) failed with no reply between them.

    An ask counts once, with all its retries and its repair, when it ends. Put this inside `Cached`: a reply that was
    kept says nothing about the model.
    """

    def __init__(self, model: LanguageModel, most: int) -> None:
        super().__init__(model)
        self._most = most

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """As the model. Raises `KeepsFailing` too."""
        work = _work.get()
        try:
            output = await self._model.ask(role, given)
        except (ModelUnavailable, BudgetExceeded):
            raise
        except ModelError as error:
            if work is not None:
                work.failures += 1
                if work.failures >= self._most:
                    raise KeepsFailing(self._explain(work, error)) from error
            raise
        if work is not None:
            work.replies += 1
            work.failures = 0
        return output

    def _explain(self, work: _Work, last: ModelError) -> str:
        spent = work.used.total
        price = "at an unknown price" if spent.cost is None else f"for {spent.cost:.4f} dollars"
        return (
            f"{work.failures} calls of {self.name} failed with no reply between them, so this was stopped. The last "
            f"reason: {last}. Kept: {work.replies} replies, for which the next try does not ask again. Spent: "
            f"{spent.calls} requests and {spent.input_tokens + spent.output_tokens} tokens {price}. "
            "Mend the cause or name another model, then try again; max_failures sets how many failures are too many"
        )
