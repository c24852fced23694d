"""What to search for next (ComoRAG's Self-Probe, section 2.3, equation 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tomewise.calls import NO_CALLS, CallCount, read_calls
from tomewise.errors import UsageError
from tomewise.language.roles import PROBE, ProbeIn
from tomewise.loops.repeats import fold
from tomewise.types import LanguageModel


class Probing(Protocol):
    """Says what to search for next, with at most `limit` probes. `missing` is what the last attempt lacked."""

    @property
    def limit(self) -> int: ...

    async def find_probes(
        self, question: str, tried: Sequence[str], findings: Sequence[str], missing: str
    ) -> list[str]: ...


class SelfProbe:
    """Asks the model for new probes; what was tried before, in whatever spelling, is not new."""

    calls = CallCount("1", 1)

    def __init__(self, model: LanguageModel, *, limit: int = 3) -> None:
        if limit < 1:
            raise UsageError(f"{limit} probes a cycle find nothing: give 1 or more, or 0 cycles")
        self._model = model
        self.limit = limit

    async def find_probes(
        self, question: str, tried: Sequence[str], findings: Sequence[str], missing: str
    ) -> list[str]:
        """At most `limit` probes, none when the model has no new one."""
        probe_input = ProbeIn(
            question=question, past_probes=list(tried), cues=list(findings), missing=missing, limit=self.limit
        )
        reply = await self._model.ask(PROBE, probe_input)
        known = {"", *(fold(probe) for probe in tried)}
        fresh: dict[str, str] = {}
        for probe in reply.probes:
            if fold(probe) not in known:
                fresh.setdefault(fold(probe), probe)
        return list(fresh.values())[: self.limit]


class SameQuestion:
    """Searches with the question itself again, deeper each time (table 2, without regulation)."""

    calls = NO_CALLS
    limit = 1

    async def find_probes(
        self, question: str, tried: Sequence[str], findings: Sequence[str], missing: str
    ) -> list[str]:
        """The question."""
        return [question]


class WithoutMissing:
    """Probing that does not see what the last attempt lacked, as in equation 1."""

    def __init__(self, probing: Probing) -> None:
        self._probing = probing

    @property
    def limit(self) -> int:
        return self._probing.limit

    @property
    def calls(self) -> CallCount:
        return read_calls(self._probing)

    async def find_probes(
        self, question: str, tried: Sequence[str], findings: Sequence[str], missing: str
    ) -> list[str]:
        """The probes that the wrapped probing finds without `missing`."""
        return await self._probing.find_probes(question, tried, findings, "")
