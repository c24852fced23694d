"""Make cues from evidence, and one cue from several (ComoRAG's Mem-Encode and Mem-Fuse, section 2.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tomewise.calls import NO_CALLS, CallCount, read_calls
from tomewise.language.roles import ENCODE, FUSE, EncodeIn, FuseIn
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import find_labelled
from tomewise.types import Evidence, NodeId
from tomewise.working.pool import Unit


@dataclass(frozen=True, slots=True)
class Cue:
    """What evidence adds, and the nodes that say so, as the model names them: maybe none."""

    text: str = ""
    support: tuple[NodeId, ...] = ()


class Consolidating(Protocol):
    """Turns evidence into cues, cues into one, and says what the prober reads of a step."""

    async def make_cue(
        self, question: str, units: Sequence[Unit], evidence: Sequence[Evidence], known: Sequence[str]
    ) -> Cue: ...

    async def fuse_cues(self, question: str, cues: Sequence[str]) -> str: ...

    def list_findings(self, units: Sequence[Unit]) -> list[str]: ...


class Consolidation:
    """Asks the model for both."""

    calls = CallCount("1", 1)  # for one cue, and for one fusion

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def make_cue(
        self, question: str, units: Sequence[Unit], evidence: Sequence[Evidence], known: Sequence[str]
    ) -> Cue:
        """What the evidence of the units of one probe adds to the cues that are `known`; empty if it adds nothing."""
        layers = ", ".join(dict.fromkeys(unit.layer for unit in units))
        shown = await asyncio.to_thread(self._desk.show, evidence)
        encode_input = EncodeIn(
            question=question, probe=units[0].probe, layer=layers, evidence=shown, known=list(known)
        )
        reply = await self._desk.model.ask(ENCODE, encode_input)
        return Cue(reply.cue, tuple(piece.node for piece in find_labelled(reply.labels, evidence)))

    async def fuse_cues(self, question: str, cues: Sequence[str]) -> str:
        """What cues of earlier searches say together."""
        return (await self._desk.model.ask(FUSE, FuseIn(question=question, cues=list(cues)))).cue

    def list_findings(self, units: Sequence[Unit]) -> list[str]:
        """The cues. An empty cue means that nothing was found, and the evidence does not take its place."""
        return list(dict.fromkeys(unit.cue for unit in units if unit.cue))


class NoConsolidation:
    """Leaves evidence as it is (table 2, without metacognition)."""

    calls = NO_CALLS

    async def make_cue(
        self, question: str, units: Sequence[Unit], evidence: Sequence[Evidence], known: Sequence[str]
    ) -> Cue:
        """Nothing."""
        return Cue()

    async def fuse_cues(self, question: str, cues: Sequence[str]) -> str:
        """Nothing."""
        return ""

    def list_findings(self, units: Sequence[Unit]) -> list[str]:
        """The best evidence of each search, as there are no cues."""
        return [unit.evidence[0].text for unit in units if unit.evidence]


class WithoutKnown:
    """Consolidation that does not know the earlier cues when it makes a new one, as in the paper."""

    def __init__(self, consolidating: Consolidating) -> None:
        self._consolidating = consolidating

    @property
    def calls(self) -> CallCount:
        return read_calls(self._consolidating)

    async def make_cue(
        self, question: str, units: Sequence[Unit], evidence: Sequence[Evidence], known: Sequence[str]
    ) -> Cue:
        """The cue of the wrapped consolidation, made without the earlier ones."""
        return await self._consolidating.make_cue(question, units, evidence, ())

    async def fuse_cues(self, question: str, cues: Sequence[str]) -> str:
        """As the wrapped consolidation."""
        return await self._consolidating.fuse_cues(question, cues)

    def list_findings(self, units: Sequence[Unit]) -> list[str]:
        """As the wrapped consolidation."""
        return self._consolidating.list_findings(units)
