"""Fill graphs with entities and facts that were extracted elsewhere, instead of asking a model for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tomewise.errors import UsageError
from tomewise.memory.building import Provide
from tomewise.memory.imports.extraction_file import ImportsExtractions, read_extractions
from tomewise.types import Layer, LayerReport, Report

if TYPE_CHECKING:
    from tomewise.store.contract import Store


def provide_extractions(layers: Sequence[Layer], path: Path, store: Store, report: Report) -> Provide:
    """A function that fills the graphs among the layers with the extractions of a file.

    Raises ReadingError for a bad file, UsageError if a graph cannot take them (see `ImportsExtractions.check_import`).
    """
    extractions = read_extractions(path, store)
    graphs = {
        layer.name: layer
        for layer in layers
        if isinstance(layer, ImportsExtractions) and layer.style == extractions.style
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
