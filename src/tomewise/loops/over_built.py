"""The probing loop over the memory that is built, which it finds out at each question. Ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace

from tomewise.calls import CallCount
from tomewise.loops.desk import Desk
from tomewise.loops.escalate import Lag, report_choice
from tomewise.loops.probe import Probe
from tomewise.loops.steps import HISTORY
from tomewise.recall.several_searches import LayeredRecall
from tomewise.types import Answer, Event, Question, Retriever
from tomewise.working.pool import Pool


@dataclass(frozen=True, slots=True)
class Part:
    """A search with its share of the context, and how far its memory lags; None if passages suffice.

    `desk` takes the place of the loop's own.
    """

    retriever: Retriever
    share: int
    lag: Lag | None = None
    desk: Desk | None = None


@dataclass(frozen=True, eq=False)
class OverBuilt:
    """Runs `loop` over the first of the parts `instead` of each other that is built, and all `beside` that are.

    The event `chosen` says which they are. `build` is the system whose build makes all of them.
    """

    loop: Probe
    instead: Mapping[str, Part]
    beside: Mapping[str, Part]
    build: str

    @property
    def calls(self) -> CallCount:
        """Those of the loop over all that may be built."""
        return self._wire(dict([next(iter(self.instead.items()))]) | dict(self.beside)).calls

    def open_memory(self, data: object = None) -> Pool:
        """A new pool, or the one of which `dump` made `data`."""
        return self.loop.open_memory(data)

    async def run(self, question: Question, memory: Pool | None = None) -> AsyncIterator[Event | Answer]:
        """`chosen`, then the events of the loop and its answer, see `Probe.run`."""
        lags = await asyncio.to_thread(self._find_lags, question)
        ready = {name: part for name, part in self.instead.items() if name not in lags}
        used = dict(list(ready.items())[:1]) | {name: part for name, part in self.beside.items() if name not in lags}
        reason = "this memory is built" if any(part.lag for part in used.values()) else "no other memory is built"
        yield report_choice(", ".join(used), reason, lags, [self.build] if lags else [])
        described = [await part.lag.describe(question) for part in used.values() if part.lag]
        lagging = next(filter(None, described), None)
        async for item in self._wire(used).run(question, memory):
            yield replace(item, lagging=lagging) if isinstance(item, Answer) else item

    def _find_lags(self, question: Question) -> dict[str, str]:
        """The parts that are not built, or not up to date where the question asks for that, with what they need."""
        parts = {**self.instead, **self.beside}
        lags = {name: part.lag.find_lag(current=question.current) for name, part in parts.items() if part.lag}
        return {name: f"needs {', '.join(lag)}" for name, lag in lags.items() if lag}

    def _wire(self, parts: Mapping[str, Part]) -> Probe:
        shares = {name: part.share for name, part in parts.items()} | {HISTORY: 1}
        recall = LayeredRecall({name: part.retriever for name, part in parts.items()})
        desk = next((part.desk for part in parts.values() if part.desk), self.loop.desk)
        return replace(self.loop, recall=recall, desk=desk, bounds=replace(self.loop.bounds, shares=shares))
