"""Find the passages that a node was made from, through any number of layers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from tomewise.store.contract import Readable
from tomewise.store.lookups import read_sources


def find_grounds(store: Readable, keys: Sequence[int], layer: str) -> dict[int, list[int]]:
    """Find the passage keys of each node, each key once, in the order of the sources.

    Works for passages themselves and for any layer whose nodes are made from passages or from nodes of that layer.
    """
    sources_of: dict[int, list[int]] = {}
    front = set(keys)
    while front:
        found = read_sources(store, front, layer)
        sources_of |= found
        front = set(chain.from_iterable(found.values())) - sources_of.keys()
    return {key: _find_leaves(key, sources_of) for key in keys}


def _find_leaves(key: int, sources_of: dict[int, list[int]]) -> list[int]:
    leaves: dict[int, None] = {}
    visited: set[int] = set()  # a node of several parents would be walked once for each path to it
    waiting = [key]
    while waiting:
        current = waiting.pop()
        if current in visited:
            continue
        visited.add(current)
        if sources_of[current]:
            waiting += reversed(sources_of[current])
        else:
            leaves[current] = None
    return list(leaves)
