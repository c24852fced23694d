"""Layers of summaries as pictures: a tree from the top, windows in their order, or schemata with their links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias

from tomewise.memory.schemata.schemata_names import SchemataNames
from tomewise.pictures import LIMIT, UNUSED, Group, Kind, Picture, PictureNode, Sketch, Use, Uses
from tomewise.store.contract import Readable
from tomewise.store.lookups import find_keys, read_edges, read_sources
from tomewise.store.records import PASSAGES
from tomewise.types import Node, NodeId, Passage

Facts: TypeAlias = Mapping[str, str | int]
_LEAVES = Group(PASSAGES, "Passages", "diamond")


def draw_summaries(
    store: Readable, layer: str, kind: Literal["tree", "line"], *, limit: int = LIMIT, uses: Uses = UNUSED
) -> Picture:
    """At most `limit` nodes of a layer.

    In a tree they come from the highest level down, then its passages; in a line in their order, those that were made
    from others beside these.
    """
    levels = _Levels.read(store, layer)
    keys = levels.list_keys() if kind == "tree" else list(levels.nodes)

    def describe(key: int) -> tuple[Facts, Use]:
        data = levels.nodes[key].data if key in levels.nodes else {}
        facts = {"document": str(data["document"])} if "document" in data else {}
        return facts, uses.find((levels.ids[key], *levels.list_passages(key)))

    title = "Tree of summaries" if kind == "tree" else "Summaries in order"
    return levels.draw(kind, title, keys[:limit], len(keys), describe)


def draw_schemata(store: Readable, names: SchemataNames, *, limit: int = LIMIT, uses: Uses = UNUSED) -> Picture:
    """At most `limit` schemata and passages, linked from a cluster to its members: a node may have several parents.

    What an answer used comes first, with all that is above it, then the highest level. `uses` says what it used.
    Without schemata the picture shows the most linked passages and their links.
    """
    levels = _Levels.read(store, names.layer)
    nodes, leaves = levels.nodes, levels.leaves
    if not nodes:
        return _draw_links(store, names, limit, uses)
    used, cited = levels.find_above(uses.shown | uses.cited), levels.find_above(uses.cited)
    keys = levels.list_keys()
    # A few of many passages say nothing: without room for all, those that the answer used stand under their clusters.
    drawn = keys if len(keys) <= limit else [key for key in keys if key in nodes or key in used]
    first = frozenset(sorted(drawn, key=lambda key: key not in used)[:limit])
    parents = Counter(chain.from_iterable(levels.children.values()))

    def describe(key: int) -> tuple[Facts, Use]:
        members = {"members": len(levels.children.get(key, ()))} if key in nodes else {}
        use: Use = "cited" if key in cited else "shown" if levels.ids[key] in uses.shown else ""
        return {**members, "clusters it is in": parents[key]}, use

    missing: tuple[str, ...] = ()
    if lost := len(leaves.keys() - first):
        missing += (f"{lost:,} passages are not drawn: choose a cluster to read those in it.",)
    passages = len(store.node_keys(PASSAGES))
    if outside := passages - len(leaves):
        missing += (f"In no cluster: {outside:,} of {passages:,} passages.",)
    chosen = [key for key in drawn if key in first]
    return levels.draw("tree", "Schemata", chosen, len(keys), describe, missing)


@dataclass(frozen=True)
class _Levels:
    """The nodes of a layer, the passages below them, the ids of both, and what each node was made from, all by key."""

    layer: str
    nodes: Mapping[int, Node]
    leaves: Mapping[int, Passage]
    ids: Mapping[int, NodeId]
    children: Mapping[int, list[int]]

    @classmethod
    def read(cls, store: Readable, layer: str) -> _Levels:
        nodes = store.nodes(layer)
        children = read_sources(store, nodes, layer)
        leaves = store.passages(sorted(set(chain.from_iterable(children.values())) - nodes.keys()))
        ids = {key: each.id for found in (nodes, leaves) for key, each in found.items()}
        return cls(layer, nodes, leaves, ids, children)

    def list_keys(self) -> list[int]:
        """The highest level first, passages last."""
        return [*sorted(self.nodes, key=lambda key: -self.nodes[key].level), *self.leaves]

    def list_passages(self, key: int) -> tuple[NodeId, ...]:
        """The passages from which a node was made directly."""
        return tuple(self.leaves[child].id for child in self.children.get(key, ()) if child in self.leaves)

    def find_above(self, wanted: Collection[NodeId]) -> frozenset[int]:
        """The keys of these nodes and of all that were made from them."""
        found = {key for key, node in self.ids.items() if node in wanted}
        for key in sorted(self.nodes, key=lambda key: self.nodes[key].level):  # a member has a lower level
            if not found.isdisjoint(self.children.get(key, ())):
                found.add(key)
        return frozenset(found)

    def draw(
        self,
        kind: Kind,
        title: str,
        chosen: Sequence[int],
        total: int,
        describe: Callable[[int], tuple[Facts, Use]],
        missing: tuple[str, ...] = (),
    ) -> Picture:
        """A picture of what is chosen, linked from each node to what it was made from.

        `describe` gives the facts of each, and what the answer did with it.
        """
        sketch = Sketch()
        for key in chosen:
            facts, use = describe(key)
            sketch.add(_make_leaf(self.leaves[key], facts, use) if key in self.leaves else self._make(key, facts, use))
            for child in self.children.get(key, ()):
                sketch.link(self.ids[key], self.ids.get(child, ""))
        levels = sorted({self.nodes[key].level for key in chosen if key in self.nodes}, reverse=True)
        groups = (*(Group(f"level {level}", f"Level {level}") for level in levels), _LEAVES)
        return sketch.finish(kind, title, groups, total=total, about=f"Layer {self.layer}", missing=missing)

    def _make(self, key: int, facts: Facts, use: Use) -> PictureNode:
        node = self.nodes[key]
        return PictureNode(
            id=node.id,
            label=node.text,
            group=f"level {node.level}",
            text=node.text,
            facts=facts,
            level=node.level,
            use=use,
            passages=self.list_passages(key),
        )


def _make_leaf(passage: Passage, facts: Facts, use: Use) -> PictureNode:
    """A passage in a picture, with these facts beside its place."""
    return PictureNode(
        id=passage.id,
        label=passage.text,
        group=PASSAGES,
        facts={"document": passage.title or passage.document, "part": passage.position + 1, **facts},
        use=use,
        passages=(passage.id,),
    )


def _draw_links(store: Readable, names: SchemataNames, limit: int, uses: Uses) -> Picture:
    """The passages that an answer used, then the most linked ones, and the links between them."""
    links = [(int(a), int(b), score) for a, b, score in read_edges(store, names.links(0)).rows.tolist()]
    degrees = Counter(chain.from_iterable((a, b) for a, b, _ in links))
    used = set(find_keys(store, uses.shown | uses.cited).values())
    chosen = sorted(degrees, key=lambda key: (key not in used, -degrees[key], key))[:limit]
    passages, sketch = store.passages(sorted(chosen)), Sketch()
    for key, passage in passages.items():
        sketch.add(_make_leaf(passage, {"links": degrees[key]}, uses.find([passage.id])))
    for a, b, score in links:
        if a in passages and b in passages:
            sketch.link(passages[a].id, passages[b].id, f"{score:.2f}")
    about = f"Layer {names.layer}"
    return sketch.finish("graph", "Links between passages", [_LEAVES], total=len(degrees), about=about)
