"""The tomes of an experiment: one for each set of documents and model, made once, used by every system and rerun."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tomewise.errors import ModelError
from tomewise.evaluate.experiment import Experiment
from tomewise.evaluate.items import Dataset, RankedPassage
from tomewise.evaluate.replay import ReplayedEmbedder, ReplayedModel, ReplayedStore
from tomewise.memory.graph import GraphLayer
from tomewise.reports import BuildReport
from tomewise.systems import System, assemble
from tomewise.tome import Tome
from tomewise.types import Document, Evidence, Report
from tomewise.variants import Variant

if TYPE_CHECKING:
    from tomewise.store.sqlite import SqliteStore


@dataclass(frozen=True, slots=True)
class Memory:
    """A tome with its systems assembled; a system whose layers could not be built is the error that stopped it."""

    tome: Tome
    systems: Mapping[str, System | ModelError]
    places: Mapping[str, RankedPassage]

    def ranked(self, found: Iterable[Evidence], depth: int) -> tuple[RankedPassage, ...]:
        """The passages that evidence rests on, best first, each once; derived evidence stands for its sources."""
        ids = dict.fromkeys(source for piece in found for source in piece.sources)
        return tuple(self.places[id] for id in ids if id in self.places)[:depth]


OnBuild = Callable[[Variant, BuildReport], None]


async def remembered(
    experiment: Experiment,
    variants: Sequence[Variant],
    documents: Sequence[Document],
    path: Path,
    report: Report,
    built: OnBuild,
) -> Memory:
    """The memory of some documents at `path`, brought up to date for the variants. Raises StoreError, Locked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tome = await asyncio.to_thread(_opened, experiment, path)
    try:
        await tome.aadd(*documents, on_progress=report)
        kit = replace(tome.kit, store=cast("SqliteStore", ReplayedStore(tome.store)))
        systems: dict[str, System | ModelError] = {}
        for variant in variants:
            try:
                built(variant, await prepare(tome, experiment.dataset, variant, report))
                systems[variant.name] = assemble(variant.system, kit, **variant.settings)
            except ModelError as error:
                systems[variant.name] = error
        return Memory(tome, systems, await asyncio.to_thread(_places, tome))
    except BaseException:
        tome.close()
        raise


async def prepare(tome: Tome, dataset: Dataset, variant: Variant, report: Report) -> BuildReport:
    """Build the layers of a variant; what a dataset's published extractions say is taken from them, not asked for."""
    layers = assemble(variant.system, tome.kit, **variant.settings).layers
    extractions = dataset.openie if any(isinstance(layer, GraphLayer) for layer in layers) else None
    return await tome.abuild(variant.system, extractions=extractions, on_progress=report, **variant.settings)


def _opened(experiment: Experiment, path: Path) -> Tome:
    settings: dict[str, Any] = {"passage_tokens": experiment.passage_tokens, "overlap": experiment.overlap}
    # Replayed, so that a ranking costs nothing twice; also the model is not closed with the tome.
    model, embedder = ReplayedModel(experiment.model), ReplayedEmbedder(experiment.embedder)
    return Tome.open(path, model=model, embedder=embedder, prompts=experiment.prompts, **settings)


def _places(tome: Tome) -> dict[str, RankedPassage]:
    return {
        passage.id: RankedPassage(id=passage.id, document=passage.document, start=passage.start, end=passage.end)
        for passage in tome.store.passages().values()
    }
