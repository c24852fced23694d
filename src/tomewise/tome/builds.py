"""The memory layers of a tome: estimated, and brought up to date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from tomewise.concurrency import run_in_thread
from tomewise.errors import UsageError
from tomewise.memory.build_records import forget_memory
from tomewise.memory.building import Provide, build
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.imports.extraction_file import read_extractions
from tomewise.memory.neighbours import note_sizes
from tomewise.run import open_run
from tomewise.store.contract import Store
from tomewise.store.records import BUILDS
from tomewise.store.rights import work_alone
from tomewise.systems.kit import Kit
from tomewise.systems.layers import make_layers
from tomewise.systems.registry import Choice, choose_variant
from tomewise.tome.arguments import check_type, read_names
from tomewise.tome.fixed_settings import check_embedder
from tomewise.tome.holdings import locate_failures
from tomewise.tome.reports import BuildReport
from tomewise.types import Layer, LayerReport, Report

_Records: TypeAlias = Mapping[str, Mapping[str, Any]]  # the build records by layer


def wire_layers(kit: Kit, system: Choice, names: str | Sequence[str]) -> list[Layer]:
    """The layers of a system and those of these names; of two with one name, the system's. Raises UnknownName."""
    kit.store.check()
    variant = choose_variant(system)
    further = make_layers(kit, *read_names("layers", names))
    return list({layer.name: layer for layer in (*further, *variant.wire(kit).layers)}.values())


async def build_layers(
    kit: Kit, layers: Sequence[Layer], report: Report, extractions: str | Path | None, again: str | Sequence[str]
) -> BuildReport:
    """Bring the layers up to date. See `Tome.build`."""
    store, names = kit.store, read_names("again", again)
    check_type("extractions", extractions, str | PathLike | None, "a path")
    with work_alone(store, "build"), open_run() as used:
        await run_in_thread(check_embedder, store, kit.embedder)
        provide = None
        if extractions:
            provide = await run_in_thread(provide_extractions, layers, Path(extractions), store, report)
        await run_in_thread(forget_memory, names, layers, store)
        before = store.notes(BUILDS)
        reports = await build(layers, store, report, provide=provide)
        after = store.notes(BUILDS)
        noted = (_note_model(each, kit.model.name, before, after) for each in reports)
        sized = note_sizes(noted, layers, after)
        located = tuple(replace(each, failures=locate_failures(each.failed, store)) for each in sized)
        return BuildReport(located, used.measure_cost())


def _note_model(report: LayerReport, model: str, before: _Records, after: _Records) -> LayerReport:
    """The report, with a note if another model than this one built the layer before."""
    former, latest = (builds.get(report.layer, {}).get("model") for builds in (before, after))
    current_names = model.replace("=", " ").split()
    if former is None or (former == latest and set(former.split(", ")) <= set(current_names)):
        return report
    name = model if former == latest else latest
    note = f"{former} built what was there, and it stays; to use {name} for all, add to a new tome"
    return replace(report, notes=(*report.notes, note))


def provide_extractions(layers: Sequence[Layer], path: Path, store: Store, report: Report) -> Provide:
    """A function that fills the graphs among the layers with the extractions of a file.

    Raises ReadingError for a bad file, UsageError if a graph cannot take them (see `GraphLayer.check_import`).
    """
    extractions = read_extractions(path, store)
    graphs = {
        layer.name: layer
        for layer in layers
        if isinstance(layer, GraphLayer) and layer.names.style == extractions.style
    }
    if not graphs:
        kind = extractions.style
        raise UsageError(f"{path} holds {kind} of passages, which this system has no layer for: leave it out")
    for graph in graphs.values():
        graph.check_import(extractions)

    async def provide(layer: Layer) -> LayerReport | None:
        if (graph := graphs.get(layer.name)) is None:
            return None
        filled = await graph.import_extractions(extractions, report)
        return replace(filled, notes=(f"{path.name}: {extractions.coverage}", *filled.notes))

    return provide
