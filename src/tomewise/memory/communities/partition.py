"""A partition of a weighted graph into communities, level by level: made by Leiden, kept while the graph changes.

Level 0 is the coarsest. A community of ten or more is divided into communities of the next level, by Leiden on its
inner edges, unless that finds no division (GraphRAG, section 3.1.4). When the graph has changed, only the vertices that
were touched move (ours): each to the community next to it, under the same parent, that raises modularity most.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

SEED = 0xDEADBEEF
RESOLUTION = 1.0
RANDOMNESS = 0.001
DIVIDED_FROM = 10  # members
_LEAST_GAIN = 1e-9  # of weight; below it, two communities are equally good

Vertices = Collection[int]


@dataclass(slots=True)
class Community:
    """Vertices that belong together. `number` is its own for good, `parent` that of the community it is a part of."""

    number: int
    level: int
    parent: int | None
    members: set[int]


class WeightedGraph:
    """An undirected graph. `neighbours` has for each vertex with an edge the weights of its edges."""

    def __init__(self, edges: Iterable[tuple[int, int, float]]) -> None:
        self.neighbours: dict[int, dict[int, float]] = {}
        for a, b, weight in edges:
            self.neighbours.setdefault(a, {})[b] = weight
            self.neighbours.setdefault(b, {})[a] = weight

    def list_inner(self, members: Vertices) -> list[tuple[int, int, float]]:
        """The edges between these vertices, each once with a < b, sorted."""
        inside = members if isinstance(members, set | frozenset) else frozenset(members)
        return [
            (a, b, weight)
            for a in sorted(inside)
            for b, weight in sorted(self.neighbours.get(a, {}).items())
            if a < b and b in inside
        ]


@dataclass
class Partition:
    """All communities by number. `made` counts those that ever were, so that no number is used again."""

    communities: dict[int, Community] = field(default_factory=dict)
    made: int = 0

    def list_children(self, parent: int | None) -> list[Community]:
        """The communities that a community is divided into; those of level 0 for None."""
        return [each for each in self.communities.values() if each.parent == parent]

    def measure_levels(self) -> list[int]:
        """How many communities each level has."""
        counts = Counter(each.level for each in self.communities.values())
        return [counts[level] for level in range(len(counts))]


def renew(partition: Partition, graph: WeightedGraph, touched: Vertices) -> None:
    """Bring a partition up to date with a graph, in place; an empty one is made anew.

    `touched` are the vertices that are new, and the ends of edges that are new, gone, or of another weight. Vertices
    without an edge are in no community.
    """
    _Renewal(partition, graph).settle(None, set(graph.neighbours), set(touched))


def divide(graph: WeightedGraph, members: Vertices) -> list[list[int]]:
    """The parts into which Leiden divides these vertices, the largest first, each sorted; one if it finds no division.

    A vertex without an edge to the others is a part by itself.
    """
    from graspologic_native import leiden  # type: ignore[import-untyped]

    edges = [(str(a), str(b), weight) for a, b, weight in graph.list_inner(members)]
    homes: Mapping[str, int] = {}
    if edges:
        _, homes = leiden(
            edges=edges,
            starting_communities=None,
            resolution=RESOLUTION,
            randomness=RANDOMNESS,
            iterations=1,
            use_modularity=True,
            seed=SEED,
            trials=1,
        )
    parts: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for vertex in sorted(members):
        home = homes.get(str(vertex))
        parts[(1, vertex) if home is None else (0, home)].append(vertex)
    return sorted(parts.values(), key=lambda part: (-len(part), part[0]))


def measure_modularity(graph: WeightedGraph, parts: Iterable[Vertices]) -> float:
    """The modularity of a partition of all vertices that have edges (Newman 2006); 0 for a graph without edges."""
    strengths = {vertex: sum(edges.values()) for vertex, edges in graph.neighbours.items()}
    total = sum(strengths.values())
    value = 0.0
    for part in parts:
        inner = 2 * sum(weight for _, _, weight in graph.list_inner(part))
        value += inner / total - (sum(strengths[vertex] for vertex in part) / total) ** 2
    return value


class _Renewal:
    def __init__(self, partition: Partition, graph: WeightedGraph) -> None:
        self._partition = partition
        self._graph = graph
        self._children: defaultdict[int | None, list[Community]] = defaultdict(list)
        for community in sorted(partition.communities.values(), key=lambda each: each.number):
            self._children[community.parent].append(community)

    def settle(self, parent: Community | None, members: set[int], touched: set[int]) -> None:
        """Divide a community, or the whole graph, into communities, or bring its division up to date."""
        number = parent.number if parent else None
        children = self._children[number]
        if parent is not None and len(members) < DIVIDED_FROM:
            self._drop(children)
            return
        if not children:
            # What was not divided before is not divided now either, unless it has changed.
            if parent is None or touched & members:
                self._divide(parent, members)
            return
        for child in children:
            child.members &= members
        newcomers = members.difference(*(child.members for child in children))
        children += [self._add(parent, {vertex}) for vertex in sorted(newcomers)]
        changed = self._move(children, members, (touched & members) | newcomers)
        self._drop([child for child in children if not child.members])
        children = self._children[number]
        if parent is not None and len(children) == 1:
            self._drop(children)
            self._divide(parent, members)
            return
        for child in list(children):
            self.settle(child, child.members, (touched | changed) & child.members)

    def _divide(self, parent: Community | None, members: set[int]) -> None:
        parts = divide(self._graph, members)
        if parent is not None and len(parts) < 2:
            return
        for part in parts:
            child = self._add(parent, set(part))
            self._children[child.parent].append(child)
            if len(part) >= DIVIDED_FROM:
                self._divide(child, child.members)

    def _add(self, parent: Community | None, members: set[int]) -> Community:
        self._partition.made += 1
        level, above = (parent.level + 1, parent.number) if parent else (0, None)
        community = Community(self._partition.made, level, above, members)
        self._partition.communities[community.number] = community
        return community

    def _drop(self, communities: Sequence[Community]) -> None:
        """Remove communities with all their parts."""
        for community in list(communities):
            self._drop(self._children[community.number])
            self._children[community.parent].remove(community)
            del self._partition.communities[community.number]

    def _move(self, communities: Sequence[Community], members: set[int], touched: set[int]) -> set[int]:
        """Move vertices while that raises modularity, and return those that moved.

        The queue begins with the touched ones; the neighbours of one that moved join it, unless they are where it went.
        """
        neighbours = self._graph.neighbours
        strengths = {
            vertex: sum(weight for neighbour, weight in neighbours[vertex].items() if neighbour in members)
            for vertex in members
        }
        sums = {each.number: sum(strengths[vertex] for vertex in each.members) for each in communities}
        homes = {vertex: each for each in communities for vertex in each.members}
        by_number = {each.number: each for each in communities}
        total = sum(strengths.values())
        queue, waiting, moved = deque(sorted(touched)), set(touched), set[int]()
        while queue:
            vertex = queue.popleft()
            waiting.discard(vertex)
            own = homes[vertex].number
            sums[own] -= strengths[vertex]
            links: defaultdict[int, float] = defaultdict(float)
            for neighbour, weight in neighbours[vertex].items():
                if neighbour in members:
                    links[homes[neighbour].number] += weight
            best, most = own, links[own] - RESOLUTION * strengths[vertex] * sums[own] / total if total else 0.0
            for number in sorted(links):
                gain = links[number] - RESOLUTION * strengths[vertex] * sums[number] / total
                if gain > most + _LEAST_GAIN:
                    best, most = number, gain
            sums[best] += strengths[vertex]
            if best == own:
                continue
            homes[vertex].members.remove(vertex)
            homes[vertex] = by_number[best]
            homes[vertex].members.add(vertex)
            moved.add(vertex)
            for neighbour in sorted(neighbours[vertex]):
                if neighbour in members and neighbour not in waiting and homes[neighbour].number != best:
                    waiting.add(neighbour)
                    queue.append(neighbour)
        return moved
