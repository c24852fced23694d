"""The schemata as a picture: clusters from the highest level down to their passages, or the links alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tomewise.memory.summary_picture import LEAVES, make_leaf
from tomewise.pictures import LIMIT, Group, Picture, PictureLink, PictureNode, Use, Uses, shorten_label
from tomewise.store.lookups import find_keys, read_edges, read_sources
from tomewise.store.records import PASSAGES

if TYPE_CHECKING:
    from tomewise.memory.schemata.network import Floats, Ints
    from tomewise.memory.schemata.schemata_names import SchemataNames
    from tomewise.store.contract import Readable
    from tomewise.types import Node, NodeId, Passage

_NO_SUMMARY = "not summarised yet"


def draw_schemata(store: Readable, names: SchemataNames, *, limit: int = LIMIT, uses: Uses | None = None) -> Picture:
    """At most `limit` schemata and passages, linked from a cluster to its members: a node may have several parents.

    What an answer used comes first, with all that is above it, then the highest level. `uses` says what it used.
    Without schemata the picture shows the most linked passages and their links.
    """
    nodes = store.nodes(names.layer)
    if not nodes:
        return _draw_links(store, names, limit, uses or Uses())
    children = read_sources(store, nodes, names.layer)
    leaves = store.passages(sorted({key for keys in children.values() for key in keys} - nodes.keys()))
    hierarchy = _Hierarchy(nodes, leaves, children, Counter(key for keys in children.values() for key in keys))
    drawn = _draw_hierarchy(hierarchy, names, limit, uses or Uses())
    passages = len(store.node_keys(PASSAGES))
    outside = passages - len(leaves)
    missing = f"In no cluster: {outside:,} of {passages:,} passages."
    return replace(drawn, missing=(*drawn.missing, missing)) if outside else drawn


@dataclass(frozen=True, slots=True)
class _Hierarchy:
    """All schemata and the passages below them by key; `parents` counts the clusters that a key is in."""

    nodes: Mapping[int, Node]
    leaves: Mapping[int, Passage]
    children: Mapping[int, list[int]]
    parents: Mapping[int, int]

    def find_id(self, key: int) -> NodeId:
        return self.nodes[key].id if key in self.nodes else self.leaves[key].id

    def list_keys(self) -> list[int]:
        """The highest level first, passages last."""
        return [*sorted(self.nodes, key=lambda key: -self.nodes[key].level), *self.leaves]

    def find_above(self, wanted: Collection[NodeId]) -> frozenset[int]:
        """The keys of these nodes and of all that were made from them."""
        found = {key for key in (*self.nodes, *self.leaves) if self.find_id(key) in wanted}
        for key in sorted(self.nodes, key=lambda key: self.nodes[key].level):  # a member has a lower level
            if not found.isdisjoint(self.children.get(key, ())):
                found.add(key)
        return frozenset(found)


def _draw_hierarchy(hierarchy: _Hierarchy, names: SchemataNames, limit: int, uses: Uses) -> Picture:
    used = hierarchy.find_above(uses.shown | uses.cited)
    cited = hierarchy.find_above(uses.cited)
    keys = hierarchy.list_keys()
    # A few of many passages say nothing: without room for all, those that the answer used stand under their clusters.
    drawn = keys if len(keys) <= limit else [key for key in keys if key in hierarchy.nodes or key in used]
    first = frozenset(sorted(drawn, key=lambda key: key not in used)[:limit])
    chosen = [key for key in drawn if key in first]
    lost = len(hierarchy.leaves) - sum(key in hierarchy.leaves for key in chosen)
    levels = sorted({hierarchy.nodes[key].level for key in chosen if key in hierarchy.nodes}, reverse=True)
    return Picture(
        kind="tree",
        title="Schemata",
        about=f"Layer {names.layer}",
        nodes=tuple(_make_node(hierarchy, key, _find_use(hierarchy.find_id(key), key, cited, uses)) for key in chosen),
        links=tuple(
            PictureLink(source=hierarchy.find_id(key), target=hierarchy.find_id(child))
            for key in chosen
            for child in hierarchy.children.get(key, ())
            if child in first
        ),
        groups=(*(Group(id=f"level {level}", label=f"Level {level}") for level in levels), LEAVES),
        shown=len(chosen),
        total=len(keys),
        missing=(f"{lost:,} passages are not drawn: choose a cluster to read those in it.",) if lost else (),
    )


def _find_use(id: NodeId, key: int, cited: Collection[int], uses: Uses) -> Use:
    return "cited" if key in cited else "shown" if id in uses.shown else ""


def _make_node(hierarchy: _Hierarchy, key: int, use: Use) -> PictureNode:
    parents = hierarchy.parents.get(key, 0)
    if key in hierarchy.leaves:
        return make_leaf(hierarchy.leaves[key], {"clusters it is in": parents}, use)
    node, children = hierarchy.nodes[key], hierarchy.children.get(key, [])
    return PictureNode(
        id=node.id,
        label=shorten_label(node.text or _NO_SUMMARY),
        group=f"level {node.level}",
        text=node.text,
        facts={"members": len(children), "clusters it is in": parents},
        level=node.level,
        use=use,
        passages=tuple(hierarchy.leaves[child].id for child in children if child in hierarchy.leaves),
    )


def _draw_links(store: Readable, names: SchemataNames, limit: int, uses: Uses) -> Picture:
    """The passages that an answer used, then the most linked ones, and the links between them."""
    table = read_edges(store, names.links(0)).rows.reshape(-1, 3)
    keys, counts = np.unique(table[:, :2].astype(np.int64), return_counts=True)
    used = np.array(list(find_keys(store, uses.shown | uses.cited).values()), np.int64)
    chosen = keys[np.lexsort((keys, -counts, ~np.isin(keys, used)))][:limit]
    degrees = dict(zip(keys.tolist(), counts.tolist(), strict=True))
    passages = store.passages(np.sort(chosen).tolist())
    links = _select_among(table, chosen)
    return Picture(
        kind="graph",
        title="Links between passages",
        about=f"Layer {names.layer}",
        nodes=tuple(
            make_leaf(passage, {"links": degrees[key]}, uses.find([passage.id])) for key, passage in passages.items()
        ),
        links=tuple(_make_links(links, passages)),
        groups=(LEAVES,),
        shown=len(chosen),
        total=len(keys),
    )


def _select_among(table: Floats, keys: Ints) -> Floats:
    """The links of which both ends are among these."""
    return table[np.isin(table[:, :2].astype(np.int64), keys).all(axis=1)]


def _make_links(table: Floats, passages: Mapping[int, Passage]) -> Iterable[PictureLink]:
    ends = table[:, :2].astype(np.int64).tolist()
    for (a, b), score in zip(ends, table[:, 2].tolist(), strict=True):
        yield PictureLink(source=passages[a].id, target=passages[b].id, label=f"{score:.2f}")
