"""The graph layer as a picture: the most telling entities, or those around one, and the facts between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import numpy as np

from tomewise.errors import UnknownName
from tomewise.memory.graph.entity_kinds import find_kinds
from tomewise.memory.graph.entity_names import normalise_name
from tomewise.memory.graph.fact_ends import FactEnds, read_fact_ends
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.pictures import LIMIT, UNUSED, Group, Note, Picture, PictureNode, Sketch, Uses, shorten_label
from tomewise.store.contract import Keys, Readable
from tomewise.store.lookups import find_keys, name_sources, read_sources

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
    uses: Uses = UNUSED,
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
    counts = np.bincount(np.concatenate((facts.heads, facts.tails)), minlength=1 + int(near.max(initial=0)))
    distance = np.zeros(len(near)) if centre is None else (near != centre).astype(float)
    chosen = near[np.lexsort((near, -counts[near], distance))][: limit if around else _CANDIDATES * limit]
    if not around:
        chosen = _choose_telling(chosen, counts, store, names)[:limit]
    inner = facts.select(np.isin(facts.heads, chosen) & np.isin(facts.tails, chosen))
    nodes, texts = store.nodes_at(chosen.tolist()), store.nodes_at(inner.keys.tolist())
    groups = _choose_groups(find_kinds({key: node.text for key, node in nodes.items()}, names, store), centre)
    grounds = name_sources(store, nodes, names.entities, None) | name_sources(store, texts, names.facts, None)
    sketch = Sketch()
    notes: dict[int, dict[int, None]] = {}
    for fact, head, tail in inner.list_rows():
        notes.setdefault(head, {})[fact] = None
        notes.setdefault(tail, {})[fact] = None
        sketch.link(nodes[head].id, nodes[tail].id, str(texts[fact].data.get("relation", "")))
    for key, node in nodes.items():
        passages, own = grounds.get(key, ()), list(notes.get(key, ()))
        sketch.add(
            PictureNode(
                id=node.id,
                label=node.text,
                group=groups[key],
                facts={"facts": len(own), "passages": len(passages)},
                use=uses.find((node.id, *passages)) if uses.cited else "",
                passages=passages,
                notes=tuple(
                    Note(title=shorten_label(texts[fact].text), passages=grounds.get(fact, ()))
                    for fact in own[:_MOST_FACTS]
                ),
            )
        )
    return sketch.finish(
        "graph",
        "Entities and facts",
        _list_groups(groups.values()),
        total=len(entities),
        about=f"Around {around}" if around else f"{names.layer}: the most telling entities",
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


def _choose_telling(candidates: Keys, counts: Keys, store: Readable, names: GraphNames) -> Keys:
    """The candidates, those first that have many facts and are seen in many passages; `counts` of facts are by key."""
    seen = read_sources(store, candidates.tolist(), names.entities)
    ranked = sorted(seen, key=lambda key: (-(1 + int(counts[key])) * len(seen[key]), key))
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
        Group(name, _LABELS.get(name, name.capitalize()), shape="square" if name == _CENTRE else "circle")
        for name in names
    )
