"""A point of a hypergraph, with its vertices and its history (HGMem, section 3.3, equations 3 to 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import PlainSerializer

from tomewise.types import NodeId

VertexId: TypeAlias = str
PointId: TypeAlias = str
Operation: TypeAlias = Literal["insert", "update", "merge"]
LETTER = "M"


@dataclass(frozen=True, slots=True)
class Vertex:
    """An entity: a node of the graph memory, or of the overlay, which lives as long as this working memory."""

    id: VertexId
    name: str
    in_graph: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """One operation in the history of a point: what the point says since then, and what that rests on.

    `evidence` are nodes of the long-term memory, `earlier` the points that were merged.
    """

    operation: Operation
    description: str
    evidence: tuple[NodeId, ...] = ()
    earlier: tuple[PointId, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    """A hyperedge. The model sees its `id`, such as "M3"; no other point ever gets the same one.

    `order` is 1 for a point that was inserted, and one more than the highest of its parts for a point that was merged.
    """

    id: PointId
    description: str
    vertices: Annotated[frozenset[VertexId], PlainSerializer(sorted)]
    order: int
    history: tuple[Step, ...]

    @property
    def is_single(self) -> bool:
        """Whether it has one vertex only, so that it joins nothing."""
        return len(self.vertices) == 1
