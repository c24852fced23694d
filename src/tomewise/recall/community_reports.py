"""The reports about the communities of a graph: those of a level, those below one, and those nearest to a text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tomewise.memory.communities.community_names import CommunityNames
from tomewise.memory.communities.community_state import StoredCommunities
from tomewise.memory.edge_rows import group_pairs
from tomewise.memory.grounds import find_grounds
from tomewise.recall.array_types import sort_keys
from tomewise.recall.ranking import name_in_order, rank_nodes, rank_passages
from tomewise.store.contract import Readable
from tomewise.store.lookups import read_sources, select_within
from tomewise.store.records import PASSAGES
from tomewise.types import Embedder, Evidence, Node, PassageId, Scope


@dataclass(frozen=True, slots=True)
class ReportedCommunity:
    """A community with its report; `key` is that of the report.

    `members` are the keys of its entities, `passages` counts those in which one of them is seen. `above` are the keys
    of the reports about the communities that it is a part of, the smallest first.
    """

    key: int
    level: int
    above: tuple[int, ...]
    members: frozenset[int]
    passages: int
    report: Node

    @property
    def title(self) -> str:
        return str(self.report.data["title"])

    @property
    def importance(self) -> float:
        return float(self.report.data["importance"])

    @property
    def short_text(self) -> str:
        """Its title and its summary."""
        return f"{self.title}\n{self.report.data['summary']}"

    def with_text(self, text: str) -> ReportedCommunity:
        """The same with another text for its report."""
        return replace(self, report=replace(self.report, text=text))

    def as_evidence(self, sources: tuple[PassageId, ...] = ()) -> Evidence:
        """The report as evidence."""
        report = self.report
        return Evidence(id=report.id, layer=report.layer, kind="summary", text=report.text, score=0.0, sources=sources)


@dataclass(frozen=True)
class ReportShelf:
    """The reports that a question may see, by their keys."""

    communities: Mapping[int, ReportedCommunity]

    def find_homes(self, level: int) -> dict[int, int]:
        """For each entity the report about the deepest of its communities down to a level, by keys."""
        homes: dict[int, int] = {}
        for community in sorted(self.communities.values(), key=lambda each: each.level):
            if community.level <= level:
                homes.update(dict.fromkeys(community.members, community.key))
        return homes

    def list_level(self, level: int) -> list[ReportedCommunity]:
        """All reports that are the deepest down to a level for an entity, by id."""
        return self._sort(set(self.find_homes(level).values()))

    def list_at(self, level: int) -> list[ReportedCommunity]:
        """The reports of one level, by id."""
        return self._sort(key for key, each in self.communities.items() if each.level == level)

    def select_down_to(self, level: int) -> ReportShelf:
        """The reports of this level and of coarser ones."""
        return ReportShelf({key: each for key, each in self.communities.items() if each.level <= level})

    def find_parent(self, key: int) -> int | None:
        """The report about the smallest community around that of a report, by keys."""
        return next((above for above in self.communities[key].above if above in self.communities), None)

    def list_children(self, key: int | None) -> list[ReportedCommunity]:
        """The reports about the parts of a community, by id; for None those that are not below another one."""
        return self._sort(each.key for each in self._children[key])

    def sort_by_weight(self, chosen: Iterable[ReportedCommunity]) -> list[ReportedCommunity]:
        """Those first whose members are seen in most passages, then the most important."""
        return sorted(chosen, key=lambda each: (-each.passages, -each.importance, each.report.id))

    def _sort(self, keys: Iterable[int]) -> list[ReportedCommunity]:
        return sorted((self.communities[key] for key in keys), key=lambda each: each.report.id)

    @cached_property
    def _children(self) -> Mapping[int | None, list[ReportedCommunity]]:
        children: defaultdict[int | None, list[ReportedCommunity]] = defaultdict(list)
        for each in self.communities.values():
            children[self.find_parent(each.key)].append(each)
        return children


@dataclass(eq=False)
class CommunityReports:
    """Reads reports. One is within a scope if all that it rests on is; they are cached until they change."""

    store: Readable
    embedder: Embedder
    names: CommunityNames
    _cache: tuple[Mapping[str, int], ReportShelf] | None = field(default=None, init=False)

    def load(self, within: Scope | None) -> ReportShelf:
        """The reports within a scope."""
        names = self.names
        edges = (names.about, names.members, f"seen-in:{names.graph.entities}")
        versions = self.store.versions((f"vectors/{names.reports}", *(f"edges/{space}" for space in edges)))
        if self._cache is None or self._cache[0] != versions:
            self._cache = (versions, self._read())
        shelf = self._cache[1]
        allowed = self.store.keys_within(within, names.reports)
        if allowed is None:
            return shelf
        kept = set(allowed.tolist())
        return ReportShelf({key: each for key, each in shelf.communities.items() if key in kept})

    def find_nearest(self, text: str, limit: int, shelf: ReportShelf) -> list[ReportedCommunity]:
        """The reports of a shelf nearest to a text, best first, ties by id."""
        among = sort_keys(shelf.communities)
        found = self.store.nearest(self.names.reports, self.embedder.embed([text])[0], limit, among=among)
        nearest, _ = rank_nodes(self.store, found.keys, found.cosines, limit)
        return [shelf.communities[key] for key in nearest]

    def find_passages(self, reports: Collection[int]) -> dict[int, tuple[int, ...]]:
        """For each of these reports the keys of the passages that it rests on, ascending."""
        graph = self.names.graph
        leaves = find_grounds(self.store, list(reports), self.names.reports)
        stating = {leaf for own in leaves.values() for leaf in own}
        facts, mentions = (read_sources(self.store, stating, layer) for layer in (graph.facts, graph.mentions))
        return {
            report: tuple(sorted({key for leaf in own for key in (*facts[leaf], *mentions[leaf])}))
            for report, own in leaves.items()
        }

    def rank_passages(self, query: str, reports: Collection[int], within: Scope | None, limit: int) -> list[Evidence]:
        """The passages under these reports that are nearest to a query, best first, ties by id."""
        keys = {key for keys in self.find_passages(reports).values() for key in keys}
        among = sort_keys(select_within(self.store, keys, within))
        found = self.store.nearest(PASSAGES, self.embedder.embed([query])[0], limit, among=among)
        return rank_passages(self.store, found.keys, found.cosines, limit)

    def make_evidence(self, chosen: Sequence[ReportedCommunity], within: Scope | None) -> list[Evidence]:
        """Reports as evidence, in their order, with the passages within a scope that they rest on."""
        below = self.find_passages([each.key for each in chosen])
        keys = {key for keys in below.values() for key in keys}
        passages = self.store.passages(select_within(self.store, keys, within))
        return [each.as_evidence(name_in_order(below[each.key], passages)) for each in chosen]

    def _read(self) -> ReportShelf:
        stored = StoredCommunities.read(self.store, self.names)
        seen = group_pairs(self.store, f"seen-in:{self.names.graph.entities}")

        def list_above(community: int) -> tuple[int, ...]:
            parent = stored.parents[community]
            if parent is None:
                return ()
            return (*([stored.about[parent]] if parent in stored.about else []), *list_above(parent))

        return ReportShelf(
            {
                report: ReportedCommunity(
                    key=report,
                    level=stored.nodes[community].level,
                    above=list_above(community),
                    members=frozenset(stored.members[community]),
                    passages=len(set[int]().union(*(seen[entity] for entity in stored.members[community]))),
                    report=stored.reports[community],
                )
                for community, report in stored.about.items()
            }
        )
