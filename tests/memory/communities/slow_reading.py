"""What the pages say of communities, computed slowly: modularity by its definition, in whole numbers and fractions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

Edges = Mapping[tuple[int, int], int]


def modularity(edges: Edges, parts: Iterable[Iterable[int]]) -> Fraction:
    """The share of the weight inside of parts, less the share that chance would put there (Newman 2006)."""
    total = 2 * sum(edges.values())
    strengths: dict[int, int] = {}
    for (a, b), weight in edges.items():
        strengths[a] = strengths.get(a, 0) + weight
        strengths[b] = strengths.get(b, 0) + weight
    value = Fraction(0)
    for part in map(set, parts):
        for a in part:
            for b in part:
                weight = edges.get((min(a, b), max(a, b)), 0) if a != b else 0
                value += Fraction(weight, total) - Fraction(strengths[a] * strengths[b], total * total)
    return value


def move(edges: Edges, parts: Sequence[Iterable[int]], touched: Iterable[int]) -> list[set[int]]:
    """Move touched vertices to the next part that is best, then the neighbours of those that moved, until none is."""
    parts = [set(part) for part in parts]
    queue = sorted(touched)
    while queue:
        vertex = queue.pop(0)
        own = next(place for place, part in enumerate(parts) if vertex in part)
        beside = {end for edge in edges if vertex in edge for end in edge if end != vertex}
        best, most = own, modularity(edges, parts)
        for place, part in enumerate(parts):
            if place != own and part & beside:
                moved = [each - {vertex} if at == own else set(each) for at, each in enumerate(parts)]
                moved[place].add(vertex)
                if (value := modularity(edges, moved)) > most:
                    best, most = place, value
        if best != own:
            parts[own].remove(vertex)
            parts[best].add(vertex)
            queue += [each for each in sorted(beside) if each not in queue and each not in parts[best]]
    return [part for part in parts if part]
