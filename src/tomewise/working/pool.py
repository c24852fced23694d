"""The pool: the working memory of one question, made of units of probe, evidence and cue (ComoRAG, section 2.3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tomewise.types import Embedder, Evidence, NodeId
from tomewise.types.plain import write_plain
from tomewise.working.lasting_memory import load_memory
from tomewise.working.nearness import Nearness


@dataclass(frozen=True, slots=True)
class Unit:
    """The result of one search in one layer: the probe, the evidence, and the cue, which says what it means.

    `support` holds the nodes that the cue is based on, the most important first. They may belong to other layers. It is
    empty if they are unknown.
    """

    probe: str
    layer: str
    evidence: tuple[Evidence, ...]
    cue: str
    support: tuple[NodeId, ...] = ()


@dataclass(frozen=True)
class _Dumped:
    units: tuple[Unit, ...]


class Pool:
    """Units, in the order in which `add` adds them (Mem-Update, equation 4). Those with a cue outlive a question.

    They are kept with the evidence from which the cue was made.
    """

    kind = "pool"

    def __init__(self, embedder: Embedder) -> None:
        self._nearness = Nearness(embedder)
        self._units: list[Unit] = []

    @property
    def units(self) -> tuple[Unit, ...]:
        return tuple(self._units)

    @property
    def notes(self) -> tuple[str, ...]:
        """The cues."""
        return tuple(dict.fromkeys(unit.cue for unit in self._units if unit.cue))

    def begin_question(self) -> None:
        """Keep what outlives a question."""
        self._units = [_keep_support(unit) for unit in self._units if unit.cue]

    def add(self, units: Sequence[Unit]) -> None:
        """Add units, and embed their cues."""
        self._nearness.prepare([unit.cue for unit in units if unit.cue])
        self._units += units

    def find_relevant(self, question: str, fraction: float, least: int) -> list[Unit]:
        """The units whose cues are nearest to the question: this fraction of the different cues, at least `least`.

        If `fraction` is 0, the result is empty. Of units with the same cue the first counts. The paper's "Mem-Fuse
        threshold" (appendix B.4) is this fraction, not a cosine.
        """
        if not fraction:
            return []
        first: dict[str, Unit] = {}
        for unit in self._units:
            if unit.cue:
                first.setdefault(unit.cue, unit)
        distinct = list(first.values())
        scores = self._nearness.score(question, [unit.cue for unit in distinct])
        ranked = [distinct[index] for index in np.argsort(-scores, kind="stable")]
        return ranked[: max(least, int(fraction * len(ranked)))]

    # ------------------------------------------------------------ between questions

    def find_nodes(self) -> frozenset[NodeId]:
        """The evidence of all units, what their cues are based on, and the passages below."""
        return frozenset(node for unit in self._units for node in _list_nodes(unit))

    def forget(self, nodes: Collection[NodeId]) -> tuple[str, ...]:
        """Remove the units that rest on these nodes. Returns the cues that left."""
        gone = frozenset(nodes)
        return self._keep([unit for unit in self._units if gone.isdisjoint(_list_nodes(unit))])

    def shrink(self, most: int) -> tuple[str, ...]:
        """Keep the newest units. Returns the cues that left."""
        return self._keep(list(deque(self._units, most)))

    def _keep(self, units: list[Unit]) -> tuple[str, ...]:
        before = self.notes
        self._units = units
        return tuple(cue for cue in before if cue not in self.notes)

    def dump(self) -> dict[str, Any]:
        """The units that outlive a question as plain JSON data."""
        return dict(write_plain(_Dumped(tuple(_keep_support(unit) for unit in self._units if unit.cue))))

    @classmethod
    def load(cls, data: object, embedder: Embedder) -> Pool:
        """The pool of which `dump` made `data`. Raises StoreError for damaged data."""
        loaded = cls(embedder)
        loaded._units = list(load_memory(_Dumped, data).units)
        return loaded


def _keep_support(unit: Unit) -> Unit:
    """The unit with the evidence of its layer that its cue is based on; with all of it where that is unknown."""
    support = frozenset(unit.support)
    kept = tuple(piece for piece in unit.evidence if not support or piece.id in support)
    return replace(unit, evidence=kept)


def _list_nodes(unit: Unit) -> frozenset[NodeId]:
    sources = (source for piece in unit.evidence for source in piece.sources)
    return frozenset((*unit.support, *(piece.id for piece in unit.evidence), *sources))
