"""Taking back what was remembered, so that the next build asks for it anew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from secrets import token_hex
from typing import TYPE_CHECKING

from tomewise.errors import UnknownName
from tomewise.store.sqlite.write import PASSAGES
from tomewise.types import Layer

if TYPE_CHECKING:
    from tomewise.store.sqlite.store import SqliteStore


def take_back(wanted: Iterable[str], layers: Sequence[Layer], store: SqliteStore) -> None:
    """Forget layers, named, or all that rests on passages, named by id; mark the layers to be asked for anew.

    The mark lasts until a layer is built, so that a build that is stopped goes on where it was: replies that came since
    are kept, and of what was asked for before nothing is used. One transaction for each name. Raises UnknownName.
    """
    mark = token_hex(8)  # one for all, so that what two layers ask alike is asked once
    for name in dict.fromkeys(wanted):
        layer = next((one for one in layers if name in (one.name, *_parts(one))), None)
        if layer is not None:
            _forget_layer(layer, store, mark)
        else:
            _forget_passage(name, layers, store, mark)


def _forget_layer(layer: Layer, store: SqliteStore, mark: str) -> None:
    keys = [key for part in _parts(layer) for key in store.node_keys(part)]
    with store.write() as change:
        change.remove_nodes(keys)
        change.forget_layer(layer.name)
        change.mark_again(layer.name, mark)


def _forget_passage(name: str, layers: Sequence[Layer], store: SqliteStore, mark: str) -> None:
    key = store.keys_of([name]).get(name)
    if key is None or store.nodes_at([key])[key].layer != PASSAGES:
        known = ", ".join(layer.name for layer in layers) or "none"
        raise UnknownName(
            f"{name!r} is no layer of this system ({known}), nor the id of a passage: "
            "`tome ask --json` gives ids with its citations"
        )
    with store.write() as change:
        change.renew_passage(key)
        for layer in layers:
            change.mark_again(layer.name, mark)


def _parts(layer: Layer) -> tuple[str, ...]:
    """The names under which a layer keeps its nodes: its own, unless it says otherwise."""
    parts: tuple[str, ...] = getattr(layer, "parts", (layer.name,))
    return parts
