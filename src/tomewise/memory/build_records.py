"""What the tome keeps of the builds of each layer: one note a layer, changed in the transaction of its memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tomewise.store.contract import Notes, Store, Write
from tomewise.store.records import BUILDS

_FIELDS_OF_ALL_BUILDS = ("replies", "writes")  # of the record of a build, when a new one replaces it


def read_build(store: Notes, layer: str) -> dict[str, Any]:
    """The record of the last build of a layer; empty for one that was never built."""
    return store.note(BUILDS, layer) or {}


def record_build(change: Write, layer: str, record: Mapping[str, Any]) -> None:
    """Record the last build of a layer.

    The counts of replies and what the layer writes stay, and the other models of earlier builds, as `former_models`; a
    mark to ask for replies again is removed, since that is done.
    """
    before = read_build(change, layer)
    fields = {name: value for name, value in before.items() if name in _FIELDS_OF_ALL_BUILDS}
    former = {*before.get("former_models", ()), str(before.get("model", ""))} - {"", str(record.get("model", ""))}
    if former:
        fields["former_models"] = sorted(former)
    change.put_note(BUILDS, layer, {**record, **fields})


def change_record(change: Write, layer: str, **fields: Any) -> None:
    """Change these fields of the record of a layer.

    `writes` are the node layers that it writes, for layers above that are built without it. `again` is a mark: until
    the next build of the layer succeeds, its calls are repeated (see `Run.fresh_mark`).
    """
    change.put_note(BUILDS, layer, {**read_build(change, layer), **fields})


def count_replies(store: Store, layer: str, counts: Mapping[str, int]) -> None:
    """Add to the counts of replies, by kind, in the layer's record; they cover all builds."""
    with store.write() as change:
        total = Counter(read_build(change, layer).get("replies", {})) + Counter(counts)
        change_record(change, layer, replies=dict(sorted(total.items())))


def forget_layer(change: Write, layer: str) -> None:
    """Delete the intake and the record of a layer, so that the next build processes all nodes again."""
    change.forget_intake(layer)
    change.remove_note(BUILDS, layer)
