"""What a tome draws: its layers, with what an answer used of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from tomewise.errors import UnknownName, UsageError
from tomewise.memory.communities.communities_picture import draw_communities
from tomewise.memory.communities.community_names import COMMUNITIES, CommunityNames
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.memory.graph.graph_picture import draw_graph
from tomewise.memory.growing_tree.memtree_names import MEMTREE
from tomewise.memory.schemata.schemata_names import SCHEMATA, SchemataNames
from tomewise.memory.summary_picture import draw_schemata, draw_summaries
from tomewise.memory.tree.tree_layer import NAME as TREE
from tomewise.pictures import LIMIT, UNUSED, Picture, PicturePassage, read_uses
from tomewise.store.contract import Store
from tomewise.store.lookups import find_keys
from tomewise.store.records import BUILDS
from tomewise.types import Answer, Node, NodeId
from tomewise.types.place import describe_place

_TEXT = 4000  # characters of one text
_TEXTS = 2_000_000  # characters of all texts in one picture


def draw_layer(
    layer: str, store: Store, *, around: str = "", hops: int = 1, limit: int = LIMIT, answer: Answer | None = None
) -> Picture:
    """A layer, by the name that `tome show` prints; `answer` highlights what it used. Raises UnknownName."""
    if limit < 1 or limit > LIMIT:
        raise UsageError(f"{limit} nodes: a picture of a layer shows from 1 to {LIMIT}")
    built = store.notes(BUILDS)
    if layer not in built:
        raise UnknownName(f"{layer!r} is not built: this tome has {', '.join(built) or 'no layer yet'}")
    uses = read_uses(answer) if answer else UNUSED
    kind = layer.partition(":")[0]
    if around and kind != "graph":
        raise UsageError(f"{layer} has no entities to look around: choose a graph")
    if kind == "graph":
        drawn = draw_graph(store, GraphNames.read(layer), around=around, hops=hops, limit=limit, uses=uses)
    elif kind == COMMUNITIES:
        drawn = draw_communities(store, CommunityNames.read(layer), limit=limit, uses=uses)
    elif kind == SCHEMATA:
        drawn = draw_schemata(store, SchemataNames(layer), limit=limit, uses=uses)
    else:
        shape: Literal["tree", "line"] = "tree" if kind in (TREE, MEMTREE) else "line"
        drawn = draw_summaries(store, layer, shape, limit=limit, uses=uses)
    return fill_texts(drawn, store)


def fill_texts(picture: Picture, store: Store, longest: int = _TEXT, room: int = _TEXTS) -> Picture:
    """The picture with the texts of its passages as the tome has them, cut to `longest`, as far as there is `room`."""
    wanted = picture.list_texts()
    known = {passage.id: passage for passage in (*picture.passages, *read_texts(wanted, store))}
    kept = []
    for passage in (known[node] for node in wanted if node in known):
        text = passage.text if len(passage.text) <= longest else passage.text[: longest - 1] + "…"
        room -= len(text)
        if room < 0:
            break
        kept.append(replace(passage, text=text))
    lost = len(wanted) - len(kept)
    missing = (f"The texts of {lost:,} of {len(wanted):,} pieces of evidence are not here.",) if lost else ()
    texts = {passage.id: passage.text for passage in kept if passage.text}
    nodes = tuple(
        replace(node, label=texts[node.id]) if node.passages == (node.id,) and node.id in texts else node
        for node in picture.nodes
    )
    return replace(picture, nodes=nodes, passages=tuple(kept), missing=(*picture.missing, *missing))


def read_texts(wanted: Iterable[NodeId], store: Store) -> Iterator[PicturePassage]:
    """The texts of those of these nodes that the tome has; passages also with their place in a document."""
    keys = find_keys(store, wanted)
    passages = store.passages(keys.values())
    for passage in passages.values():
        yield PicturePassage(
            id=passage.id,
            text=passage.text,
            document=passage.document,
            title=passage.title,
            place=describe_place(passage.place, passage.position + 1),
            start=passage.start,
            end=passage.end,
        )
    yield from map(_describe_node, store.nodes_at(key for key in keys.values() if key not in passages).values())


def _describe_node(node: Node) -> PicturePassage:
    """What was made from passages, as a text. Of a relation this is its description, and its title names its ends."""
    description = node.data.get("description")
    if description and {"head", "tail"} <= node.data.keys():
        return PicturePassage(id=node.id, text=description, title=f"{node.data['head']}, {node.data['tail']}")
    return PicturePassage(id=node.id, text=node.text, title=node.layer)
