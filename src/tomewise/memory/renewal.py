"""Remove memory so that the next build asks for it again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from secrets import token_hex

from tomewise.errors import UnknownName
from tomewise.memory.build_records import change_record, forget_layer
from tomewise.store.contract import Store
from tomewise.store.lookups import find_keys
from tomewise.store.records import PASSAGES
from tomewise.types import Layer


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
            _forget_layer(layer, store, mark)
        else:
            _forget_passage(name, layers, store, mark)


def _forget_layer(layer: Layer, store: Store, mark: str) -> None:
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
            "`tome ask --json` gives ids with its citations"
        )
    with store.write() as change:
        change.renew_passage(key)
        for layer in layers:
            change_record(change, layer.name, again=mark)
