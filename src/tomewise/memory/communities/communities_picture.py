"""Communities as a picture: from the coarsest level down to their entities, in the colours of the coarsest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from tomewise.memory.communities.community_names import CommunityNames
from tomewise.memory.communities.community_state import StoredCommunities
from tomewise.pictures import LIMIT, UNUSED, Group, Note, Picture, PictureNode, Sketch, Uses, shorten_label
from tomewise.store.contract import Readable
from tomewise.store.lookups import find_keys, name_sources, read_edges
from tomewise.types import Node, NodeId

_COLOURS = 5  # communities of the coarsest level that have a group of their own
_OTHERS = Group("others", "Smaller communities")
_NAMES = 3  # members that name a community without a report
_MOST_PASSAGES = 12  # of one finding


def draw_communities(store: Readable, names: CommunityNames, *, limit: int = LIMIT, uses: Uses = UNUSED) -> Picture:
    """At most `limit` communities and entities: the coarsest level first, then entities, the most related first.

    A community is linked with its parts, one without parts with its entities. Its notes are the findings of its report.
    """
    stored, sketch = StoredCommunities.read(store, names), Sketch()
    nodes, members, homes = stored.nodes, stored.members, stored.find_homes()
    entities = store.nodes_at(sorted(homes))
    related = read_edges(store, names.related).rows.tolist()
    strengths = {int(a): weight for a, b, weight in related if a == b}

    def rank(entity: int) -> tuple[float, int]:
        return -strengths.get(entity, 0.0), entity

    def name(key: int) -> str:
        """The title of its report; without one, the names of its most related members."""
        if report := stored.reports.get(key):
            return str(report.data["title"])
        return ", ".join(entities[entity].text for entity in sorted(members.get(key, ()), key=rank)[:_NAMES]) or "empty"

    order = sorted(nodes, key=lambda key: (nodes[key].level, -len(members.get(key, ())), key))
    above = {**stored.parents, **homes}
    tops: dict[int, int] = {}  # the coarsest community around each; it comes before them
    for key in (*order, *homes):
        parent = above[key]
        tops[key] = key if parent is None else tops[parent]
    roots = [key for key in order if above[key] is None][:_COLOURS]
    groups = {key: Group(f"community {at}", shorten_label(name(key))) for at, key in enumerate(roots, start=1)}
    findings = chain.from_iterable(report.data["findings"] for report in stored.reports.values())
    facts = find_keys(store, {fact for finding in findings for fact in finding["facts"]})
    sources = name_sources(store, facts.values(), names.graph.facts, None)
    grounds = {fact: sources[key] for fact, key in facts.items()}  # the passages that state a fact, by ids
    deepest = max((node.level for node in nodes.values()), default=0)
    chosen = [*order, *sorted(homes, key=rank)][:limit]
    for key in chosen:
        group = groups.get(tops[key], _OTHERS).id
        if key in homes:
            node = entities[key]
            drawn = PictureNode(id=node.id, label=node.text, group=group, use=uses.find([node.id]))
        else:
            community, report = nodes[key], stored.reports.get(key)
            notes = _make_notes(report, grounds)
            passages = _join(note.passages for note in notes)
            values = {"members": len(members.get(key, ())), "level": community.level}
            drawn = PictureNode(
                id=community.id,
                label=name(key),
                group=group,
                text=report.text if report else "",
                facts=values | ({"importance": float(report.data["importance"])} if report else {}),
                level=1 + deepest - community.level,
                use=uses.find_cited(passages) or ("shown" if report and report.id in uses.shown else ""),
                passages=passages,
                notes=notes,
            )
        parent = above[key]
        sketch.add(drawn, "" if parent is None else nodes[parent].id)
    used = {node.group for node in sketch.nodes.values()}
    lost = len(homes) - sum(key in homes for key in chosen)
    return sketch.finish(
        "tree",
        "Communities",
        [group for group in (*groups.values(), _OTHERS) if group.id in used],
        total=len(order) + len(homes),
        about=f"Layer {names.layer}",
        missing=(f"{lost:,} entities are not drawn: choose a community to read its report.",) if lost else (),
    )


def _make_notes(report: Node | None, grounds: Mapping[NodeId, tuple[NodeId, ...]]) -> tuple[Note, ...]:
    """The findings of a report."""
    return tuple(
        Note(
            title=shorten_label(finding["headline"] or finding["explanation"]),
            text=finding["explanation"],
            passages=_join(grounds.get(fact, ()) for fact in finding["facts"])[:_MOST_PASSAGES],
        )
        for finding in (report.data["findings"] if report else ())
    )


def _join(parts: Iterable[Sequence[NodeId]]) -> tuple[NodeId, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(parts)))
