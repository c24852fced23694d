"""The hypergraph: a working memory of points that join entities (HGMem, section 3.3, equations 3 to 5).

A point is a hyperedge, with its vertices and its history.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import PlainSerializer, TypeAdapter, ValidationError

from tomewise.errors import UsageError
from tomewise.language.labels import find_number, read_label
from tomewise.types import NodeId
from tomewise.types.plain import describe_invalid
from tomewise.working.lasting_memory import is_issued, make_damage_error

VertexId: TypeAlias = str
PointId: TypeAlias = str
Operation: TypeAlias = Literal["insert", "update", "merge"]
_LETTER = "M"
_LATELY = 3  # questions whose relevance is remembered, the one that is being answered among them


@dataclass(frozen=True, slots=True)
class Vertex:
    """An entity: a node of the graph memory, or of the overlay, which lives as long as this working memory."""

    id: VertexId
    name: str
    in_graph: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """One operation in the history of a point: what the point says since then, and from which evidence.

    `evidence` are nodes of the long-term memory, `earlier` the points that were merged. A step that names no evidence
    `is_vague`, and has no grounds: `evidence` is then all that was shown, any of which it may tell of.
    """

    operation: Operation
    description: str
    evidence: tuple[NodeId, ...] = ()
    earlier: tuple[PointId, ...] = ()
    is_vague: bool = False

    @property
    def grounds(self) -> tuple[NodeId, ...]:
        """The evidence that it names."""
        return () if self.is_vague else self.evidence


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
    return int(point.removeprefix(_LETTER))


def _list_parts(points: Iterable[MemoryPoint]) -> frozenset[PointId]:
    """The points that were merged into these."""
    return frozenset(part for point in points for step in point.history for part in step.earlier)


def _find_dependants(points: Iterable[MemoryPoint], nodes: frozenset[NodeId]) -> frozenset[PointId]:
    """The points that rest on these nodes, also through points that were merged into them."""
    found: set[PointId] = set()
    for point in sorted(points, key=lambda point: point.order):  # a part has a lower order than its whole
        steps = point.history
        if any(nodes.intersection(step.evidence) or found.intersection(step.earlier) for step in steps):
            found.add(point.id)
    return frozenset(found)


def _drop_old_history(
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
        parts = _list_parts([waiting.pop()]) - reached
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
    is_vague = all(step.is_vague for step in old)
    return (Step(old[0].operation, old[-1].description, tuple(evidence), tuple(earlier), is_vague), *steps[count:])


@dataclass(frozen=True)
class _Dumped:
    """A hypergraph as plain data."""

    vertices: tuple[Vertex, ...]
    points: tuple[MemoryPoint, ...]
    former: tuple[MemoryPoint, ...]
    issued: int
    relevance: tuple[dict[PointId, float], ...] = ()


_DUMPED = TypeAdapter(_Dumped)


class Hypergraph:
    """Points in the order in which they came, over the entities that they name.

    Two points may have the same vertices. Points that were merged leave; they stay under `former`, because the
    histories of other points name them.
    """

    kind = "hypergraph"

    def __init__(self) -> None:
        self._vertices: dict[VertexId, Vertex] = {}
        self._points: dict[PointId, MemoryPoint] = {}
        self._former: dict[PointId, MemoryPoint] = {}
        self._issued = 0
        self._past = 0  # the last number that was issued before this question
        self._relevance: list[dict[PointId, float]] = []  # by question, the one that is being answered last

    def __eq__(self, other: object) -> bool:
        return self.dump() == other.dump() if isinstance(other, Hypergraph) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it changes

    @property
    def points(self) -> tuple[MemoryPoint, ...]:
        return tuple(self._points.values())

    @property
    def former(self) -> tuple[MemoryPoint, ...]:
        """Points that were merged into others and left."""
        return tuple(self._former.values())

    @property
    def vertices(self) -> Mapping[VertexId, Vertex]:
        """The vertices of all points, also of the former ones."""
        return MappingProxyType(self._vertices)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the points say."""
        return tuple(point.description for point in self._points.values())

    def find(self, point: PointId) -> MemoryPoint:
        """The point with this id, "M1" or "1". Raises UsageError if it does not exist or has left."""
        known = self._points.get(f"{_LETTER}{find_number(read_label(point), _LETTER)}")
        if known is None:
            raise UsageError(f"{point!r} is not a memory point: use one of {', '.join(self._points) or 'none yet'}")
        return known

    def begin_question(self) -> None:
        """Rank by another question from now on; which points mattered to the last ones is kept for `shrink`."""
        self._relevance = [*self._relevance, {}][-_LATELY:]
        self._past = self._issued

    def is_past(self, point: MemoryPoint) -> bool:
        """Whether an earlier question made it."""
        return read_number(point.id) <= self._past

    def weigh(self, relevance: Mapping[PointId, float]) -> None:
        """Rank by these numbers; a point without one counts as 0."""
        self._relevance[-1:] = [dict(relevance)]

    def rank(self) -> list[MemoryPoint]:
        """All points, the most relevant to the question first (`weigh`)."""
        return self._rank(self._relevance[-1:])

    def _rank(self, relevance: Sequence[Mapping[PointId, float]]) -> list[MemoryPoint]:
        """The points by their highest relevance; equal ones in turn, one of the highest order and one of the newest.

        What joins others says most; but if it alone came first, a full memory would have no room for anything new.
        """
        newest = self.points[::-1]
        highest = sorted(newest, key=lambda point: -point.order)
        in_turn = (point for pair in zip(highest, newest, strict=True) for point in pair)
        distinct = {point.id: point for point in in_turn}
        return sorted(
            distinct.values(), key=lambda point: -max((known.get(point.id, 0.0) for known in relevance), default=0.0)
        )

    def list_names(self, point: MemoryPoint) -> list[str]:
        """The names of a point's vertices, in the order of the alphabet."""
        return sorted(self._vertices[vertex].name for vertex in point.vertices)

    def find_neighbours(self, vertices: Iterable[VertexId]) -> frozenset[VertexId]:
        """The vertices that share a point with one of these. A vertex is not its own neighbour."""
        anchors = frozenset(vertices)
        found: set[VertexId] = set()
        for point in self._points.values():
            if shared := point.vertices & anchors:
                found |= point.vertices if len(shared) > 1 else point.vertices - shared
        return frozenset(found)

    def find_grounds(self, point: MemoryPoint) -> tuple[NodeId, ...]:
        """The evidence that a point names, also through points that were merged into it; the newest first."""
        found: dict[NodeId, None] = {}
        waiting, visited = [point], {point.id}
        while waiting:
            for step in reversed(waiting.pop(0).history):
                found.update(dict.fromkeys(step.grounds))
                parts = [part for part in step.earlier if part not in visited]
                visited.update(parts)
                waiting += [self._points.get(part) or self._former[part] for part in parts]
        return tuple(found)

    # ------------------------------------------------------------ operations (section 3.5)

    def insert(
        self, description: str, vertices: Iterable[Vertex], evidence: Iterable[NodeId] = (), *, is_vague: bool = False
    ) -> MemoryPoint:
        """Add a point. Raises UsageError without a description or without a vertex."""
        step = Step("insert", _check_text(description), tuple(dict.fromkeys(evidence)), is_vague=is_vague)
        return self._put_point(
            MemoryPoint(f"{_LETTER}{self._issued + 1}", step.description, self._add_vertices(vertices), 1, (step,))
        )

    def update(
        self,
        point: PointId,
        description: str,
        evidence: Iterable[NodeId] = (),
        vertices: Iterable[Vertex] | None = None,
        *,
        is_vague: bool = False,
    ) -> MemoryPoint:
        """Change what a point says; its vertices stay unless others are given.

        Raises UsageError for an unknown point, without a description, or if no vertex would be left.
        """
        known = self.find(point)
        step = Step("update", _check_text(description), tuple(dict.fromkeys(evidence)), is_vague=is_vague)
        ids = known.vertices if vertices is None else self._add_vertices(vertices)
        changed = replace(known, description=step.description, vertices=ids, history=(*known.history, step))
        return self._put_point(changed)

    def merge(self, points: Sequence[PointId], description: str, *, keep: bool = False) -> MemoryPoint:
        """Join points into one of a higher order, with the vertices of all (equation 8). With `keep` they stay too.

        Raises UsageError for an unknown point, for fewer than two different ones, for points that were merged with each
        other before, or without a description.
        """
        parts = {part.id: part for part in map(self.find, points)}
        if len(parts) < 2:
            raise UsageError(f"{', '.join(points) or 'no point'} cannot be merged: name two or more different points")
        if any(parts.keys() == set(step.earlier) for point in self.points for step in point.history):
            raise UsageError(f"{', '.join(parts)} were merged before: their point is there already")
        step = Step("merge", _check_text(description), earlier=tuple(parts))
        order = 1 + max(part.order for part in parts.values())
        vertices = frozenset[VertexId]().union(*(part.vertices for part in parts.values()))
        merged = MemoryPoint(f"{_LETTER}{self._issued + 1}", step.description, vertices, order, (step,))
        if not keep:
            self._former.update((part, self._points.pop(part)) for part in parts)
        return self._put_point(merged)

    def _add_vertices(self, vertices: Iterable[Vertex]) -> frozenset[VertexId]:
        """Remember the vertices, and return their ids."""
        taken = {vertex.id: vertex for vertex in vertices}
        if not taken:
            raise UsageError("a memory point needs an entity: name one or more")
        self._vertices = {**taken, **self._vertices}
        return frozenset(taken)

    def _put_point(self, point: MemoryPoint) -> MemoryPoint:
        self._issued += point.id not in self._points
        self._points[point.id] = point
        self._drop_unused_vertices()
        return point

    def _drop_unused_vertices(self) -> None:
        used = frozenset[VertexId]().union(*(known.vertices for known in (*self.points, *self.former)))
        self._vertices = {vertex: self._vertices[vertex] for vertex in sorted(used)}

    # ------------------------------------------------------------ between questions

    def find_nodes(self) -> frozenset[NodeId]:
        """The evidence of all points and their vertices in the graph."""
        points = (*self.points, *self.former)
        evidence = (node for point in points for step in point.history for node in step.evidence)
        return frozenset(evidence) | {vertex.id for vertex in self._vertices.values() if vertex.in_graph}

    def forget(self, nodes: Collection[NodeId]) -> tuple[str, ...]:
        """Remove the points that rest on these nodes, in any step of their histories or of those of their parts.

        Parts of a point that leaves come back if they rest on other nodes. An entity that left the graph stays in the
        overlay. Returns the descriptions of the points that left.
        """
        left = _find_dependants((*self.points, *self.former), frozenset(nodes))
        gone = tuple(point.description for point in self.points if point.id in left)
        points = [point for point in self.points if point.id not in left]
        former = [point for point in self.former if point.id not in left]
        named = _list_parts((*points, *former))
        back = [point for point in former if point.id not in named]
        self._former = {point.id: point for point in former if point.id in named}
        self._points = {point.id: point for point in sorted((*points, *back), key=lambda point: read_number(point.id))}
        self._drop_unused_vertices()
        missing = self._vertices.keys() & set(nodes)
        self._vertices |= {id: replace(self._vertices[id], in_graph=False) for id in missing}
        return gone

    def shrink(self, most: int) -> tuple[str, ...]:
        """Keep the `most` points that mattered most to any of the last questions, as many former ones, as many steps.

        A step that leaves, or a former point, leaves its evidence to the step that comes after it. Returns the
        descriptions of the points that left.
        """
        left = {point.id for point in self._rank(self._relevance)[most:]}
        gone = tuple(point.description for point in self.points if point.id in left)
        points = [point for point in self.points if point.id not in left]
        points, former = _drop_old_history(points, self.former, {**self._former, **self._points}, most)
        self._points = {point.id: point for point in points}
        self._former = {point.id: point for point in former}
        self._drop_unused_vertices()
        return gone

    # ------------------------------------------------------------ plain data

    def dump(self) -> dict[str, Any]:
        """The hypergraph as plain JSON data; equal hypergraphs give equal data."""
        relevance = tuple({id: score for id, score in known.items() if id in self._points} for known in self._relevance)
        dumped = _Dumped(tuple(self._vertices.values()), self.points, self.former, self._issued, relevance)
        data: dict[str, Any] = _DUMPED.dump_python(dumped, mode="json")
        return data

    @classmethod
    def load(cls, data: object) -> Hypergraph:
        """The hypergraph of which `dump` made `data`. Raises StoreError if it does not hold together."""
        try:
            dumped = _DUMPED.validate_python(data)
        except ValidationError as error:
            raise make_damage_error(describe_invalid(error)) from None
        loaded = cls()
        loaded._vertices = {vertex.id: vertex for vertex in sorted(dumped.vertices, key=lambda vertex: vertex.id)}
        loaded._points = {point.id: point for point in dumped.points}
        loaded._former = {point.id: point for point in dumped.former}
        loaded._issued = dumped.issued
        loaded._relevance = list(dumped.relevance)[-_LATELY:]
        _check(loaded, dumped)
        return loaded


