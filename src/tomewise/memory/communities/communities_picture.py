"""Communities as a picture: from the coarsest level down to their entities, in the colours of the coarsest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tomewise.memory.edge_rows import group_pairs
from tomewise.pictures import LIMIT, Group, Note, Picture, PictureLink, PictureNode, Use, Uses, shorten_label
from tomewise.store.lookups import find_keys, name_sources, read_edges, read_pairs
from tomewise.types import Node, NodeId

if TYPE_CHECKING:
    from tomewise.memory.communities.community_names import CommunityNames
    from tomewise.store.contract import Readable

_COLOURS = 5  # communities of the coarsest level that have a group of their own
_OTHERS = Group(id="others", label="Smaller communities")
_NAMES = 3  # members that name a community without a report
_MOST_PASSAGES = 12  # of one finding


def draw_communities(
    store: Readable, names: CommunityNames, *, limit: int = LIMIT, uses: Uses | None = None
) -> Picture:
    """At most `limit` communities and entities: the coarsest level first, then entities, the most related first.

    A community is linked with its parts, one without parts with its entities. Its notes are the findings of its report.
    """
    forest = _read_forest(store, names)
    uses = uses or Uses()
    roots = [key for key in forest.order if forest.parents.get(key) is None]
    groups = {key: f"community {place}" for place, key in enumerate(roots[:_COLOURS], start=1)}
    chosen = [*forest.order, *forest.leaves][:limit]
    drawn = frozenset(chosen)
    grounds = _read_grounds(store, names, forest)
    nodes = [_make_node(forest, key, groups.get(forest.find_root(key), _OTHERS.id), grounds, uses) for key in chosen]
    used = {node.group for node in nodes}
    listed = [Group(id=group, label=shorten_label(forest.find_label(key))) for key, group in groups.items()]
    lost = len(forest.leaves) - sum(key in forest.homes for key in chosen)
    return Picture(
        kind="tree",
        title="Communities",
        about=f"Layer {names.layer}",
        nodes=tuple(nodes),
        links=tuple(
            PictureLink(source=forest.find_id(above), target=forest.find_id(key))
            for key in chosen
            if (above := forest.find_above(key)) in drawn and above is not None
        ),
        groups=tuple(group for group in (*listed, _OTHERS) if group.id in used),
        shown=len(chosen),
        total=len(forest.order) + len(forest.leaves),
        missing=(f"{lost:,} entities are not drawn: choose a community to read its report.",) if lost else (),
    )


@dataclass(frozen=True, eq=False)
class _Forest:
    """Communities and their entities by key.

    `parents` are those of communities, `homes` the deepest community of each entity. `order` has the communities, the
    coarsest and largest first, `leaves` the entities, the most related first. `reports` are by the community.
    """

    communities: Mapping[int, Node]
    entities: Mapping[int, Node]
    members: Mapping[int, Collection[int]]
    parents: Mapping[int, int | None]
    homes: Mapping[int, int]
    reports: Mapping[int, Node]
    strengths: Mapping[int, float]

    @cached_property
    def order(self) -> list[int]:
        return sorted(
            self.communities, key=lambda key: (self.communities[key].level, -len(self.members.get(key, ())), key)
        )

    @cached_property
    def leaves(self) -> list[int]:
        return sorted(self.homes, key=lambda key: (-self.strengths.get(key, 0.0), key))

    @cached_property
    def deepest(self) -> int:
        return max((node.level for node in self.communities.values()), default=0)

    def find_above(self, key: int) -> int | None:
        return self.homes.get(key, self.parents.get(key))

    def find_root(self, key: int) -> int:
        while (above := self.find_above(key)) is not None:
            key = above
        return key

    def find_id(self, key: int) -> NodeId:
        return (self.communities.get(key) or self.entities[key]).id

    def find_label(self, key: int) -> str:
        """The title of its report; without one, the names of its most related members."""
        if report := self.reports.get(key):
            return str(report.data["title"])
        named = sorted(self.members.get(key, ()), key=lambda entity: (-self.strengths.get(entity, 0.0), entity))
        return ", ".join(self.entities[entity].text for entity in named[:_NAMES]) or "empty"


def _read_forest(store: Readable, names: CommunityNames) -> _Forest:
    communities, reports = store.nodes(names.layer), store.nodes(names.reports)
    about = {
        community: reports[report] for report, community in read_pairs(store, names.about).tolist() if report in reports
    }
    members = group_pairs(store, names.members)
    homes: dict[int, int] = {}
    for community in sorted(members, key=lambda key: communities[key].level):
        homes |= dict.fromkeys(members[community], community)
    related = read_edges(store, names.related).rows.reshape(-1, 3)
    own = related[related[:, 0] == related[:, 1]]
    numbers = {node.data["number"]: key for key, node in communities.items()}
    return _Forest(
        communities=communities,
        entities=store.nodes_at(sorted(homes)),
        members=members,
        parents={key: numbers.get(node.data["parent"]) for key, node in communities.items()},
        homes=homes,
        reports=about,
        strengths=dict(zip(own[:, 0].astype(np.int64).tolist(), own[:, 2].tolist(), strict=True)),
    )


def _read_grounds(store: Readable, names: CommunityNames, forest: _Forest) -> dict[NodeId, tuple[NodeId, ...]]:
    """The ids of the passages that state each fact which a finding names."""
    found = (finding for report in forest.reports.values() for finding in report.data["findings"])
    keys = find_keys(store, {fact for finding in found for fact in finding["facts"]})
    passages = name_sources(store, keys.values(), names.graph.facts, None)
    return {fact: passages[key] for fact, key in keys.items()}


def _make_node(
    forest: _Forest, key: int, group: str, grounds: Mapping[NodeId, tuple[NodeId, ...]], uses: Uses
) -> PictureNode:
    if key in forest.homes:
        entity = forest.entities[key]
        return PictureNode(id=entity.id, label=shorten_label(entity.text), group=group, use=uses.find([entity.id]))
    community, report = forest.communities[key], forest.reports.get(key)
    notes = tuple(
        Note(
            title=shorten_label(finding["headline"] or finding["explanation"]),
            text=finding["explanation"],
            passages=_join(grounds.get(fact, ()) for fact in finding["facts"])[:_MOST_PASSAGES],
        )
        for finding in (report.data["findings"] if report else ())
    )
    passages = _join(note.passages for note in notes)
    facts: dict[str, str | int | float] = {"members": len(forest.members.get(key, ())), "level": community.level}
    return PictureNode(
        id=community.id,
        label=shorten_label(forest.find_label(key)),
        group=group,
        text=report.text if report else "",
        facts=facts | ({"importance": float(report.data["importance"])} if report else {}),
        level=1 + forest.deepest - community.level,
        use=_find_use(report, passages, uses),
        passages=passages,
        notes=notes,
    )


def _find_use(report: Node | None, passages: Collection[NodeId], uses: Uses) -> Use:
    """A report that was shown, or one with a finding that rests on a passage that was quoted."""
    if not uses.cited.isdisjoint(passages):
        return "cited"
    return "shown" if report and report.id in uses.shown else ""


def _join(parts: Iterable[Sequence[NodeId]]) -> tuple[NodeId, ...]:
    return tuple(dict.fromkeys(each for part in parts for each in part))
