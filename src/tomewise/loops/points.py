"""The points of a hypergraph as prompts and events show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tomewise.language.roles import PointShown
from tomewise.loops.evidence import FENCE, Count
from tomewise.working.hypergraph import Hypergraph
from tomewise.working.point import MemoryPoint


def as_prompt_points(memory: Hypergraph, points: Iterable[MemoryPoint]) -> list[PointShown]:
    """Points as a prompt shows them: under their ids, with the names of their entities."""
    return [
        PointShown(id=point.id, description=point.description, entities=memory.list_names(point)) for point in points
    ]


def fit_points(memory: Hypergraph, room: int, count: Count) -> list[MemoryPoint]:
    """The points that fit into `room` tokens, in their order: the first of `Hypergraph.rank`."""
    points = memory.rank()
    kept = []
    texts = [" ".join([point.description, *memory.list_names(point)]) for point in points]
    for point, tokens in zip(points, count(texts) if texts else [], strict=True):
        if tokens + FENCE <= room:
            kept.append(point)
            room -= tokens + FENCE
    return [point for point in memory.points if point in kept]


def list_rows(memory: Hypergraph, points: Iterable[MemoryPoint]) -> list[dict[str, object]]:
    """Points as rows of plain values, for events."""
    return [
        {
            "point": point.id,
            "description": point.description,
            "entities": "; ".join(memory.list_names(point)),
            "order": point.order,
            "single": point.is_single,
        }
        for point in points
    ]


def measure_points(points: Sequence[MemoryPoint]) -> dict[str, float]:
    """How many points there are, and how many vertices a point has on average and at most (HGMem, table 3)."""
    sizes = [len(point.vertices) for point in points]
    mean = round(sum(sizes) / len(sizes), 2) if sizes else 0.0
    return {"points": len(sizes), "vertices_per_point": mean, "most_vertices": max(sizes, default=0)}
