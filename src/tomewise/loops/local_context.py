"""An answer from what is near to a question in a graph: reports, entities, relations, passages (GraphRAG, local)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

from tomewise.calls import CallCount
from tomewise.events import make_event
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import measure_pieces
from tomewise.recall.community_reports import CommunityReports, ReportedCommunity, ReportShelf
from tomewise.recall.local_relations import LocalGraph, LocalRelations
from tomewise.types import Answer, Event, Evidence, Question, Scope


@dataclass(frozen=True, slots=True)
class LocalShares:
    """The parts of a budget that reports have, and entities with their relations; what they leave is for passages.

    Where both are more than the budget, reports come first.
    """

    reports: float
    relations: float


@dataclass(frozen=True, slots=True)
class LocalContext:
    """What was chosen for a query, in the order in which it is shown, and how many pieces were found."""

    evidence: Sequence[Evidence]
    found: int


@dataclass(frozen=True, eq=False)
class LocalSearch:
    """Fills a budget with what is near to a query (`recall.local_relations`), and with reports down to a `level`.

    Reports stand by how many of the found entities are in their community, then by importance; one that does not fit is
    shown by its summary, or not at all. Of the relations, those of the longest beginning of the entities are shown that
    fit beside the entities.
    """

    desk: Desk
    graph: LocalGraph
    reports: CommunityReports
    level: int

    def select(self, query: str, within: Scope | None, budget: int, shares: LocalShares) -> LocalContext:
        """What fits into so many tokens: reports, entities, relations, passages."""
        found = self.graph.find(query, within)
        reports = self._fit_reports(found, within, round(budget * shares.reports)) if shares.reports else []
        left = budget - self._measure(reports)
        described = self._fit_relations(found, min(left, round(budget * shares.relations))) if shares.relations else []
        chosen = [*reports, *described]
        passages = self.desk.layout.pack(found.passages, budget - self._measure(chosen))
        relations = found.relations[-1] if found.relations else ()
        whole = len(reports) + len(found.entities) + len(relations) + len(found.passages)
        return LocalContext([*chosen, *passages], max(whole, len(chosen) + len(passages)))

    def _fit_reports(self, found: LocalRelations, within: Scope | None, room: int) -> list[Evidence]:
        shelf = self.reports.load(within)
        ranked = rank_reports(found.keys, shelf, self.level)
        chosen = []
        for community, evidence in zip(ranked, self.reports.make_evidence(ranked, within), strict=True):
            for piece in (evidence, replace(evidence, text=community.short_text)):
                if (size := self._measure([piece])) <= room:
                    chosen.append(piece)
                    room -= size
                    break
        return chosen

    def _fit_relations(self, found: LocalRelations, room: int) -> list[Evidence]:
        """The first entities that fit, and the relations of the longest beginning of the entities that fit beside."""
        entities: list[Evidence] = []
        for piece in found.entities:
            if self._measure([*entities, piece]) > room:
                break
            entities.append(piece)
        room -= self._measure(entities)
        fitting: Sequence[Evidence] = ()
        for relations in found.relations:
            if self._measure(relations) > room:
                break
            fitting = relations
        return [*entities, *fitting]

    def _measure(self, pieces: Sequence[Evidence]) -> int:
        return sum(measure_pieces(pieces, self.desk.count))


def rank_reports(entities: Sequence[int], shelf: ReportShelf, level: int) -> list[ReportedCommunity]:
    """The reports about the communities of these entities: those with most of them first, then the most important."""
    homes = shelf.find_homes(level)
    counts = Counter(homes[entity] for entity in entities if entity in homes)
    return sorted(
        (shelf.communities[key] for key in counts),
        key=lambda each: (-counts[each.key], -each.importance, each.report.id),
    )


@dataclass(frozen=True, eq=False)
class LocalAnswer:
    """One search near to the question, then the answer. `budget` is in tokens."""

    calls = CallCount("1", 1)

    desk: Desk
    search: LocalSearch
    shares: LocalShares
    budget: int

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """Two steps: `retrieved`, then the answer."""
        budget = min(self.budget, await asyncio.to_thread(self.desk.measure_answer_room, question))
        context = await asyncio.to_thread(self.search.select, question.text, question.within, budget, self.shares)
        prepared = await self.desk.prepare(question, context.evidence, budget=None)
        cut = context.found - len(prepared.evidence)
        yield make_event("retrieved", evidence=prepared.evidence, found=context.found, cut=cut)
        yield await self.desk.answer(question, prepared)
