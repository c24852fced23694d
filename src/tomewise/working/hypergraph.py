"""The hypergraph: a working memory of points that join entities (HGMem, section 3.3, equations 3 to 5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tomewise.errors import UsageError
from tomewise.language.labels import find_number, read_label
from tomewise.memory.graph.entity_names import normalise_name
from tomewise.recall.ranking import take_turns
from tomewise.types import NodeId
from tomewise.types.plain import write_plain
from tomewise.working.lasting_memory import check_labels, load_memory, make_damage_error

PointId: TypeAlias = str
_LETTER = "M"
_LATELY = 3  # questions whose relevance is remembered


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    """A hyperedge. The model sees its `id`, such as "M3"; no other point ever gets the same one.

    `entities` are its vertices, by name. `order` is 1, or one more than the highest of the `parts` that were merged.
    `grounds` are the passages that its records named, the newest first. `unnamed` are those shown to a record that
    named none: the point may tell of any of them, so it leaves with them.
    """

    id: PointId
    description: str
    entities: frozenset[str]
    order: int = 1
    parts: tuple[PointId, ...] = ()
    grounds: tuple[NodeId, ...] = ()
    unnamed: tuple[NodeId, ...] = ()

    @property
    def number(self) -> int:
        """The number in its id: 3 for M3. Points are numbered in the order in which they came."""
        return int(self.id.removeprefix(_LETTER))


@dataclass(slots=True)
class Hypergraph:
    """Points in the order in which they came. Two may join the same entities.

    `issued` is the number of the last point, `relevance` how near points were to each of the last questions.
    """

    kind = "hypergraph"
    points: tuple[MemoryPoint, ...] = ()
    issued: int = 0
    relevance: tuple[Mapping[PointId, float], ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the points say."""
        return tuple(point.description for point in self.points)

    def find(self, point: PointId) -> MemoryPoint:
        """The point with this id, "M1" or "1". Raises UsageError if it does not exist or has left."""
        points = {known.id: known for known in self.points}
        known = points.get(f"{_LETTER}{find_number(read_label(point), _LETTER)}")
        if known is None:
            raise UsageError(f"{point!r} is not a memory point: use one of {', '.join(points) or 'none yet'}")
        return known

    def find_neighbours(self, entities: Collection[str]) -> frozenset[str]:
        """The entities that share a point with one of these. An entity is not its own neighbour."""
        anchors, found = frozenset(entities), set[str]()
        for point in self.points:
            if shared := point.entities & anchors:
                found |= point.entities if len(shared) > 1 else point.entities - shared
        return frozenset(found)

    # ------------------------------------------------------------ operations (section 3.5)

    def insert(
        self, description: str, entities: Iterable[str], grounds: Sequence[NodeId] = (), shown: Sequence[NodeId] = ()
    ) -> MemoryPoint:
        """Add a point that rests on these grounds; without any, on something of what was `shown`.

        Names that differ in case and signs alone are one entity, which keeps its first spelling. Raises UsageError
        without a description or without an entity.
        """
        spelt = self._spell(entities)
        if not spelt:
            raise UsageError("a memory point needs an entity: name one or more")
        unnamed = () if grounds else tuple(dict.fromkeys(shown))
        return self._add(MemoryPoint("", description, spelt, grounds=tuple(grounds), unnamed=unnamed))

    def update(
        self,
        point: PointId,
        description: str,
        entities: Iterable[str] = (),
        grounds: Sequence[NodeId] = (),
        shown: Sequence[NodeId] = (),
    ) -> MemoryPoint:
        """Change what a point says, with further grounds; its entities stay unless others are given. See `insert`.

        Raises UsageError for an unknown point, or without a description.
        """
        known = self.find(point)
        changed = replace(
            known,
            description=_check_text(description),
            entities=self._spell(entities) or known.entities,
            grounds=tuple(dict.fromkeys((*grounds, *known.grounds))),
            unnamed=known.unnamed if grounds else tuple(dict.fromkeys((*known.unnamed, *shown))),
        )
        self.points = tuple(changed if each is known else each for each in self.points)
        return changed

    def merge(self, points: Sequence[PointId], description: str, *, keep: bool = False) -> MemoryPoint:
        """Join points into one of a higher order, with the entities of all (equation 8), and their grounds in turn.

        The parts leave, unless they are to `keep`. Raises UsageError for an unknown point, for fewer than two different
        ones, for points that were merged with each other before, or without a description.
        """
        parts = {part.id: part for part in map(self.find, points)}
        if len(parts) < 2:
            raise UsageError(f"{', '.join(points) or 'no point'} cannot be merged: name two or more different points")
        if any(parts.keys() == set(point.parts) for point in self.points):
            raise UsageError(f"{', '.join(parts)} were merged before: their point is there already")
        merged = MemoryPoint(
            "",
            description,
            frozenset[str]().union(*(part.entities for part in parts.values())),
            1 + max(part.order for part in parts.values()),
            tuple(parts),
            tuple(dict.fromkeys(take_turns([part.grounds for part in parts.values()]))),
            tuple(dict.fromkeys(node for part in parts.values() for node in part.unnamed)),
        )
        added = self._add(merged)
        if not keep:
            self.points = tuple(point for point in self.points if point.id not in parts)
        return added

    def _spell(self, names: Iterable[str]) -> frozenset[str]:
        spellings = {normalise_name(name): name for point in self.points for name in point.entities}
        keys = ((normalise_name(name), " ".join(name.split())) for name in names)
        return frozenset(spellings.setdefault(key, name) for key, name in keys if key)

    def _add(self, point: MemoryPoint) -> MemoryPoint:
        text = _check_text(point.description)
        self.issued += 1
        added = replace(point, id=f"{_LETTER}{self.issued}", description=text)
        self.points = (*self.points, added)
        return added

    # ------------------------------------------------------------ between questions

    def weigh(self, relevance: Mapping[PointId, float]) -> None:
        """Remember how near the points were to a question; a point without a number counts as 0."""
        self.relevance = (*self.relevance, dict(relevance))[-_LATELY:]

    def find_nodes(self) -> frozenset[NodeId]:
        """The passages on which points rest, or may rest."""
        return frozenset(node for point in self.points for node in (*point.grounds, *point.unnamed))

    def forget(self, nodes: Collection[NodeId]) -> tuple[str, ...]:
        """Remove the points that rest, or may rest, on these nodes. Returns their notes."""
        gone = frozenset(nodes)
        return self._keep([point for point in self.points if gone.isdisjoint((*point.grounds, *point.unnamed))])

    def shrink(self, most: int) -> tuple[str, ...]:
        """Keep the `most` points that mattered most to any of the last questions, ties by the newest.

        Returns the notes of the others.
        """

        def measure(point: MemoryPoint) -> tuple[float, int]:
            return max((known.get(point.id, 0.0) for known in self.relevance), default=0.0), point.number

        return self._keep(sorted(self.points, key=measure, reverse=True)[:most])

    def _keep(self, kept: Collection[MemoryPoint]) -> tuple[str, ...]:
        gone = tuple(point.description for point in self.points if point not in kept)
        self.points = tuple(point for point in self.points if point in kept)
        return gone

    # ------------------------------------------------------------ plain data

    def dump(self) -> dict[str, Any]:
        """The hypergraph as plain JSON data; equal hypergraphs give equal data."""
        return dict(write_plain(self))

    @classmethod
    def load(cls, data: object) -> Hypergraph:
        """The hypergraph of which `dump` made `data`. Raises StoreError if it does not hold together."""
        loaded = load_memory(cls, data)
        check_labels([point.id for point in loaded.points], _LETTER, loaded.issued)
        if not all(point.entities for point in loaded.points):
            raise make_damage_error("a point joins no entity")
        return loaded


def _check_text(description: str) -> str:
    text = description.strip()
    if not text:
        raise UsageError("a memory point needs a description: say what it holds")
    return text
