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
        PointShown(
            id=point.id,
            description=point.description,
            entities=memory.list_names(point),
            parts=max(len(step.earlier) for step in point.history),
        )
        for point in points
    ]


def fit_points(memory: Hypergraph, room: int, past: int, count: Count) -> list[MemoryPoint]:
    """The points that fit into `room` tokens, the most relevant ones, in the order in which they came.

    Those of earlier questions are added only while all together take at most `past` tokens.
    """
    points = sorted(memory.rank(), key=memory.is_past)
    kept = set()
    used = 0
    texts = [" ".join([point.description, *memory.list_names(point)]) for point in points]
    for point, tokens in zip(points, count(texts) if texts else [], strict=True):
        if used + tokens + FENCE <= (min(room, past) if memory.is_past(point) else room):
            kept.add(point.id)
            used += tokens + FENCE
    return [point for point in memory.points if point.id in kept]


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
