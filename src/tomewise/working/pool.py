"""The pool: the working memory of one question, made of units of probe, evidence and cue (ComoRAG, section 2.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from tomewise.types import Embedder, Evidence, NodeId

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Of reciprocal rank fusion. The usual 60 counts searches more than ranks: with it, forced answers to the odd-numbered
# MuSiQue questions see 77 % of their supporting passages, with 1 to 10 they see 91 %.
_DAMPING = 10


@dataclass(frozen=True, slots=True)
class Unit:
    """What one search of one layer brought: the probe, the evidence that was new, and what that means.

    `support` are the nodes that the cue rests on, maybe of other layers too, the most telling first; none if unknown.
    """

    probe: str
    layer: str
    evidence: tuple[Evidence, ...]
    cue: str
    support: tuple[NodeId, ...] = ()


class Pool:
    """Units in the order in which they came. It grows only by `take` (Mem-Update, equation 4)."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._units: list[Unit] = []
        self._vectors: dict[str, NDArray[np.float32]] = {}  # by cue
        self._seen: set[NodeId] = set()
        self._credit: dict[NodeId, float] = {}
        self._first: dict[str, tuple[Evidence, ...]] = {}  # by layer

    @property
    def units(self) -> tuple[Unit, ...]:
        return tuple(self._units)

    def prepare(self, units: Sequence[Unit]) -> None:
        """Embed the cues of units that may be taken next, such as while a model answers from them."""
        fresh = list(dict.fromkeys(unit.cue for unit in units if unit.cue and unit.cue not in self._vectors))
        if fresh:
            self._vectors.update(zip(fresh, self._embedder.embed(fresh), strict=True))

    def take(self, units: Sequence[Unit]) -> None:
        """Take in units; their cues are embedded, unless that was prepared."""
        self.prepare(units)
        self._units += units
        self._seen.update(evidence.node for unit in units for evidence in unit.evidence)

    def credit(self, layer: str, ranked: Sequence[Evidence]) -> None:
        """Take note of what a search found, best first, seen before or not."""
        self._first.setdefault(layer, tuple(ranked))
        for rank, piece in enumerate(ranked):
            self._credit[piece.node] = self._credit.get(piece.node, 0.0) + 1 / (_DAMPING + rank)

    def first_found(self, layer: str) -> tuple[Evidence, ...]:
        """What the first search of a layer, that for the question itself, found, best first."""
        return self._first.get(layer, ())

    def gather(self, layer: str) -> list[Evidence]:
        """The evidence of a layer's units: first what most searches found and ranked high (reciprocal rank fusion)."""
        pieces = {piece.node: piece for unit in self._units if unit.layer == layer for piece in unit.evidence}
        return sorted(pieces.values(), key=lambda piece: -self._credit.get(piece.node, 0.0))

    def find_unseen(self, evidence: Iterable[Evidence], limit: int) -> list[Evidence]:
        """The first `limit` pieces whose node the pool does not hold.

        Seen pieces are dropped before the cut, so that a search goes deeper where its top is known.
        """
        return list(islice((piece for piece in evidence if piece.node not in self._seen), limit))

    @property
    def size(self) -> int:
        """How many nodes the pool has seen."""
        return len(self._seen)

    def relevant(self, question: str, fraction: float, least: int) -> list[Unit]:
        """The given fraction of the units, `least` or more unless it is 0, whose cues are nearest to the question.

        Of units that share one cue, made for one probe, the first stands for all. The paper's "Mem-Fuse threshold"
        (appendix B.4) is this fraction, not a cosine.
        """
        if not fraction:
            return []
        first: dict[tuple[str, str], Unit] = {}
        for unit in self._units:
            if unit.cue:
                first.setdefault((unit.probe, unit.cue), unit)
        ranked = self.nearest(question, list(first.values()))
        return ranked[: max(least, int(fraction * len(ranked)))]

    def nearest(self, question: str, units: Sequence[Unit]) -> list[Unit]:
        """Those of the units that have a cue, first the one whose cue is nearest to the question."""
        cued = [unit for unit in units if unit.cue]
        if not cued:
            return []
        self.prepare(cued)
        vector = self._embedder.embed([question])[0]
        scores = np.round(np.stack([self._vectors[unit.cue] for unit in cued]) @ vector, 6)
        return [cued[place] for place in np.argsort(-scores, kind="stable")]
