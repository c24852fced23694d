"""The tomes of an experiment: one for each set of documents and model, made once, used by every system and rerun."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tomewise.errors import ModelError
from tomewise.evaluate.builds import Build, build_layers, refusal
from tomewise.evaluate.experiment import Experiment
from tomewise.evaluate.items import Dataset, RankedPassage
from tomewise.evaluate.replay import ReplayedEmbedder, ReplayedModel, ReplayedStore
from tomewise.store.sqlite.write import PASSAGES
from tomewise.systems.kit import System
from tomewise.systems.registry import assemble
from tomewise.systems.spec import Variant
from tomewise.tome.tome import Tome
from tomewise.types import Document, Evidence, Layer, PassageId, Report

if TYPE_CHECKING:
    from tomewise.store.sqlite.store import SqliteStore

_DECIMALS = 6  # cosines that differ by less tie


@dataclass(frozen=True, slots=True)
class Memory:
    """A tome with its systems assembled; a system whose layers could not be built is the error that stopped it.

    `refused` says by system why it is left out.
    """

    tome: Tome
    systems: Mapping[str, System | ModelError]
    refused: Mapping[str, str]
    places: Mapping[PassageId, RankedPassage]

    def ranked(self, question: str, found: Sequence[Evidence], depth: int) -> tuple[RankedPassage, ...]:
        """The passages that evidence rests on, best first, each once.

        Evidence that rests on one passage gives that passage its score. Evidence that rests on several, such as a
        summary, gives each of them its own cosine with the question, unless the passage was found by itself too: so a
        summary of many passages takes none of the places of what was found beside it. Retrievers that find both kinds
        score by cosine, so that the two compare.
        """
        scores: dict[PassageId, float] = {}
        for piece in found:
            if len(piece.sources) == 1:
                scores.setdefault(piece.sources[0], piece.score)
        below = {source for piece in found if len(piece.sources) > 1 for source in piece.sources} - set(scores)
        if below:
            scores |= self._cosines(question, below)
            scores = dict(sorted(scores.items(), key=lambda pair: (-pair[1], pair[0])))
        return tuple(self.places[id] for id in scores if id in self.places)[:depth]

    def shown(self, evidence: Iterable[Evidence]) -> tuple[RankedPassage, ...]:
        """The passages whose own text is among the evidence: a summary does not show its passages."""
        nodes = (piece.node for piece in evidence if piece.layer == PASSAGES)
        return tuple(self.places[node] for node in nodes if node in self.places)

    def _cosines(self, question: str, passages: Iterable[PassageId]) -> dict[PassageId, float]:
        keys = self.tome.store.keys_of(passages)
        columns = self.tome.store.vectors(PASSAGES)
        places = np.searchsorted(columns.keys, list(keys.values()))
        cosines = columns.rows[places] @ self.tome.kit.embedder.embed([question])[0]
        return dict(zip(keys, np.round(cosines, _DECIMALS).tolist(), strict=True))


OnBuild = Callable[[Variant, Build], None]


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
        refused = refusals(tome, experiment, variants)
        for variant in variants:
            if variant.name in refused:
                continue
            try:
                built(variant, await prepare(tome, experiment.dataset, variant, report))
                systems[variant.name] = assemble(variant.system, kit, **variant.settings)
            except ModelError as error:
                systems[variant.name] = error
        return Memory(tome, systems, refused, await asyncio.to_thread(_places, tome))
    except BaseException:
        tome.close()
        raise


async def prepare(tome: Tome, dataset: Dataset, variant: Variant, report: Report) -> Build:
    """Build the layers of a variant; what a dataset's published extractions say is taken from them, not asked for."""
    return await build_layers(tome.store, _layers(tome, variant), dataset.openie, report)


def refusals(tome: Tome, experiment: Experiment, variants: Sequence[Variant]) -> dict[str, str]:
    """The variants whose rankings would not compare with the others', with the reason."""
    if not experiment.retrieval_only:
        return {}
    reasons = {variant.name: refusal(_layers(tome, variant), experiment.dataset.openie) for variant in variants}
    return {name: reason for name, reason in reasons.items() if reason}


def _layers(tome: Tome, variant: Variant) -> Sequence[Layer]:
    return assemble(variant.system, tome.kit, **variant.settings).layers


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
