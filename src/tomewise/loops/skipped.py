"""Replies of one question, and parts of replies, that could not be used, although every other may be."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import TypeVar

from tomewise.errors import BudgetExceeded, ModelError, ModelUnavailable
from tomewise.events import ReplySkipped
from tomewise.fallbacks import PART_SKIPPED, REPLY_SKIPPED, record_fallback
from tomewise.types import Event

T = TypeVar("T")


class Skipped:
    """Collects errors of calls whose reply the loop can do without, and what is wrong with parts of replies."""

    def __init__(self) -> None:
        self.last: ModelError | None = None
        self._unreported: list[str] = []

    async def usable(self, asked: Awaitable[T], otherwise: T) -> T:
        """What a model says, else `otherwise`. Raises what every further call would meet as well."""
        try:
            return await asked
        except (ModelUnavailable, BudgetExceeded):
            raise
        except ModelError as error:
            self.last = error
            record_fallback(REPLY_SKIPPED)
            self._unreported.append(str(error))
            return otherwise

    def drop(self, reason: str) -> None:
        """Record that a part of a reply was not used."""
        record_fallback(PART_SKIPPED)
        self._unreported.append(reason)

    def events(self, step: int) -> Iterator[Event]:
        """One for each that was not reported yet."""
        while self._unreported:
            yield ReplySkipped(step=step, reason=self._unreported.pop(0))
