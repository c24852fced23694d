"""The points of a hypergraph with their vertices (HGMem, section 3.3, equations 3 to 5), and their history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
    """One operation in the history of a point: what the point says since then, and from which evidence.

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


def read_number(point: PointId) -> int:
    """The number in the id of a point: 3 for M3."""
    return int(point.removeprefix(LETTER))


def list_parts(points: Iterable[MemoryPoint]) -> frozenset[PointId]:
    """The points that were merged into these."""
    return frozenset(part for point in points for step in point.history for part in step.earlier)


def find_dependants(points: Iterable[MemoryPoint], nodes: frozenset[NodeId]) -> frozenset[PointId]:
    """The points that rest on these nodes, also through points that were merged into them."""
    found: set[PointId] = set()
    for point in sorted(points, key=lambda point: point.order):  # a part has a lower order than its whole
        steps = point.history
        if any(nodes.intersection(step.evidence) or found.intersection(step.earlier) for step in steps):
            found.add(point.id)
    return frozenset(found)


def drop_old_history(
    points: Sequence[MemoryPoint], former: Sequence[MemoryPoint], known: Mapping[PointId, MemoryPoint], most: int
) -> tuple[list[MemoryPoint], list[MemoryPoint]]:
    """The points with at most `most` former ones and at most `most` steps each; both lists keep their order.

    Former points that none of the others names leave too. `known` holds all points, also those that were just removed.
    """
    reachable = _find_reachable(points, known)
    former = [point for point in former if point.id in reachable]
    newest = sorted(former, key=lambda point: (-point.order, -read_number(point.id)))[:most]
    left_ids = {point.id for point in (*points, *newest)}

    def shorten(point: MemoryPoint) -> MemoryPoint:
        steps = [_take_over(step, left_ids, known) for step in point.history]
        return replace(point, history=_join_oldest(steps, most))

    return [shorten(point) for point in points], [shorten(point) for point in former if point.id in left_ids]


def _find_reachable(points: Sequence[MemoryPoint], known: Mapping[PointId, MemoryPoint]) -> frozenset[PointId]:
    reached: set[PointId] = set()
    waiting = list(points)
    while waiting:
        parts = list_parts([waiting.pop()]) - reached
        reached |= parts
        waiting += [known[part] for part in parts if part in known]
    return frozenset(reached)


def _take_over(step: Step, left: set[PointId], known: Mapping[PointId, MemoryPoint]) -> Step:
    """The step with the evidence of those parts that are removed, and of what was merged into them."""
    evidence = dict.fromkeys(step.evidence)
    earlier: dict[PointId, None] = {}
    waiting = list(step.earlier)
    while waiting:
        part = waiting.pop(0)
        if part in left:
            earlier[part] = None
        elif part in known:
            for old in known[part].history:
                evidence.update(dict.fromkeys(old.evidence))
                waiting += old.earlier
    return replace(step, evidence=tuple(evidence), earlier=tuple(earlier))


def _join_oldest(steps: Sequence[Step], most: int) -> tuple[Step, ...]:
    """At most `most` steps, one at least: the oldest ones become one, with the description of the last of them."""
    count = len(steps) - max(1, most) + 1
    if count < 2:
        return tuple(steps)
    old = steps[:count]
    evidence = dict.fromkeys(node for step in old for node in step.evidence)
    earlier = dict.fromkeys(part for step in old for part in step.earlier)
    return (Step(old[0].operation, old[-1].description, tuple(evidence), tuple(earlier)), *steps[count:])
