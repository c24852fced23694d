"""The schemata as a picture: clusters from the highest level down to their passages, or the links alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from tomewise.memory.summary_picture import LEAVES, Levels, make_leaf
from tomewise.pictures import LIMIT, Picture, PictureLink, Use, Uses
from tomewise.store.lookups import find_keys, read_edges
from tomewise.store.records import PASSAGES

if TYPE_CHECKING:
    from tomewise.memory.schemata.schemata_names import SchemataNames
    from tomewise.store.contract import Readable
    from tomewise.types import NodeId


def draw_schemata(store: Readable, names: SchemataNames, *, limit: int = LIMIT, uses: Uses | None = None) -> Picture:
    """At most `limit` schemata and passages, linked from a cluster to its members: a node may have several parents.

    What an answer used comes first, with all that is above it, then the highest level. `uses` says what it used.
    Without schemata the picture shows the most linked passages and their links.
    """
    levels, uses = Levels.read(store, names.layer), uses or Uses()
    nodes, leaves = levels.nodes, levels.leaves
    if not nodes:
        return _draw_links(store, names, limit, uses)
    used, cited = _find_above(levels, uses.shown | uses.cited), _find_above(levels, uses.cited)
    keys = levels.list_keys()
    # A few of many passages say nothing: without room for all, those that the answer used stand under their clusters.
    drawn = keys if len(keys) <= limit else [key for key in keys if key in nodes or key in used]
    first = frozenset(sorted(drawn, key=lambda key: key not in used)[:limit])
    chosen = [key for key in drawn if key in first]
    parents = Counter(chain.from_iterable(levels.children.values()))

    def describe(key: int) -> tuple[dict[str, int], Use]:
        members = {"members": len(levels.children.get(key, ()))} if key in nodes else {}
        use: Use = "cited" if key in cited else "shown" if levels.find_id(key) in uses.shown else ""
        return {**members, "clusters it is in": parents[key]}, use

    missing: tuple[str, ...] = ()
    if lost := len(leaves.keys() - first):
        missing += (f"{lost:,} passages are not drawn: choose a cluster to read those in it.",)
    passages = len(store.node_keys(PASSAGES))
    if outside := passages - len(leaves):
        missing += (f"In no cluster: {outside:,} of {passages:,} passages.",)
    return levels.draw("tree", "Schemata", chosen, len(keys), describe, missing)


def _find_above(levels: Levels, wanted: Collection[NodeId]) -> frozenset[int]:
    """The keys of these nodes and of all that were made from them."""
    found = {key for key in (*levels.nodes, *levels.leaves) if levels.find_id(key) in wanted}
    for key in sorted(levels.nodes, key=lambda key: levels.nodes[key].level):  # a member has a lower level
        if not found.isdisjoint(levels.children.get(key, ())):
            found.add(key)
    return frozenset(found)


def _draw_links(store: Readable, names: SchemataNames, limit: int, uses: Uses) -> Picture:
    """The passages that an answer used, then the most linked ones, and the links between them."""
    table = read_edges(store, names.links(0)).rows.reshape(-1, 3)
    ends = table[:, :2].astype(np.int64)
    keys, counts = np.unique(ends, return_counts=True)
    used = np.array(list(find_keys(store, uses.shown | uses.cited).values()), np.int64)
    chosen = keys[np.lexsort((keys, -counts, ~np.isin(keys, used)))][:limit]
    degrees = dict(zip(keys.tolist(), counts.tolist(), strict=True))
    passages = store.passages(np.sort(chosen).tolist())
    inner = np.isin(ends, chosen).all(axis=1)
    return Picture(
        kind="graph",
        title="Links between passages",
        about=f"Layer {names.layer}",
        nodes=tuple(
            make_leaf(passage, {"links": degrees[key]}, uses.find([passage.id])) for key, passage in passages.items()
        ),
        links=tuple(
            PictureLink(source=passages[a].id, target=passages[b].id, label=f"{score:.2f}")
            for (a, b), score in zip(ends[inner].tolist(), table[inner, 2].tolist(), strict=True)
        ),
        groups=(LEAVES,),
        shown=len(chosen),
        total=len(keys),
    )
