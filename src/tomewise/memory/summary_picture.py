"""Layers of summaries as pictures: a tree from the top, or windows in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from tomewise.pictures import LIMIT, Group, Kind, Picture, PictureLink, PictureNode, Use, Uses, shorten_label
from tomewise.store.lookups import read_sources
from tomewise.store.records import PASSAGES
from tomewise.types import Node, NodeId, Passage

if TYPE_CHECKING:
    from tomewise.store.contract import Readable

LEAVES = Group(id=PASSAGES, label="Passages", shape="diamond")


def draw_tree(store: Readable, layer: str, *, limit: int = LIMIT, uses: Uses | None = None) -> Picture:
    """The nodes of a layer from the highest level down, then its passages: at most `limit` in all."""
    levels = Levels.read(store, layer)
    return _draw_summaries(levels, "tree", "Tree of summaries", levels.list_keys(), limit, uses or Uses())


def draw_line(store: Readable, layer: str, *, limit: int = LIMIT, uses: Uses | None = None) -> Picture:
    """The nodes of a layer in their order, those that were made from others beside these: at most `limit` in all."""
    levels = Levels.read(store, layer)
    return _draw_summaries(levels, "line", "Summaries in order", list(levels.nodes), limit, uses or Uses())


@dataclass(frozen=True, slots=True)
class Levels:
    """The nodes of a layer, the passages below them, and what each node was made from, all by key."""

    layer: str
    nodes: Mapping[int, Node]
    leaves: Mapping[int, Passage]
    children: Mapping[int, list[int]]

    @classmethod
    def read(cls, store: Readable, layer: str) -> Levels:
        nodes = store.nodes(layer)
        children = read_sources(store, nodes, layer)
        leaves = store.passages(sorted(set(chain.from_iterable(children.values())) - nodes.keys()))
        return cls(layer, nodes, leaves, children)

    def list_keys(self) -> list[int]:
        """The highest level first, passages last."""
        return [*sorted(self.nodes, key=lambda key: -self.nodes[key].level), *self.leaves]

    def find_id(self, key: int) -> NodeId:
        return self.nodes[key].id if key in self.nodes else self.leaves[key].id

    def list_passages(self, key: int) -> tuple[NodeId, ...]:
        """The passages from which a node was made directly."""
        return tuple(self.leaves[child].id for child in self.children.get(key, ()) if child in self.leaves)

    def draw(
        self,
        kind: Kind,
        title: str,
        chosen: Sequence[int],
        total: int,
        describe: Callable[[int], tuple[Mapping[str, str | int], Use]],
        missing: tuple[str, ...] = (),
    ) -> Picture:
        """A picture of what is chosen, linked from each node to what it was made from.

        `describe` gives the facts of each, and what the answer did with it.
        """
        drawn = frozenset(chosen)
        levels = sorted({self.nodes[key].level for key in chosen if key in self.nodes}, reverse=True)
        return Picture(
            kind=kind,
            title=title,
            about=f"Layer {self.layer}",
            nodes=tuple(self._make_node(key, *describe(key)) for key in chosen),
            links=tuple(
                PictureLink(source=self.find_id(key), target=self.find_id(child))
                for key in chosen
                for child in self.children.get(key, ())
                if child in drawn
            ),
            groups=(*(Group(id=f"level {level}", label=f"Level {level}") for level in levels), LEAVES),
            shown=len(chosen),
            total=total,
            missing=missing,
        )

    def _make_node(self, key: int, facts: Mapping[str, str | int], use: Use) -> PictureNode:
        if key in self.leaves:
            return make_leaf(self.leaves[key], facts, use)
        node = self.nodes[key]
        return PictureNode(
            id=node.id,
            label=shorten_label(node.text),
            group=f"level {node.level}",
            text=node.text,
            facts=facts,
            level=node.level,
            use=use,
            passages=self.list_passages(key),
        )


def make_leaf(passage: Passage, facts: Mapping[str, str | int], use: Use) -> PictureNode:
    """A passage in a picture, with these facts beside its place."""
    return PictureNode(
        id=passage.id,
        label=shorten_label(passage.text),
        group=PASSAGES,
        facts={"document": passage.title or passage.document, "part": passage.position + 1, **facts},
        use=use,
        passages=(passage.id,),
    )


def _draw_summaries(levels: Levels, kind: Kind, title: str, keys: Sequence[int], limit: int, uses: Uses) -> Picture:
    def describe(key: int) -> tuple[Mapping[str, str], Use]:
        data = levels.nodes[key].data if key in levels.nodes else {}
        facts = {"document": str(data["document"])} if "document" in data else {}
        return facts, uses.find((levels.find_id(key), *levels.list_passages(key)))

    return levels.draw(kind, title, keys[:limit], len(keys), describe)
