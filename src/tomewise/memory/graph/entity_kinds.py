"""The kinds of the entities of a graph: as the model stated them where it does, else as their names show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import chain

from tomewise.memory.graph.graph_names import GraphNames
from tomewise.store.contract import Readable
from tomewise.store.lookups import find_derived
from tomewise.text.names import find_mentions, find_sort

_SAME = {"geo": "place", "location": "place", "people": "person", "organisation": "organization"}
_LONGEST = 30  # characters of a kind


def find_kinds(entities: Mapping[int, str], names: GraphNames, store: Readable) -> dict[int, str]:
    """The kind of each entity by its key, in a word or two; empty for one that nothing shows. `entities` are names."""
    stated = _read_stated(entities, names, store)
    return {key: stated.get(key) or _guess_kind(name) for key, name in entities.items()}


def _read_stated(entities: Collection[int], names: GraphNames, store: Readable) -> dict[int, str]:
    """The kind that most mentions of an entity state; of several the first by name."""
    found = find_derived(store, entities, names.mentioned)
    mentions = store.nodes_at(chain.from_iterable(found.values()))
    stated: dict[int, str] = {}
    for entity, keys in found.items():
        words = (" ".join(str(mentions[key].data.get("type", "")).lower().split())[:_LONGEST] for key in keys)
        kinds = Counter(_SAME.get(kind, kind) for kind in words if kind)
        if kinds:
            stated[entity] = min(kinds, key=lambda kind: (-kinds[kind], kind))
    return stated


def _guess_kind(name: str) -> str:
    written = name.title()
    if any(mention.kind in ("date", "number") for mention in find_mentions(written)):
        return "number or date"
    return find_sort(written)
