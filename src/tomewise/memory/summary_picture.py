"""Layers of summaries as pictures: a tree from the top, or windows in their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
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
    return _draw_levels(store, layer, "tree", "Tree of summaries", limit, uses or Uses())


def draw_line(store: Readable, layer: str, *, limit: int = LIMIT, uses: Uses | None = None) -> Picture:
    """The nodes of a layer in their order, those that were made from others beside these: at most `limit` in all."""
    return _draw_levels(store, layer, "line", "Summaries in order", limit, uses or Uses())


def _draw_levels(store: Readable, layer: str, kind: Kind, title: str, limit: int, uses: Uses) -> Picture:
    nodes = store.nodes(layer)
    sources = read_sources(store, nodes, layer)
    leaves = store.passages(sorted({key for keys in sources.values() for key in keys} - nodes.keys()))
    names = {key: passage.id for key, passage in leaves.items()}
    is_tree = kind == "tree"
    order = sorted(nodes, key=lambda key: -nodes[key].level) if is_tree else list(nodes)
    chosen = {key: nodes[key] for key in order[:limit]}
    shown_leaves = dict(islice(leaves.items(), limit - len(chosen) if is_tree else 0))
    drawn = [_make_node(node, sources.get(key, ()), names, uses) for key, node in chosen.items()]
    drawn += [make_leaf(passage, {}, uses.find([passage.id])) for passage in shown_leaves.values()]
    levels = sorted({node.level for node in chosen.values()}, reverse=True)
    ids = {key: node.id for key, node in chosen.items()} | {key: names[key] for key in shown_leaves}
    return Picture(
        kind=kind,
        title=title,
        about=f"Layer {layer}",
        nodes=tuple(drawn),
        links=tuple(_list_links(chosen, sources, ids)),
        groups=(
            *(Group(id=f"level {level}", label=f"Level {level}") for level in levels),
            LEAVES,
        ),
        shown=len(drawn),
        total=len(nodes) + (len(leaves) if is_tree else 0),
    )


def make_leaf(passage: Passage, facts: Mapping[str, int], use: Use) -> PictureNode:
    """A passage in a picture, with these facts beside its place."""
    return PictureNode(
        id=passage.id,
        label=shorten_label(passage.text),
        group=PASSAGES,
        facts={"document": passage.title or passage.document, "part": passage.position + 1, **facts},
        use=use,
        passages=(passage.id,),
    )


def _make_node(node: Node, sources: Iterable[int], names: Mapping[int, NodeId], uses: Uses) -> PictureNode:
    passages = tuple(names[key] for key in sources if key in names)
    return PictureNode(
        id=node.id,
        label=shorten_label(node.text),
        group=f"level {node.level}",
        text=node.text,
        facts={"document": str(node.data["document"])} if "document" in node.data else {},
        level=node.level,
        use=uses.find((node.id, *passages)),
        passages=passages,
    )


def _list_links(
    chosen: Mapping[int, Node], sources: Mapping[int, list[int]], ids: Mapping[int, NodeId]
) -> Iterable[PictureLink]:
    return (
        PictureLink(source=node.id, target=ids[child])
        for key, node in chosen.items()
        for child in sources.get(key, ())
        if child in ids
    )
