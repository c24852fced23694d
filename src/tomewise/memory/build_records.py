"""What the tome keeps of the builds of each layer: one note a layer, changed in the transaction of its memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tomewise.store.records import BUILDS

if TYPE_CHECKING:
    from tomewise.store.contract import Notes, Write

_FIELDS_OF_ALL_BUILDS = ("replies", "writes")  # of the record of a build, when a new one replaces it


def read_build(store: Notes, layer: str) -> dict[str, Any]:
    """The record of the last build of a layer; empty for one that was never built."""
    return store.note(BUILDS, layer) or {}


def record_build(change: Write, layer: str, record: Mapping[str, Any]) -> None:
    """Record the last build of a layer.

    What `count_replies` and `record_writes` recorded stays, and so are the other models of earlier builds, as
    `former_models`; a mark to ask for replies again is removed, since that is done.
    """
    before = read_build(change, layer)
    fields = {name: value for name, value in before.items() if name in _FIELDS_OF_ALL_BUILDS}
    former = {*before.get("former_models", ()), str(before.get("model", ""))} - {"", str(record.get("model", ""))}
    if former:
        fields["former_models"] = sorted(former)
    change.put_note(BUILDS, layer, {**record, **fields})


def record_writes(change: Write, layer: str, writes: Sequence[str]) -> None:
    """Record which node layers a layer writes, for layers above that are built without it."""
    change.put_note(BUILDS, layer, {**read_build(change, layer), "writes": list(writes)})


def count_replies(change: Write, layer: str, counts: Mapping[str, int]) -> None:
    """Add to the counts of replies, by kind, in the layer's record; they cover all builds."""
    record = read_build(change, layer)
    total = Counter(record.get("replies", {})) + Counter(counts)
    change.put_note(BUILDS, layer, {**record, "replies": dict(sorted(total.items()))})


def mark_again(change: Write, layer: str, mark: str) -> None:
    """Mark a layer: until its next build succeeds, its calls are repeated (see `Run.fresh_mark`)."""
    change.put_note(BUILDS, layer, {**read_build(change, layer), "again": mark})


def forget_layer(change: Write, layer: str) -> None:
    """Delete the intake and the record of a layer, so that the next build processes all nodes again."""
    change.forget_intake(layer)
    change.remove_note(BUILDS, layer)
