"""Build the layers of a system, and count what they would cost if the system were alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tomewise.evaluate.usages import as_usage, sum_usages
from tomewise.memory.building import Provide, build, find_changes
from tomewise.memory.imports.given_triples import read_extractions
from tomewise.memory.imports.takes_extractions import TakesExtractions
from tomewise.memory.neighbours import describe_sizes
from tomewise.run import open_run
from tomewise.store.records import PASSAGES
from tomewise.types import Layer, LayerReport, Report

if TYPE_CHECKING:
    from tomewise.store.contract import Store

ASKED = "asked the model: the given triples are of passages"
_COST = "evaluated cost of "


@dataclass(frozen=True, slots=True)
class Build:
    """What building the layers of one system in one memory took.

    `usage` is the cost of all its layers, also of those that another system had built. `fallbacks` counts by layer the
    texts that the layer replaced by another text or could not take in. `notes` say what a reader of a table must know.
    `networks` are by layer the networks that layers record (see `memory.schemata.describe_network`).
    """

    usage: dict[str, Any]
    fallbacks: dict[str, int]
    notes: tuple[str, ...]
    networks: dict[str, Any] = field(default_factory=dict)


async def build_layers(store: Store, layers: Sequence[Layer], openie: Path | None, report: Report) -> Build:
    """Bring layers up to date, lowest first. Extractions from the file `openie` go only to graphs of passages.

    The tome stores the usage of each layer, so that every system that uses a layer is charged for it. A layer that an
    error stops is charged when a later build finishes it. Raises ModelError.
    """
    with store.alone("build"):
        for layer in layers:
            await _build(store, layer, layers, openie, report)
    usages = [await asyncio.to_thread(_read_cost, store, layer) for layer in layers]
    fallbacks = {layer.name: await asyncio.to_thread(_count_fallbacks, store, layer) for layer in layers}
    notes = [ASKED] if any(_asks_model_anyway(layer, openie) for layer in layers) else []
    records = await asyncio.to_thread(store.builds)
    notes += [note for layer in layers for note in describe_sizes(layer, records.get(layer.name, {}))]
    found = {layer.name: records.get(layer.name, {}).get("network") for layer in layers}
    networks = {name: network for name, network in found.items() if network}
    counted = {name: count for name, count in fallbacks.items() if count}
    return Build(sum_usages(usages), counted, tuple(notes), networks)


def _asks_model_anyway(layer: Layer, openie: Path | None) -> bool:
    """Whether a graph asks the model although extractions are given: they are of passages and its source is not."""
    return openie is not None and isinstance(layer, TakesExtractions) and layer.source != PASSAGES


def explain_refusal(layers: Sequence[Layer], openie: Path | None) -> str | None:
    """Why rankings by these layers cannot be compared with those from the given extractions, or None if they can."""
    names = [layer.name for layer in layers if _asks_model_anyway(layer, openie)]
    return f"the given triples are of passages, and {', '.join(names)} is not" if names else None


async def _build(store: Store, layer: Layer, layers: Sequence[Layer], openie: Path | None, report: Report) -> None:
    if not await asyncio.to_thread(find_changes, layer, store, layers):
        return
    with open_run() as used:
        await build([layer], store, report, provide=_provide(store, openie, report) if openie else None)
    await asyncio.to_thread(_add_cost, store, layer, as_usage(used))


def _provide(store: Store, openie: Path, report: Report) -> Provide:
    """A function that gives the extractions of a file to graphs of passages."""

    async def provide(layer: Layer) -> LayerReport | None:
        if not isinstance(layer, TakesExtractions) or _asks_model_anyway(layer, openie):
            return None
        extractions = await asyncio.to_thread(read_extractions, openie, store)
        return await layer.take(extractions, report) if layer.style == extractions.style else None

    return provide


def _read_cost(store: Store, layer: Layer) -> dict[str, Any]:
    usage: dict[str, Any] = json.loads(store.meta(_COST + layer.name) or "{}")
    return usage


def _add_cost(store: Store, layer: Layer, usage: dict[str, Any]) -> None:
    text = json.dumps(sum_usages([_read_cost(store, layer), usage]))
    with store.write() as change:
        change.set_meta(_COST + layer.name, text)


def _count_fallbacks(store: Store, layer: Layer) -> int:
    """Count the nodes of a layer whose text replaces what the model should have written, and the texts that failed."""
    replaced = sum("fallback" in node.data for node in store.nodes(layer.name).values())
    return replaced + len(store.intake(layer.name).failed)
