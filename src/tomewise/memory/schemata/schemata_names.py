"""The settings of the schemata, and the names of what they make in the store, which the layer and recall share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from tomewise.memory.rule_names import LayerRules

SCHEMATA = "schemata"
MOST_LEVELS = 10
Clusters: TypeAlias = Literal["overlapping", "disjoint", "as published", "as published but disjoint"]


@dataclass(frozen=True)
class SchemataRules(LayerRules):
    """How passages are linked and clustered; names as in the paper, equation 2.

    The score of two passages is alpha times the cosine, plus, within a document, 1 - alpha times a Gaussian of the
    distance in passages with the width `sigma`. They are linked if each is among the `k` best partners of the other.
    With `entities`, the node layer of a graph's entities, passages that see an entity of at most k passages are linked
    too. There are at most so many `levels` of clusters; with 0 there are links alone. In `disjoint` clusters, a vertex
    has one replica.

    Clusters `as published` are those of the paper (`memory.schemata.published`), where a passage is linked with its k
    best partners whose score exceeds `theta`.
    """

    base = SCHEMATA

    alpha: float = 0.7
    sigma: float = 1.0
    k: int = 10
    theta: float = 0.5
    entities: str = ""
    clusters: Clusters = "overlapping"
    levels: int = MOST_LEVELS

    @property
    def are_published(self) -> bool:
        """Whether clusters are those of the paper."""
        return self.clusters in ("as published", "as published but disjoint")


USUAL = SchemataRules()


@dataclass(frozen=True)
class SchemataNames:
    """The names of the schemata that some rules make.

    The `layer` is that of the rules, so that each has its own state. Nodes and vectors have the layer's name. Edge
    spaces: `LAYER-lists` (passage, partner, score; the k best partners of each passage), `LAYER-links:L` (vertex,
    vertex, weight; each link of level L once), and the store's `made-of:LAYER`.
    """

    layer: str = SCHEMATA
    kind: ClassVar = "summary"  # what its nodes are

    @property
    def lists(self) -> str:
        """The space of the best partners of passages."""
        return f"{self.layer}-lists"

    def links(self, level: int) -> str:
        """The space of the links of a level; 0 is that of passages."""
        return f"{self.layer}-links:{level}"

    @property
    def sources(self) -> str:
        """The space of the edges from schemata to what they were made from."""
        return f"made-of:{self.layer}"
