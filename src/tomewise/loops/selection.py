"""What each search reads, and which evidence an attempt to answer sees first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Protocol

from tomewise.recall.layered import Found
from tomewise.recall.ranking import take_turns
from tomewise.types import Evidence, NodeId
from tomewise.working.pool import Pool, Unit

_WORD = re.compile(r"\w+")


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

    def rank(self, question: str, layer: str, units: Sequence[Unit], pool: Pool) -> list[Evidence]:
        """The evidence of a layer, the first to be shown first, each piece once; `units` are those of this step."""
        ...


class BestSoFar:
    """Each search keeps its own best hits; an attempt shows the best of everything found so far.

    Two lists take turns: the evidence from which cues were made, that of the cue nearest to the question first; and the
    hits of the search for the question itself. Then comes what is new. Ours: with 1,200 tokens, later attempts lost the
    passages that the first one had, and strong models that played the loop missed those from which their cues were
    made. With the extractive model, whose cues only quote, two of the question's hits to one passage of a cue see a
    little more (`bench/loop.py`).
    """

    least_fused = 2

    def make_units(self, probes: Sequence[str], found: Sequence[Found], pool: Pool, limit: int) -> list[Unit]:
        """Units of one step may share evidence."""
        return [
            Unit(probe, layer, tuple(pool.find_unseen(ranked, limit)), "")
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

    def rank(self, question: str, layer: str, units: Sequence[Unit], pool: Pool) -> list[Evidence]:
        """The evidence of cues and the hits of the question itself in turn; then what is new, then all else.

        The cues of this step come first: an attempt that shows what an earlier one saw would fail as that one did. The
        evidence of cues of earlier questions is in the rest, since it may be far from this question.
        """
        new_units = [unit for unit in units if unit.layer == layer]
        old_units = [unit for unit in pool.new_units if unit.layer == layer]
        by_cue = [[*map(_find_support, pool.find_nearest(question, of_step))] for of_step in (new_units, old_units)]
        support = drop_repeats(chain.from_iterable(map(take_turns, by_cue)))
        best = take_turns([support, pool.list_first_results(layer)])
        return drop_repeats(chain(best, take_turns([unit.evidence for unit in new_units]), pool.rank(layer)))


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

    def rank(self, question: str, layer: str, units: Sequence[Unit], pool: Pool) -> list[Evidence]:
        """New evidence, best first from each search in turn; then the rest of the pool."""
        fresh = [unit.evidence for unit in units if unit.layer == layer]
        return drop_repeats(chain(take_turns(fresh), pool.rank(layer)))


def _find_support(unit: Unit) -> list[Evidence]:
    """The evidence of a unit from which its cue was made: as the model named it, else all of it by shared words."""
    if not unit.support:
        return _sort_by_words(unit)
    pieces = {piece.node: piece for piece in unit.evidence}
    return [pieces[node] for node in unit.support if node in pieces]


def _sort_by_words(unit: Unit) -> list[Evidence]:
    """The evidence of a unit, first what shares most words with the cue: a cue is made from some of it only."""
    words = set(_WORD.findall(unit.cue.casefold()))
    return sorted(unit.evidence, key=lambda piece: -len(words.intersection(_WORD.findall(piece.text.casefold()))))


def drop_repeats(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Each piece once, where it comes first."""
    unique: dict[NodeId, Evidence] = {}
    for piece in evidence:
        unique.setdefault(piece.node, piece)
    return list(unique.values())
