"""Whether the memory suffices, which concerns are open, the search for these, and what a role reads of what is found.

HGMem, section 3.4 with equations 6 and 7. A search goes around the points that a concern names, or beyond the memory.
The role that changes points reads nothing twice.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from tomewise.errors import UsageError
from tomewise.language.roles import PLAN, ConcernOut, PlanIn, PlanOut, PointShown
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import drop_near_repeats, fit_to_budget, fold
from tomewise.loops.steps import Skipped
from tomewise.recall.entity_graph import Findings, FoundEntity, Investigation
from tomewise.text.sentences import split_sentences
from tomewise.types import Evidence, LanguageModel, NodeId, Retriever, Scope
from tomewise.working.hypergraph import Hypergraph, MemoryPoint, PointId

# Where to search: around points, beyond all of them, or in the whole memory.
Region: TypeAlias = Literal["local", "global", "everywhere"]
Regions: TypeAlias = Literal["either", "local", "global"]


@dataclass(frozen=True, slots=True)
class Concern:
    """An open matter with its subquery, and where to search."""

    text: str
    query: str
    region: Region = "global"
    points: tuple[PointId, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The concerns to search for next; none if the memory suffices."""

    sufficient: bool
    reasoning: str
    concerns: tuple[Concern, ...] = ()


@dataclass(frozen=True, eq=False)
class Planning:
    """Asks the model whether the memory suffices, and for concerns with their subqueries, in one reply.

    HGMem asks for the concerns first and then for the subqueries of all. Here each concern of the reply holds its own,
    so that they cannot differ in number, and a round takes a call less. Unless it `may_stop`, concerns are asked for
    although the memory suffices (figure 3).
    """

    model: LanguageModel
    limit: int = 3
    places: Regions = "either"
    may_stop: bool = True

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise UsageError(f"{self.limit} subqueries find nothing: give 1 or more")

    async def plan(
        self,
        question: str,
        memory: Hypergraph,
        shown: Sequence[MemoryPoint],
        searched: Sequence[str],
        skipped: Skipped,
    ) -> Plan:
        """Make a plan. What cannot be used of the reply is left out, and recorded in `skipped`.

        `shown` are the points that the model sees, `searched` the queries so far. Raises ModelError.
        """
        plan_input = PlanIn(
            question=question,
            points=as_prompt_points(memory, shown),
            searched=list(searched),
            limit=self.limit,
            place=self.places,
            may_stop=self.may_stop,
        )
        reply = await self.model.ask(PLAN, plan_input)
        if reply.sufficient and self.may_stop:
            return Plan(True, reply.reasoning)
        return Plan(False, reply.reasoning, tuple(self._read_concerns(reply, memory, searched, skipped)))

    def _read_concerns(
        self, reply: PlanOut, memory: Hypergraph, searched: Sequence[str], skipped: Skipped
    ) -> Iterator[Concern]:
        known = {fold(query) for query in searched}
        read = 0
        for concern in reply.concerns:
            query = _choose_query(concern, skipped)
            if not query:
                skipped.drop("a concern without words")
            elif fold(query) in known:
                skipped.drop(f"a subquery that was searched before: {query!r}")
            elif read == self.limit:
                skipped.drop(f"a concern beyond the limit of {self.limit}: {query!r}")
            else:
                known.add(fold(query))
                read += 1
                yield self._read_concern(concern, query, memory, skipped)

    def _read_concern(self, concern: ConcernOut, query: str, memory: Hypergraph, skipped: Skipped) -> Concern:
        points = tuple(dict.fromkeys(_find_points(concern.points, memory, skipped)))
        region: Region = concern.place if self.places == "either" else self.places
        if region == "local" and not points and self.places == "either":
            skipped.drop(f"a local search around no point, so it searches globally: {query!r}")
            region = "global"
        return Concern(concern.concern or query, query, region, points)


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


def _choose_query(concern: ConcernOut, skipped: Skipped) -> str:
    """The subquery of a concern; a concern without one is searched for in its own words."""
    queries = [query for query in concern.subqueries if query]
    for surplus in queries[1:]:
        skipped.drop(f"a second subquery of one concern: {surplus!r}")
    return queries[0] if queries else concern.concern


def _find_points(ids: Sequence[str], memory: Hypergraph, skipped: Skipped) -> Iterator[PointId]:
    for point in ids:
        try:
            yield memory.find(point).id
        except UsageError as error:
            skipped.drop(str(error))


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
class Seen:
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
