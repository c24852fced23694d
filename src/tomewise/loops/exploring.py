"""Search for concerns, around the points that they name or beyond the memory, and what a role reads of what is found.

HGMem, equations 6 and 7. The role that changes points reads nothing twice.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tomewise.loops.desk import Desk
from tomewise.loops.evidence import drop_near_repeats, fit_to_budget, fold
from tomewise.loops.planning import Concern, Region
from tomewise.recall.entity_graph import Findings, FoundEntity, Investigation
from tomewise.text.sentences import split_sentences
from tomewise.types import Evidence, NodeId, Retriever, Scope
from tomewise.working.hypergraph import Hypergraph


@dataclass(frozen=True, slots=True)
class Search:
    """A concern, where it was searched for, and what was found there.

    A local search around points of which the graph knows no entity is a global one. `entities` is how many entities a
    local search was narrowed to, or how many a global one left out.
    """

    concern: Concern
    region: Region
    entities: int
    found: Findings


@dataclass(frozen=True, eq=False)
class Exploring:
    """Searches a part of the memory for each concern, and all of it for a few other passages.

    `limit` is how many passages each of the two gives. `hops` is how far from its vertices the neighbourhood of a point
    reaches in the graph: 1 as in the paper, 2 as in the released code.
    """

    investigation: Investigation
    recall: Retriever
    limit: int = 5
    hops: int = 1

    async def search(
        self, concern: Concern, memory: Hypergraph, within: Scope | None, read: Collection[NodeId] = ()
    ) -> Search:
        """Search for one concern. Passages that were `read` before give their places to the next ones."""
        around = await self._find_around(concern, memory) if concern.region == "local" else frozenset()
        region: Region = "global" if concern.region == "local" and not around else concern.region
        beyond = find_in_graph(memory, [point.id for point in memory.points]) if region == "global" else frozenset()
        scope = narrow_scope(within, around or None, beyond)
        found, anywhere = await asyncio.gather(
            self.investigation.investigate(concern.query, self.limit + len(read), scope),
            self.recall.retrieve(concern.query, 2 * self.limit + len(read), within=within),
        )
        near = [piece for piece in found.passages if piece.id not in read][: self.limit]
        known = {*read, *(piece.id for piece in near)}
        others = [piece for piece in anywhere if piece.id not in known][: self.limit]
        found = replace(found, passages=(*near, *others))
        return Search(concern, region, len(around or beyond), found)

    async def _find_around(self, concern: Concern, memory: Hypergraph) -> frozenset[NodeId]:
        """The neighbours of the points' vertices, in the memory and in the graph (equation 6).

        A concern that names no point is about all of them. Vertices that the graph does not know have neighbours in
        the memory.
        """
        points = concern.points or [point.id for point in memory.points]
        anchors = {vertex for point in map(memory.find, points) for vertex in point.vertices}
        near = {vertex for vertex in memory.find_neighbours(anchors) if memory.vertices[vertex].in_graph}
        known = find_in_graph(memory, points)
        return frozenset(near) | await self.investigation.find_neighbours(known, self.hops)


@dataclass(frozen=True, slots=True)
class Material:
    """What a round found, as the model sees it. `evidence` are relations and passages."""

    queries: Sequence[str]
    entities: Sequence[FoundEntity]
    evidence: Sequence[Evidence]


@dataclass(slots=True)
class Reading:
    """What the role has read for one question: evidence, and sentences about entities."""

    desk: Desk
    nodes: set[NodeId] = field(default_factory=set)
    sentences: set[str] = field(default_factory=set)

    def select(self, searches: Sequence[Search], *, relations: int, passages: int, description: int) -> Material:
        """What is new and fits; it counts as read from now on. Relations that quote a passage are left out.

        The room is in tokens: of the relations and of the passages of each search, and of what each entity is.
        """
        read = self.desk.put_in_order(self._fit([search.found.passages for search in searches], passages))
        found_relations = self._fit([search.found.relations for search in searches], relations)
        kept = {piece.id for piece in drop_near_repeats([*read, *found_relations])}
        new_relations = [piece for piece in found_relations if piece.id in kept]
        texts = [piece.text for piece in (*new_relations, *read)]
        found = {entity.id: entity for search in searches for entity in search.found.entities}
        spelt = "\n".join([*(entity.name for entity in found.values() if not entity.name.islower()), *texts])
        entities = [
            replace(entity, name=_spell(entity.name, spelt))
            for entity in self._describe(found.values(), texts, description)
        ]
        spelt_relations = [replace(piece, title=_spell(piece.title, spelt)) for piece in new_relations]
        return Material([search.concern.query for search in searches], entities, [*spelt_relations, *read])

    def _fit(self, found: Iterable[Sequence[Evidence]], room: int) -> list[Evidence]:
        """Of each list the new pieces that have room."""
        fitting: list[Evidence] = []
        for pieces in found:
            new = [piece for piece in pieces if piece.id not in self.nodes]
            chosen = fit_to_budget(new, room, self.desk.count)
            self.nodes.update(piece.id for piece in chosen)
            fitting += chosen
        return fitting

    def _describe(self, entities: Iterable[FoundEntity], shown: Sequence[str], room: int) -> Iterator[FoundEntity]:
        """The entities with sentences that are new, and those of which the graph has the name alone."""
        folded = [fold(text) for text in shown]
        for entity in entities:
            sentences = []
            left = room
            for sentence in split_sentences(entity.text):
                wording = fold(sentence.text)
                if wording in self.sentences or any(wording in text for text in folded):
                    continue
                left -= self.desk.count([sentence.text])[0]
                if left < 0:
                    break
                self.sentences.add(wording)
                sentences.append(" ".join(sentence.text.split()))
            if sentences or (not entity.text and entity.id not in self.nodes):
                yield replace(entity, text=" ".join(sentences))
            self.nodes.add(entity.id)


def find_in_graph(memory: Hypergraph, points: Collection[str]) -> frozenset[NodeId]:
    """The vertices of these points that are entities of the graph."""
    vertices = {vertex for point in map(memory.find, points) for vertex in point.vertices}
    return frozenset(vertex for vertex in vertices if memory.vertices[vertex].in_graph)


def narrow_scope(within: Scope | None, around: frozenset[NodeId] | None, beyond: frozenset[NodeId]) -> Scope:
    """The scope of a question, narrowed to the entities `around` and without the entities that it goes `beyond`.

    Both together leave no more than either: where the question names entities too, only those of both are searched.
    """
    within = within or Scope()
    both = around if within.entities is None else within.entities if around is None else within.entities & around
    return replace(within, entities=both, without_entities=within.without_entities | beyond)


def _spell(names: str, texts: str) -> str:
    """Names in small letters, with commas between them, as the texts write them; others stay as they are."""
    return ", ".join(_find_spelling(name, texts) if name.islower() else name for name in names.split(", "))


def _find_spelling(name: str, texts: str) -> str:
    words = r"\W{1,3}".join(map(re.escape, name.split()))
    found = re.search(rf"\b{words}\b", texts, re.IGNORECASE)
    return " ".join(found[0].split()) if found else name
