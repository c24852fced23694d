"""The settings of a MemTree, and the names of what it makes in the store, which the layer and recall share."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tomewise.memory.rule_names import LayerRules
from tomewise.store.records import name_source_space

MEMTREE = "memtree"
_BASE, _RATE = 0.4, 0.5  # theta 0 and lambda of the paper


@dataclass(frozen=True)
class MemTreeRules(LayerRules):
    """How a tree grows.

    A passage goes below a child whose cosine reaches the threshold of the depth; `depth_scale` divides the depth in it.
    A `batch` of passages is placed by the vectors from before the batch, and then each node above them is written once.
    Without `aggregation` no model writes: a node has the beginning of the texts below it.
    """

    base = MEMTREE

    depth_scale: float = 1.0
    batch: int = 1
    aggregation: bool = True

    def find_threshold(self, depth: int) -> float:
        """The least cosine with which a passage goes from a node of this depth to a child of it; the root has 0."""
        return _BASE * math.exp(_RATE * depth / self.depth_scale)

    @property
    def most_nodes_above(self) -> int:
        """The most nodes that a passage can be below: no cosine reaches a threshold above 1."""
        return 1 + math.floor(self.depth_scale * math.log(1 / _BASE) / _RATE)


USUAL = MemTreeRules()


@dataclass(frozen=True)
class MemTreeNames:
    """The names of the tree that some rules make.

    The `layer` is that of the rules, so that each has its own tree. There are two node layers. `places` are the shape
    of the tree: they have no text, and stay while passages below them come and go. `layer` has their texts and vectors:
    a text goes with the first of its passages that goes. Edge spaces: `links` (place, and the place or passage below
    it), `texts` (place, text, and 1 if it is due to be written again, else 0), and the store's `made-of:LAYER`.
    """

    layer: str = MEMTREE

    @property
    def places(self) -> str:
        return f"places:{self.layer}"

    @property
    def links(self) -> str:
        return name_source_space(self.places, "layer")

    @property
    def texts(self) -> str:
        return f"texts:{self.layer}"
