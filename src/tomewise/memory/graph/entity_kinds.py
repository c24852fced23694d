"""The kinds of the entities of a graph: as the model stated them where it does, else as their names show them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

from tomewise.memory.graph.graph_names import GraphNames
from tomewise.store.contract import Readable
from tomewise.text.names import find_mentions, find_sort

_SAME = {"geo": "place", "location": "place", "people": "person", "organisation": "organization"}
_LONGEST = 30  # characters of a kind


def find_kinds(entities: Mapping[int, str], names: GraphNames, store: Readable) -> dict[int, str]:
    """The kind of each entity by its key, in a word or two; empty for one that nothing shows. `entities` are names."""
    stated = _read_stated(entities, names, store)
    return {key: stated.get(key) or _guess_kind(name) for key, name in entities.items()}


def _read_stated(entities: Collection[int], names: GraphNames, store: Readable) -> dict[int, str]:
    """The kind that most mentions of an entity state; of several the first by name."""
    edges = store.edges_at([names.mentioned], entities, "b")[:, :2].astype(int).tolist()
    mentions = store.nodes_at(mention for mention, _ in edges)
    counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for mention, entity in edges:
        kind = " ".join(str(mentions[mention].data.get("type", "")).lower().split())[:_LONGEST]
        if kind:
            counts[entity][_SAME.get(kind, kind)] += 1
    return {key: min(kinds, key=lambda kind: (-kinds[kind], kind)) for key, kinds in counts.items()}


def _guess_kind(name: str) -> str:
    written = name.title()
    if any(mention.kind in ("date", "number") for mention in find_mentions(written)):
        return "number or date"
    return find_sort(written)
