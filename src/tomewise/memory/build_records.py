"""What the tome keeps of the builds of each layer, and how memory is removed so that the next build asks for it again.

It is one note a layer, changed in the transaction of its memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from secrets import token_hex
from typing import Any

from tomewise.errors import UnknownName
from tomewise.run import Flag
from tomewise.store.contract import Notes, Store, Write
from tomewise.store.lookups import find_keys
from tomewise.store.records import BUILDS, PASSAGES
from tomewise.types import Layer

_FIELDS_OF_ALL_BUILDS = ("replies", "flags", "writes")  # of the record of a build, when a new one replaces it
_EXAMPLES = 5  # flagged statements of each kind


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


def add_flags(store: Store, layer: str, flags: Iterable[Flag]) -> None:
    """Add flags to the layer's record: by model and kind their `count`, and the last statements as `examples`."""
    with store.write() as change:
        by_model = read_build(change, layer).get("flags", {})
        for model, kind, statement in flags:
            found = by_model.setdefault(model, {}).setdefault(kind, {"count": 0, "examples": []})
            found["count"] += 1
            found["examples"] = [statement, *found["examples"]][:_EXAMPLES]
        change_record(change, layer, flags=by_model)


def forget_examples(store: Store) -> None:
    """Forget the examples of flags in layers from which memory was removed: they may tell of what is gone."""
    for layer, record in store.notes(BUILDS).items():
        if "flags" in record and store.find_removed_ids(layer):
            for found in chain.from_iterable(kinds.values() for kinds in record["flags"].values()):
                found["examples"] = []
            with store.write() as change:
                change_record(change, layer, flags=record["flags"])


def forget_layer(change: Write, layer: str) -> None:
    """Delete the intake and the record of a layer, so that the next build processes all nodes again."""
    change.forget_intake(layer)
    change.remove_note(BUILDS, layer)


def forget_memory(wanted: Iterable[str], layers: Sequence[Layer], store: Store) -> None:
    """Remove the nodes of the layers with these names, and all memory that was made from the passages with these ids.

    Marks the layers, so that their next build does not use cached replies from before. The mark lasts until the layer
    is built: a build that is stopped keeps the replies that came after the mark. Each name is one transaction. Raises
    UnknownName.
    """
    mark = token_hex(8)  # the same for all layers, so that a request that two of them make is asked once
    for name in dict.fromkeys(wanted):
        layer = next((layer for layer in layers if name in (layer.name, *layer.writes)), None)
        if layer is not None:
            _forget_nodes(layer, store, mark)
        else:
            _forget_passage(name, layers, store, mark)


def _forget_nodes(layer: Layer, store: Store, mark: str) -> None:
    keys = [key for part in layer.writes for key in store.node_keys(part)]
    with store.write() as change:
        change.remove_nodes(keys)
        forget_layer(change, layer.name)
        change_record(change, layer.name, again=mark, writes=list(layer.writes))


def _forget_passage(name: str, layers: Sequence[Layer], store: Store, mark: str) -> None:
    key = find_keys(store, [name]).get(name)
    if key is None or store.nodes_at([key])[key].layer != PASSAGES:
        known = ", ".join(layer.name for layer in layers) or "none"
        raise UnknownName(
            f"{name!r} is not a layer of this system ({known}) and not the id of a passage: "
            "`tome ask --json` gives the ids of passages with its quotes"
        )
    with store.write() as change:
        change.renew_passage(key)
        for layer in layers:
            change_record(change, layer.name, again=mark)
