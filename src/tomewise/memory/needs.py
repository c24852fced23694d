"""Which node layers a layer reads: its needs, resolved through what the other layers write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tomewise.errors import UsageError
from tomewise.store.sqlite.write import PASSAGES
from tomewise.types import Layer

Builds = Mapping[str, Mapping[str, Any]]  # the build records by layer


def find_providers(layer: Layer, layers: Sequence[Layer]) -> list[Layer]:
    """The layers, among these, that write what a layer needs."""
    return [below for below in layers if below.name != layer.name and _provides(below, layer.needs)]


def find_node_layers(layer: Layer, layers: Sequence[Layer], builds: Builds) -> tuple[str, ...]:
    """The node layers that a layer reads, each once.

    A need is the name of a layer, and stands for all that this layer writes, or the name of a node layer. Layers that
    are not among `layers` are known by the records of their builds. Raises UsageError for a need that nothing provides.
    """
    # Layers that are wired now come last: what they write counts, not what they wrote once.
    writes = {name: tuple(record.get("writes", (name,))) for name, record in builds.items()}
    writes |= {wired.name: wired.writes for wired in layers} | {PASSAGES: (PASSAGES,)}
    known = {node_layer for node_layers in writes.values() for node_layer in node_layers}
    found: dict[str, None] = {}
    for need in layer.needs:
        if need in writes:
            found |= dict.fromkeys(writes[need])
        elif need in known:
            found[need] = None
        else:
            raise UsageError(
                f"the layer {layer.name} needs {need!r}, which no layer of this system writes and which was never "
                f"built: put the layer that writes it before {layer.name} (known are {', '.join(sorted(writes))})"
            )
    return tuple(found)


def _provides(layer: Layer, needs: Sequence[str]) -> bool:
    return layer.name in needs or not set(layer.writes).isdisjoint(needs)
