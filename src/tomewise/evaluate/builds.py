"""Bringing the layers of a system up to date, and what they would have cost had it been alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tomewise.evaluate.paid import counting_reused
from tomewise.evaluate.usages import sum_of
from tomewise.language.usage import meter
from tomewise.memory.building import Provide, build, find_changes
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.imports.given_triples import read_extractions
from tomewise.store.sqlite.write import PASSAGES
from tomewise.tome.reports import usage_json
from tomewise.types import Layer, LayerReport, Report

if TYPE_CHECKING:
    from tomewise.store.sqlite.store import SqliteStore

ASKED = "asked the model: the given triples are of passages"
_COST = "evaluated cost of "


@dataclass(frozen=True, slots=True)
class Build:
    """The layers of one system in one memory.

    `usage` is what all of them cost, whoever had them built. `fallbacks` counts by layer the texts that another text
    stands in for, and those that could not be read; `notes` say what a reader of a table must know.
    """

    usage: dict[str, Any]
    fallbacks: dict[str, int]
    notes: tuple[str, ...]


async def build_layers(store: SqliteStore, layers: Sequence[Layer], openie: Path | None, report: Report) -> Build:
    """Bring layers up to date, lowest first; given extractions of passages go to graphs of passages alone.

    The usage of each layer is kept in the tome, so that a system whose layers another one had built is charged for them
    as well. A layer that is stopped by an error is charged for when a later build finishes it. Raises ModelError.
    """
    with store.exclusive():
        for layer in layers:
            await _build(store, layer, openie, report)
    usages = [await asyncio.to_thread(_cost_of, store, layer) for layer in layers]
    fallbacks = {layer.name: await asyncio.to_thread(_fallen, store, layer) for layer in layers}
    notes = (ASKED,) if any(asks_in_spite_of(layer, openie) for layer in layers) else ()
    return Build(sum_of(usages), {name: count for name, count in fallbacks.items() if count}, notes)


def asks_in_spite_of(layer: Layer, openie: Path | None) -> bool:
    """Whether a graph asks the model although extractions are given, since these are not of what it is read from."""
    return openie is not None and isinstance(layer, GraphLayer) and layer.names.source != PASSAGES


def refusal(layers: Sequence[Layer], openie: Path | None) -> str | None:
    """Why rankings of a system would not compare with those made from the given extractions, or None."""
    names = [layer.name for layer in layers if asks_in_spite_of(layer, openie)]
    return f"the given triples are of passages, and {', '.join(names)} is not" if names else None


async def _build(store: SqliteStore, layer: Layer, openie: Path | None, report: Report) -> None:
    if not await asyncio.to_thread(find_changes, layer, store):
        return
    with meter() as used, counting_reused() as reused:
        await build([layer], store, report, provide=_provide(store, openie, report) if openie else None)
    usage = {**usage_json(used.usage()), "reused": reused.asks}
    await asyncio.to_thread(_add_cost, store, layer, usage)


def _provide(store: SqliteStore, openie: Path, report: Report) -> Provide:
    """Gives graphs of passages the extractions of a file."""

    async def provide(layer: Layer) -> LayerReport | None:
        if not isinstance(layer, GraphLayer) or asks_in_spite_of(layer, openie):
            return None
        found = await asyncio.to_thread(read_extractions, openie, store)
        return await layer.take(found, report) if layer.names.style == found.style else None

    return provide


def _cost_of(store: SqliteStore, layer: Layer) -> dict[str, Any]:
    usage: dict[str, Any] = json.loads(store.meta(_COST + layer.name) or "{}")
    return usage


def _add_cost(store: SqliteStore, layer: Layer, usage: dict[str, Any]) -> None:
    text = json.dumps(sum_of([_cost_of(store, layer), usage]))
    with store.write() as change:
        change.set_meta(_COST + layer.name, text)


def _fallen(store: SqliteStore, layer: Layer) -> int:
    """Nodes of a layer that hold a text in place of what the model should have made, and texts that failed."""
    stand_ins = sum("fallback" in node.data for node in store.nodes(layer.name).values())
    return stand_ins + len(store.intake(layer.name).failed)
