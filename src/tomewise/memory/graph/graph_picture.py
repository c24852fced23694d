"""The graph layer as a picture: the most telling entities, or those around one, and the facts between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from tomewise.errors import UnknownName
from tomewise.memory.graph.entity_kinds import find_kinds
from tomewise.memory.graph.entity_names import normalise_name
from tomewise.memory.graph.fact_ends import FactEnds, read_fact_ends
from tomewise.pictures import LIMIT, Group, Note, Picture, PictureLink, PictureNode, Uses, shorten_label
from tomewise.store.lookups import find_keys, name_sources, read_sources
from tomewise.store.nearest import find_known_indices
from tomewise.types import Node

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.memory.graph.graph_names import GraphNames
    from tomewise.store.contract import Readable

    Keys = NDArray[np.int64]

_ENTITY, _CENTRE = "entity", "centre"  # groups
_LABELS = {_ENTITY: "Other entities", _CENTRE: "In the middle"}
_MOST_KINDS = 8  # that have groups of their own
_CANDIDATES = 4  # well connected entities of which one may turn out to be telling
_MOST_FACTS = 40  # notes of one entity


def draw_graph(
    store: Readable,
    names: GraphNames,
    *,
    around: str = "",
    hops: int = 1,
    limit: int = LIMIT,
    uses: Uses | None = None,
) -> Picture:
    """At most `limit` entities and the facts between them: the most telling, or those within `hops` of one.

    Those are the most telling that have many facts and are seen in many passages. Around one, the nearer and then the
    more connected come first. Each is in the group of its kind. `uses` says what an answer used. Raises UnknownName for
    an entity that does not exist.
    """
    facts = read_fact_ends(store, names)
    entities = np.array(store.node_keys(names.entities), np.int64)
    centre = _find_centre(store, names, around) if around else None
    near = entities if centre is None else _reach(facts, centre, hops)
    degrees = _count_facts(facts, near)
    distance = np.zeros(len(near)) if centre is None else (near != centre).astype(float)
    chosen = near[np.lexsort((near, -degrees, distance))][: limit if around else _CANDIDATES * limit]
    if not around:
        chosen = _choose_telling(chosen, degrees, near, store, names)[:limit]
    inner = facts.select_among(chosen)
    nodes = store.nodes_at(chosen.tolist())
    texts = store.nodes_at(inner.keys.tolist())
    groups = _choose_groups(find_kinds({key: node.text for key, node in nodes.items()}, names, store), centre)
    return Picture(
        kind="graph",
        title="Entities and facts",
        about=f"Around {around}" if around else f"{names.layer}: the most telling entities",
        nodes=_make_nodes(store, names, nodes, inner, texts, groups, uses or Uses()),
        links=tuple(
            PictureLink(source=nodes[head].id, target=nodes[tail].id, label=str(texts[fact].data.get("relation", "")))
            for fact, head, tail in inner.list_rows()
        ),
        groups=_list_groups(groups.values()),
        shown=len(chosen),
        total=len(entities),
    )


def _find_centre(store: Readable, names: GraphNames, name: str) -> int:
    entity = names.entity(normalise_name(name))
    if (key := find_keys(store, [entity]).get(entity)) is None:
        raise UnknownName(f"{name!r} is not an entity of {names.layer}: name one as it stands in a passage")
    return key


def _reach(facts: FactEnds, centre: int, hops: int) -> Keys:
    """The entity and all that are within so many facts of it."""
    reached = np.array([centre], np.int64)
    for _ in range(hops):
        near = facts.select_at(reached)
        reached = np.unique(np.concatenate([reached, near.heads, near.tails]))
    return reached


def _count_facts(facts: FactEnds, entities: Keys) -> NDArray[np.int64]:
    """How many facts each of these entities has."""
    counted, counts = np.unique(np.concatenate([facts.heads, facts.tails]), return_counts=True)
    places, is_known = find_known_indices(entities, counted)
    found = np.zeros(len(entities), np.int64)
    found[is_known] = counts[places]
    return found


def _choose_telling(
    candidates: Keys, degrees: NDArray[np.int64], near: Keys, store: Readable, names: GraphNames
) -> Keys:
    """The candidates, those first that have many facts and are seen in many passages."""
    seen = read_sources(store, candidates.tolist(), names.entities)
    facts = dict(zip(near.tolist(), degrees.tolist(), strict=True))
    ranked = sorted(candidates.tolist(), key=lambda key: (-(1 + facts[key]) * len(seen.get(key, ())), key))
    return np.array(ranked, np.int64)


def _choose_groups(kinds: Mapping[int, str], centre: int | None) -> dict[int, str]:
    """The group of each entity: its kind, if that is among the most frequent."""
    counts = Counter(kind for kind in kinds.values() if kind)
    frequent = sorted(counts, key=lambda kind: (-counts[kind], kind))[:_MOST_KINDS]
    groups = {key: kind if kind in frequent else _ENTITY for key, kind in kinds.items()}
    return groups if centre is None else {**groups, centre: _CENTRE}


def _list_groups(used: Collection[str]) -> tuple[Group, ...]:
    counts = Counter(used)
    names = sorted(counts, key=lambda name: (name in _LABELS, -counts[name], name))
    return tuple(
        Group(id=name, label=_LABELS.get(name, name.capitalize()), shape="square" if name == _CENTRE else "circle")
        for name in names
    )


def _make_nodes(
    store: Readable,
    names: GraphNames,
    nodes: Mapping[int, Node],
    facts: FactEnds,
    texts: Mapping[int, Node],
    groups: Mapping[int, str],
    uses: Uses,
) -> tuple[PictureNode, ...]:
    notes: dict[int, dict[int, None]] = {}
    for fact, head, tail in facts.list_rows():
        notes.setdefault(head, {})[fact] = None
        notes.setdefault(tail, {})[fact] = None
    grounds = name_sources(store, nodes, names.entities, None) | name_sources(store, texts, names.facts, None)
    return tuple(
        PictureNode(
            id=node.id,
            label=shorten_label(node.text),
            group=groups[key],
            facts={"facts": len(notes.get(key, ())), "passages": len(grounds.get(key, ()))},
            use=uses.find((node.id, *grounds.get(key, ()))) if uses.cited else "",
            passages=grounds.get(key, ()),
            notes=tuple(
                Note(title=shorten_label(texts[fact].text), passages=grounds.get(fact, ()))
                for fact in list(notes.get(key, ()))[:_MOST_FACTS]
            ),
        )
        for key, node in nodes.items()
    )
