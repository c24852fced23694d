"""How the probing loop finds probes, takes notes and selects evidence (ComoRAG, section 2.3).

Probing asks what to search for next (Self-Probe, equation 1). Consolidation makes cues from evidence, and one cue from
several (Mem-Encode and Mem-Fuse). A selection says what each search reads, and what an attempt to answer sees first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tomewise.calls import NO_CALLS, CallCount
from tomewise.errors import UsageError
from tomewise.language.labels import find_labelled
from tomewise.language.roles import ENCODE, FUSE, PROBE, EncodeIn, FuseIn, ProbeIn
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import fold
from tomewise.recall.ranking import drop_repeats, take_turns
from tomewise.recall.several_searches import Found
from tomewise.types import Evidence, LanguageModel, NodeId
from tomewise.working.pool import Pool, Unit

_FLOOR = 0.1  # of the best score of a search; what has less is left over


@dataclass(frozen=True)
class SelfProbe:
    """Asks the model for new probes; what was tried before, in whatever spelling, is not new.

    Unless it `sees_missing`, the model does not see what the last attempt lacked, as in equation 1.
    """

    calls = CallCount("1", 1)

    model: LanguageModel
    limit: int = 3
    sees_missing: bool = True

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise UsageError(f"{self.limit} probes a cycle find nothing: give 1 or more, or 0 cycles")

    async def find_probes(
        self, question: str, tried: Sequence[str], findings: Sequence[str], missing: str
    ) -> list[str]:
        """At most `limit` probes, none when the model has no new one."""
        probe_input = ProbeIn(
            question=question,
            past_probes=list(tried),
            cues=list(findings),
            missing=missing if self.sees_missing else "",
            limit=self.limit,
        )
        reply = await self.model.ask(PROBE, probe_input)
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


Probing: TypeAlias = SelfProbe | SameQuestion
"""Says what to search for next, with at most `limit` probes. `missing` is what the last attempt lacked."""


@dataclass(frozen=True, slots=True)
class Cue:
    """What evidence adds, and the nodes that say so, as the model names them: maybe none."""

    text: str = ""
    support: tuple[NodeId, ...] = ()


@dataclass(frozen=True)
class Consolidation:
    """Asks the model for both. Unless it `sees_known`, a new cue is made without the earlier ones, as in the paper."""

    calls = CallCount("1", 1)  # for one cue, and for one fusion

    desk: Desk
    sees_known: bool = True

    async def make_cue(
        self, question: str, units: Sequence[Unit], evidence: Sequence[Evidence], known: Sequence[str]
    ) -> Cue:
        """What the evidence of the units of one probe adds to the cues that are `known`; empty if it adds nothing."""
        layers = ", ".join(dict.fromkeys(unit.layer for unit in units))
        shown = await asyncio.to_thread(self.desk.show, evidence)
        encode_input = EncodeIn(
            question=question,
            probe=units[0].probe,
            layer=layers,
            evidence=shown,
            known=list(known) if self.sees_known else [],
        )
        reply = await self.desk.model.ask(ENCODE, encode_input)
        return Cue(reply.cue, tuple(piece.id for piece in find_labelled(reply.labels, evidence)))

    async def fuse_cues(self, question: str, cues: Sequence[str]) -> str:
        """What cues of earlier searches say together."""
        return (await self.desk.model.ask(FUSE, FuseIn(question=question, cues=list(cues)))).cue

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


Consolidating: TypeAlias = Consolidation | NoConsolidation
"""Turns evidence into cues, cues into one, and says what the prober reads of a step."""


class BestSoFar:
    """Each search keeps its own best hits; an attempt shows the best of all that was found (`loops.last_prompt`)."""

    least_fused = 2

    def make_units(self, probes: Sequence[str], found: Sequence[Found], pool: Pool, limit: int) -> list[Unit]:
        """Units of one step may share evidence."""
        return [
            Unit(probe, layer, tuple(pool.find_unseen(_drop_leftovers(ranked), limit)), "")
            for probe, layers in zip(probes, found, strict=True)
            for layer, ranked in layers.items()
        ]

    def group_units(self, units: Sequence[Unit]) -> list[list[Unit]]:
        """The units of one probe together, so that one call encodes what all layers say of it."""
        by_probe: dict[str, list[Unit]] = {}
        for unit in units:
            by_probe.setdefault(unit.probe, []).append(unit)
        return list(by_probe.values())

    def count_groups(self, layers: int) -> int:
        """One."""
        return 1

    def list_found(
        self, units: Sequence[Unit], probes: Sequence[str], found: Sequence[Found]
    ) -> Iterator[tuple[str, str, Sequence[Evidence]]]:
        """All that was found."""
        for probe, layers in zip(probes, found, strict=True):
            for layer, ranked in layers.items():
                yield probe, layer, ranked

    def put_first(self, layer: str, units: Sequence[Unit]) -> list[Evidence]:
        """Nothing."""
        return []


class NewestFirst:
    """Searches of one step share out what they find; an attempt shows what is new, then what room is left for.

    ComoRAG, equation 3: an attempt is made from the new units and from what the past says when fused.
    """

    least_fused = 1

    def make_units(self, probes: Sequence[str], found: Sequence[Found], pool: Pool, limit: int) -> list[Unit]:
        """No two units of one step share evidence."""
        claimed: set[NodeId] = set()
        units: list[Unit] = []
        for probe, layers in zip(probes, found, strict=True):
            for layer, ranked in layers.items():
                evidence = pool.find_unseen((piece for piece in ranked if piece.id not in claimed), limit)
                claimed.update(piece.id for piece in evidence)
                units.append(Unit(probe, layer, tuple(evidence), ""))
        return units

    def group_units(self, units: Sequence[Unit]) -> list[list[Unit]]:
        """Each alone: one cue a probe and layer."""
        return [[unit] for unit in units]

    def count_groups(self, layers: int) -> int:
        """One a layer."""
        return layers

    def list_found(
        self, units: Sequence[Unit], probes: Sequence[str], found: Sequence[Found]
    ) -> Iterator[tuple[str, str, Sequence[Evidence]]]:
        """What the units have of it."""
        for unit in units:
            yield unit.probe, unit.layer, unit.evidence

    def put_first(self, layer: str, units: Sequence[Unit]) -> list[Evidence]:
        """New evidence, best first from each search in turn."""
        return drop_repeats(take_turns([unit.evidence for unit in units if unit.layer == layer]))


Selection: TypeAlias = BestSoFar | NewestFirst
"""Selects from what searches found.

`make_units` gives one unit a probe and layer, with up to `limit` pieces of evidence that no earlier step has read,
`group_units` those that are encoded together, into one cue, and `count_groups` how many groups the units of one probe
make. `list_found` is what an attempt may see of each search later, and `put_first` what it sees of a layer before all
that. `least_fused` is how many cues are worth a fusion.
"""


def _drop_leftovers(ranked: Sequence[Evidence]) -> list[Evidence]:
    """What is found at all: the pieces with a tenth or more of the best score of their search, if that is above 0."""
    least = _FLOOR * ranked[0].score if ranked else 0.0
    return [piece for piece in ranked if piece.score >= least or least <= 0]
