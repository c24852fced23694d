"""What the probing loop shows: evidence and cues of several layers within one budget of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tomewise.loops.budget import shared
from tomewise.loops.showing import FENCE, Count, Shelf
from tomewise.types import Evidence
from tomewise.working.pool import Pool, Unit

HISTORY = "history"
_CUE_ROOM = 2  # cues take at most one part in so many of their layer's share
_NEAR = 0.8  # of a text that is cut: a word that begins further back is cut too, as where there are no spaces
_LEAST = 100  # tokens to which a cue is cut short at most, where there are too many


@dataclass(frozen=True, slots=True)
class Context:
    """What the answering role gets to see, and how many pieces of evidence had no room."""

    evidence: tuple[Evidence, ...]
    notes: tuple[str, ...]
    cut: int


class Contexts:
    """Fits units into `budget` tokens. `shares` are those of the layers, in their order, and of `HISTORY`.

    Relevance decides what gets in, document order how it is shown. A cue takes room in the share of its layer, at most
    half of it. Cues that are too long are cut short, evidence is left out. Tokens of a text are counted once.
    """

    def __init__(self, shelf: Shelf, count: Count, budget: int, shares: Mapping[str, int]) -> None:
        self._shelf = shelf
        self._count = count
        self._budget = budget
        self._shares = shares
        self._known: dict[str, int] = {}

    def read(self, unit: Unit) -> tuple[Evidence, ...]:
        """The evidence of one unit that fits into its layer's share, best first: one piece at least."""
        texts = [_text(piece) for piece in unit.evidence]
        kept = shared(self._room(unit.layer), {unit.layer: 1}, {unit.layer: texts}, self._tokens)[unit.layer]
        return tuple(unit.evidence[place] for place in kept) or unit.evidence[:1]

    def in_order(self, evidence: Sequence[Evidence]) -> list[Evidence]:
        """Evidence as it is shown."""
        return self._shelf.in_order(evidence)

    def cues(self, cues: Sequence[str]) -> list[str]:
        """Cues as a role sees them that is shown nothing else."""
        return self._shortened(cues, self._budget)

    def context(self, units: Sequence[Unit], fused: str, pool: Pool) -> Context:
        """What the answering role sees of new units: their cues, their evidence, best first from each in turn.

        Room that is left goes to the evidence of the pool. `fused` is what the cues of the past say together.
        """
        ranked = {layer: [*_in_turn(units, layer), *pool.gathered(layer)] for layer in self._layers}
        notes = self._shortened([fused], self._room(HISTORY)) if fused.strip() else []
        return self._filled(units, ranked, notes)

    def whole(self, units: Sequence[Unit], pool: Pool) -> Context:
        """What it sees of the whole pool. `units` are those whose cues it sees, as many as have room."""
        return self._filled(units, {layer: pool.gathered(layer) for layer in self._layers}, [])

    @property
    def _layers(self) -> list[str]:
        return [layer for layer in self._shares if layer != HISTORY]

    def _filled(self, cued: Sequence[Unit], ranked: Mapping[str, Sequence[Evidence]], notes: list[str]) -> Context:
        cues = {layer: self._cues(cued, layer) for layer in ranked}
        texts = {layer: [*cues[layer], *map(_text, ranked[layer])] for layer in ranked} | {HISTORY: notes}
        kept = shared(self._budget, self._shares, texts, self._tokens)
        evidence: list[Evidence] = []
        said = [notes[place] for place in kept.pop(HISTORY)]
        for layer, places in kept.items():
            first = len(cues[layer])
            said += [cues[layer][place] for place in places if place < first]
            evidence += [ranked[layer][place - first] for place in places if place >= first]
        cut = sum(map(len, ranked.values())) - len(evidence)
        return Context(tuple(self._shelf.in_order(evidence)), tuple(said), cut)

    def _cues(self, units: Sequence[Unit], layer: str) -> list[str]:
        cues = [unit.cue for unit in units if unit.layer == layer and unit.cue.strip()]
        return self._shortened(cues, self._room(layer) // _CUE_ROOM)

    def _room(self, layer: str) -> int:
        return self._budget * self._shares.get(layer, 0) // sum(self._shares.values())

    def _shortened(self, texts: Sequence[str], room: int) -> list[str]:
        """Texts that fit into `room` tokens, the longest cut short; the last ones go where all would be crumbs."""
        sizes = self._tokens(texts)
        needs = accumulate(min(size, _LEAST) + FENCE for size in sizes)
        count = max(1, sum(need <= room for need in needs))
        left, most = room - FENCE * count, 0
        for place, size in enumerate(sorted(sizes[:count])):
            most = left // (count - place)
            if size > most:
                break
            left, most = left - size, size
        return [short for text in texts[:count] if (short := self._cut(text, most))]

    def _cut(self, text: str, most: int) -> str:
        """The beginning of a text, up to `most` tokens, between two words where one is near."""
        if most <= 0:
            return ""
        text = kept = text.strip()
        length = len(text)
        while (size := self._count([kept])[0]) > most:
            length = int(0.95 * length * most / size)  # a little less, so that few rounds do
            begun = text[:length].strip()
            if not begun:
                return ""
            words = begun.rsplit(maxsplit=1)[0]
            kept = f"{words if len(words) > _NEAR * len(begun) else begun} …"
        return kept

    def _tokens(self, texts: Sequence[str]) -> list[int]:
        fresh = list(dict.fromkeys(text for text in texts if text not in self._known))
        self._known.update(zip(fresh, self._count(fresh) if fresh else (), strict=True))
        return [self._known[text] for text in texts]


def _text(piece: Evidence) -> str:
    return f"{piece.title}\n{piece.text}" if piece.title else piece.text


def _in_turn(units: Sequence[Unit], layer: str) -> list[Evidence]:
    """The evidence of all units of a layer: the first of each, then the second of each, and so on."""
    lists = [unit.evidence for unit in units if unit.layer == layer]
    deepest = max((len(some) for some in lists), default=0)
    return [some[rank] for rank in range(deepest) for some in lists if rank < len(some)]