def _check(loaded: Hypergraph, dumped: _Dumped) -> None:
    """Raise StoreError unless ids are different, all that is named exists, and each point has a history of its own."""
    points = {point.id: point for point in (*dumped.points, *dumped.former)}
    if len(points) < len(dumped.points) + len(dumped.former):
        raise make_damage_error("two points have the same id")
    if not all(is_issued(point, _LETTER, dumped.issued) for point in points):
        raise make_damage_error(f"a point has an id that was never issued (the last one is {_LETTER}{dumped.issued})")
    for point in points.values():
        earlier = [part for step in point.history for part in step.earlier]
        if not point.vertices or not point.vertices <= loaded.vertices.keys():
            raise make_damage_error(f"{point.id} has a vertex that is missing, or none")
        if not point.history or point.history[-1].description != point.description:
            raise make_damage_error(f"the history of {point.id} does not end with what it says")
        if not all(part in points and points[part].order < point.order for part in earlier):
            raise make_damage_error(f"the history of {point.id} names a point that is missing or not part of it")
    if frozenset[VertexId]().union(*(point.vertices for point in points.values())) < loaded.vertices.keys():
        raise make_damage_error("a vertex belongs to no point")


def _check_text(description: str) -> str:
    text = description.strip()
    if not text:
        raise UsageError("a memory point needs a description: say what it holds")
    return text
