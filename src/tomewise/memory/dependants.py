"""Count what a removal would remove, before anything is removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from itertools import chain
from typing import TYPE_CHECKING

from tomewise.store.lifetimes import name_source_space

if TYPE_CHECKING:
    from tomewise.store.contract import Texts


def count_dependants(keys: Collection[int], layers: Collection[str], store: Texts) -> dict[str, int]:
    """How many nodes of each layer would go if these nodes were removed, as `Write.remove_nodes` decides it."""
    gone = set(keys)
    front = sorted(gone)
    counts: Counter[str] = Counter()
    while front:
        found = {layer: _find_orphans(front, gone, layer, store) - gone for layer in layers}
        counts.update({layer: len(orphans) for layer, orphans in found.items() if orphans})
        front = sorted(set[int]().union(*found.values()))
        gone.update(front)
    return dict(counts)


def _find_orphans(front: list[int], gone: Collection[int], layer: str, store: Texts) -> set[int]:
    made = store.find_derived(front, name_source_space(layer, "all"))
    seen = store.find_derived(front, name_source_space(layer, "any"))
    candidates = set(chain.from_iterable(seen.values()))
    sources = store.sources(candidates, layer) if candidates else {}
    lost = {key for key, rests_on in sources.items() if set(rests_on) <= set(gone)}
    return lost.union(*made.values())
