"""What a tome holds: its documents, its layers with what they failed to take in, and the system that suits it."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from tomewise.memory.grounds import find_grounds
from tomewise.outgoing import report_models
from tomewise.outgoing.form import Naming
from tomewise.store.contract import Store
from tomewise.store.lookups import read_setting
from tomewise.store.records import BUILDS
from tomewise.systems.advice import recommend_system
from tomewise.tome.open_store import describe_search


def describe_contents(store: Store, model: str, naming: Naming | None = None) -> report_models.Contents:
    """What a tome holds as it goes out, with the system that is recommended for it with this model."""
    documents = store.documents()
    tokens = int(read_setting(store, "passage_tokens") or 0)
    values = {
        "tome": store.address,
        "embedder": read_setting(store, "embedder"),
        "passage_tokens": tokens,
        "overlap": int(read_setting(store, "overlap") or 0),
        "bytes": store.size(),
        "cache_bytes": store.cache_size(),
        "layers": store.layers(),
        "documents": documents,
        "recommended": recommend_system([record.passages for record in documents], tokens, model),
        "replies": _list_records(store, "replies"),
        "networks": _list_records(store, "network"),
        "failed": _list_failures(store),
        "search": describe_search(store),
    }
    return report_models.Contents.of(values, naming)


def _list_records(store: Store, name: str) -> dict[str, Any]:
    """What the layers record under this name, for those that do."""
    return {layer: record[name] for layer, record in store.notes(BUILDS).items() if name in record}


def _list_failures(store: Store) -> list[dict[str, Any]]:
    """The failures of all layers, by layer, document and reason, with the positions of the passages concerned."""
    positions: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    counts: Counter[tuple[str, str, str]] = Counter()
    for layer, counted in store.layers().items():
        reasons = store.intake(layer).failed if counted["failed"] else {}
        for key, node in store.nodes_at(reasons).items():
            passages = store.passages(find_grounds(store, [key], node.layer)[key]).values()
            for passage in passages:
                positions[layer, passage.document, reasons[key]].add(passage.position)
            first = next((passage.document for passage in passages), "")
            counts[layer, first, reasons[key]] += 1
    return [
        {
            "layer": layer,
            "document": document,
            "passages": sorted(positions[layer, document, reason]),
            "reason": reason,
            "count": counts[layer, document, reason],
        }
        for layer, document, reason in sorted({*positions, *counts})
    ]
