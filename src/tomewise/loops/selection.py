"""What each search reads, and which evidence an attempt to answer sees first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tomewise.loops.repeats import drop_repeats
from tomewise.recall.layered import Found
from tomewise.recall.ranking import take_turns
from tomewise.types import Evidence, NodeId
from tomewise.working.pool import Pool, Unit

_FLOOR = 0.1  # of the best score of a search; what has less is left over


class Selection(Protocol):
    """Selects from what searches found. `least_fused` is how many cues are worth a fusion."""

    @property
    def least_fused(self) -> int: ...

    def make_units(self, probes: Sequence[str], found: Sequence[Found], pool: Pool, limit: int) -> list[Unit]:
        """One unit a probe and layer, with up to `limit` pieces of evidence that no earlier step has read."""
        ...

    def group_units(self, units: Sequence[Unit]) -> list[list[Unit]]:
        """Units that are encoded together, into one cue."""
        ...

    def count_groups(self, layers: int) -> int:
        """How many groups the units of one probe make, one unit for each of so many layers."""
        ...

    def put_first(self, layer: str, units: Sequence[Unit]) -> list[Evidence]:
        """What an attempt sees of a layer before all that searches found; `units` are those of this step."""
        ...


class BestSoFar:
    """Each search keeps its own best hits; an attempt shows the best of everything found so far (`loops.fusing`)."""

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
                evidence = pool.find_unseen((piece for piece in ranked if piece.node not in claimed), limit)
                claimed.update(piece.node for piece in evidence)
                units.append(Unit(probe, layer, tuple(evidence), ""))
        return units

    def group_units(self, units: Sequence[Unit]) -> list[list[Unit]]:
        """Each alone: one cue a probe and layer."""
        return [[unit] for unit in units]

    def count_groups(self, layers: int) -> int:
        """One a layer."""
        return layers

    def put_first(self, layer: str, units: Sequence[Unit]) -> list[Evidence]:
        """New evidence, best first from each search in turn."""
        return drop_repeats(take_turns([unit.evidence for unit in units if unit.layer == layer]))


def _drop_leftovers(ranked: Sequence[Evidence]) -> list[Evidence]:
    """What is found at all: the pieces with a tenth or more of the best score of their search, if that is above 0."""
    least = _FLOOR * ranked[0].score if ranked else 0.0
    return [piece for piece in ranked if piece.score >= least or least <= 0]
