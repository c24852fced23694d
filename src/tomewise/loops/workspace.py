"""How the probing loop finds probes and takes notes (ComoRAG, section 2.3), and where ours differs from the paper's.

Self-Probe (equation 1) asks what to search for next. Mem-Encode makes a cue of evidence, Mem-Fuse one cue of several.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from tomewise.calls import CallCount
from tomewise.errors import UsageError
from tomewise.language.labels import find_labelled
from tomewise.language.roles import ENCODE, FUSE, PROBE, EncodeIn, FuseIn, ProbeIn
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import fold
from tomewise.recall.ranking import drop_repeats
from tomewise.types import LanguageModel, NodeId
from tomewise.working.pool import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Where the probing loops differ. Without a value they are those of the paper; `OURS` has all of them.

    With `best_so_far` an attempt shows the best evidence of all cycles, and of the desk's own search, as one ranking;
    without it the units of its cycle and the fusion of earlier cues (equation 3). With `one_cue` one call makes one cue
    of what all layers say to a probe, and a single cue is not fused; without it each probe and layer has its own
    (Mem-Encode). With `unread_only` a search brings what no earlier step has read, as table 2 has it without
    regulation; without it, the best that it finds (Tri-Retrieve). The prober may see what the last attempt was
    `missing`, and the encoder the cues that are `known`. With `keeps_partly` a first answer that is supported only
    partly stands only if all later attempts are declined; without it, it ends the loop. With `ends_early` the loop ends
    where a cycle finds nothing new.
    """

    best_so_far: bool = False
    one_cue: bool = False
    unread_only: bool = False
    missing: bool = False
    known: bool = False
    keeps_partly: bool = False
    ends_early: bool = False


PUBLISHED = Rules()
SAME_QUESTION = Rules(unread_only=True)  # of the paper too: "duplicated evidence is removed" (section 4.2)
OURS = Rules(
    best_so_far=True, one_cue=True, unread_only=True, missing=True, known=True, keeps_partly=True, ends_early=True
)


@dataclass(frozen=True)
class SelfProbe:
    """Asks the model for new probes; what was tried before, in whatever spelling, is not new."""

    calls = CallCount("1", 1)

    model: LanguageModel
    limit: int = 3

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise UsageError(f"{self.limit} probes a cycle find nothing: give 1 or more, or 0 cycles")

    async def find_probes(
        self, question: str, tried: Sequence[str], findings: Sequence[str], missing: str = ""
    ) -> list[str]:
        """At most `limit` probes, none when the model has no new one. `missing` is what the last attempt lacked."""
        probe_input = ProbeIn(
            question=question, past_probes=list(tried), cues=list(findings), missing=missing, limit=self.limit
        )
        reply = await self.model.ask(PROBE, probe_input)
        known = {"", *(fold(probe) for probe in tried)}
        fresh: dict[str, str] = {}
        for probe in reply.probes:
            if fold(probe) not in known:
                fresh.setdefault(fold(probe), probe)
        return list(fresh.values())[: self.limit]


@dataclass(frozen=True, slots=True)
class Cue:
    """What evidence adds, and the nodes that say so, as the model names them: maybe none."""

    text: str = ""
    support: tuple[NodeId, ...] = ()


@dataclass(frozen=True)
class Consolidation:
    """Asks the model for cues of evidence, and for one cue of several."""

    calls = CallCount("1", 1)  # for one cue, and for one fusion

    desk: Desk

    async def make_cue(self, question: str, units: Sequence[Unit], known: Sequence[str]) -> Cue:
        """What the evidence of the units of one probe adds to the cues that are `known`; empty if it adds nothing."""
        found = drop_repeats(piece for unit in units for piece in unit.evidence)
        evidence = await asyncio.to_thread(self.desk.put_in_order, found)
        encode_input = EncodeIn(
            question=question,
            probe=units[0].probe,
            layer=", ".join(unit.layer for unit in units),
            evidence=await asyncio.to_thread(self.desk.show, evidence),
            known=list(known),
        )
        reply = await self.desk.model.ask(ENCODE, encode_input)
        return Cue(reply.cue, tuple(piece.id for piece in find_labelled(reply.labels, evidence)))

    async def fuse_cues(self, question: str, cues: Sequence[str]) -> str:
        """What cues of earlier searches say together."""
        return (await self.desk.model.ask(FUSE, FuseIn(question=question, cues=list(cues)))).cue
