"""The passages that a node rests on, however many layers lie between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tomewise.store.sqlite.store import SqliteStore


def grounds(store: SqliteStore, keys: Sequence[int], layer: str) -> dict[int, list[int]]:
    """Passage keys by node key, each once, in the order in which the sources name them.

    Works for passages themselves and for any layer whose nodes are made from passages or from nodes of that layer.
    """
    below: dict[int, list[int]] = {}
    front = list(dict.fromkeys(keys))
    while front:
        found = store.sources(front, layer)
        below |= found
        front = list(dict.fromkeys(source for some in found.values() for source in some if source not in below))
    return {key: _leaves(key, below) for key in keys}


def _leaves(key: int, below: dict[int, list[int]]) -> list[int]:
    leaves: dict[int, None] = {}
    waiting = [key]
    while waiting:
        at = waiting.pop()
        if below[at]:
            waiting += reversed(below[at])
        else:
            leaves[at] = None
    return list(leaves)
