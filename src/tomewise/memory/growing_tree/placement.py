"""Where a passage belongs in a tree, and which nodes that touches (MemTree, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tomewise.memory.growing_tree.memtree_names import MemTreeRules

Floats = NDArray[np.float64]

ROOT = -1
_DECIMALS = 6
LoadRows = Callable[[Sequence[int]], "NDArray[np.float32]"]
FindIds = Callable[[Sequence[int]], Mapping[int, str]]


class GrowingTree:
    """Nodes and the passages at their ends, by key. The root is `ROOT`; nodes that are made here have keys below it.

    `parents` has the node above each node or passage; those without one are below the root. `load_rows` gives the
    vectors (n, d) of passages and of nodes that have one, `find_ids` the ids that order ties. A node of `bare` has no
    vector: the mean of the passages below it stands in.

    `touched` are the nodes above the passages that were added, each with these; `firsts` are the nodes that were made
    here, each with the passage in whose place it came.
    """

    def __init__(
        self,
        nodes: Collection[int],
        passages: Collection[int],
        parents: Mapping[int, int],
        bare: Collection[int],
        rules: MemTreeRules,
        load_rows: LoadRows,
        find_ids: FindIds,
    ) -> None:
        self.parents = {key: parents.get(key, ROOT) for key in (*nodes, *passages)}
        self.children: dict[int, list[int]] = {ROOT: [], **{node: [] for node in nodes}}
        for key, parent in self.parents.items():
            self.children[parent].append(key)
        self.touched: dict[int, list[int]] = {}
        self.firsts: dict[int, int] = {}
        self._bare = set(bare)
        self._rules = rules
        self._load_rows = load_rows
        self._find_ids = find_ids
        self._sums: dict[int, Floats] = {}  # of the vectors below a bare node
        self._families: dict[int, tuple[list[int], Floats]] = {}  # the children of a node, their vectors

    def prune(self) -> list[int]:
        """Replace each node of one child by it, and remove those without any. Returns their keys."""
        pruned = []
        for node in self.list_upwards():
            members = self.children[node]
            if len(members) < 2:
                parent = self.parents.pop(node)
                siblings = self.children[parent]
                at = siblings.index(node)
                siblings[at : at + 1] = members
                self.parents |= dict.fromkeys(members, parent)
                del self.children[node]
                pruned.append(node)
        return pruned

    def add(self, passage: int, row: NDArray[np.float32]) -> None:
        """Place a passage, whose vector (d,) is `row`, below the node where its way from the root ends.

        A passage that is reached becomes a node, with itself and the new one as its children.
        """
        vector, path = row.astype(np.float64), [ROOT]
        while (child := self._choose(path[-1], vector, self._rules.find_threshold(len(path) - 1))) is not None:
            path.append(child)
            if child not in self.children:
                path[-1] = self._split(child)
                break
        self.parents[passage] = path[-1]
        self.children[path[-1]].append(passage)
        keys, rows = self._families[path[-1]]
        self._families[path[-1]] = ([*keys, passage], np.vstack((rows, vector)))
        for node in path[1:]:
            self.touched.setdefault(node, []).append(passage)
            if node in self._bare:
                self._move_mean(node, vector)

    def list_upwards(self) -> list[int]:
        """All nodes but the root, each after those below it."""
        found, front = [], [ROOT]
        while front:
            found += front
            front = [child for node in front for child in self.children[node] if child in self.children]
        return found[:0:-1]

    def list_passages(self, node: int) -> list[int]:
        """The passages below a node."""
        if node not in self.children:
            return [node]
        return [passage for child in self.children[node] for passage in self.list_passages(child)]

    def list_tops(self, node: int, tellers: Collection[int]) -> list[int]:
        """The children of a node; in place of a node that is not among `tellers`, those of that node."""
        return [
            key
            for child in self.children[node]
            for key in ([child] if child in tellers or child not in self.children else self.list_tops(child, tellers))
        ]

    def find_heights(self) -> dict[int, int]:
        """How many steps the longest way from each node down to a passage has."""
        heights: dict[int, int] = {}
        for node in self.list_upwards():
            heights[node] = 1 + max((heights.get(child, 0) for child in self.children[node]), default=0)
        return heights

    def find_depth(self, node: int) -> int:
        """How many steps a node is below the root."""
        depth = 0
        while node != ROOT:
            node, depth = self.parents[node], depth + 1
        return depth

    def _choose(self, node: int, vector: Floats, threshold: float) -> int | None:
        """The child of a node that is nearest to a vector, ties by id; None if its cosine is below the threshold."""
        keys, rows = self._load_family(node)
        if not keys:
            return None
        cosines = (rows @ vector).round(_DECIMALS)
        best = float(cosines.max())
        if best < threshold:
            return None
        tied = [keys[index] for index in np.flatnonzero(cosines == best).tolist()]
        if len(tied) == 1:
            return tied[0]
        ids = self._find_ids(tied)
        return min(tied, key=ids.__getitem__)

    def _split(self, passage: int) -> int:
        """Put a new node in the place of a passage, which becomes its first child."""
        node, parent = ROOT - 1 - len(self.firsts), self.parents[passage]
        self.firsts[node] = passage
        self.children[node] = [passage]
        self.parents |= {node: parent, passage: node}
        siblings = self.children[parent]
        siblings[siblings.index(passage)] = node
        keys, rows = self._families[parent]
        at = keys.index(passage)
        keys[at] = node
        self._bare.add(node)
        self._sums[node] = rows[at].copy()
        self._families[node] = ([passage], rows[at : at + 1].copy())
        return node

    def _load_family(self, node: int) -> tuple[list[int], Floats]:
        if node not in self._families:
            members = self.children[node]
            bare = [key for key in members if key in self._bare]
            keys = [key for key in members if key not in self._bare]
            rows = (self._load_rows(keys).astype(np.float64), *(self._find_mean(key) for key in bare))
            self._families[node] = ([*keys, *bare], np.vstack(rows))
        return self._families[node]

    def _find_mean(self, node: int) -> Floats:
        if node not in self._sums:
            self._sums[node] = self._load_rows(self.list_passages(node)).astype(np.float64).sum(axis=0)
        return _scale(self._sums[node])

    def _move_mean(self, node: int, vector: Floats) -> None:
        """Add a vector to the mean of a bare node."""
        self._sums[node] += vector
        keys, rows = self._families[self.parents[node]]
        rows[keys.index(node)] = _scale(self._sums[node])


def _scale(vector: Floats) -> Floats:
    return vector / max(float(np.linalg.norm(vector)), 1e-12)
