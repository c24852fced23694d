"""The tomes of an experiment, one for each set of documents and model, and the building of their layers.

All systems of an experiment and all its runs share them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from tomewise.errors import ModelError
from tomewise.evaluate.design import Design
from tomewise.evaluate.items import RankedPassage
from tomewise.evaluate.replay import ReplayedEmbedder, ReplayedModel, ReplayedStore
from tomewise.evaluate.rows import make_usage_record, sum_usages
from tomewise.loops.ledger_notes import BETWEEN_QUOTES, NOTED
from tomewise.loops.origins import EXTRACTS
from tomewise.memory.building import Provide, build, find_changes
from tomewise.memory.imports.extraction_file import ImportsExtractions, read_extractions
from tomewise.memory.neighbours import describe_sizes
from tomewise.run import open_run
from tomewise.store.lookups import find_keys, read_setting
from tomewise.store.records import BUILDS, PASSAGES, SETTINGS
from tomewise.store.rights import work_alone
from tomewise.systems.kit import System
from tomewise.systems.registry import Variant
from tomewise.tome.tome import Tome
from tomewise.types import Document, Evidence, Layer, LayerReport, PassageId, Report

if TYPE_CHECKING:
    from tomewise.store.contract import Store

OnBuild: TypeAlias = "Callable[[str, Build], None]"  # with the name of the system

_NO_RETRIEVER = "it has no retriever of its own, or several, so only its answers can be measured"
_ASKED_MODEL = "asked the model: the given triples are of passages"
_COST = "evaluated cost of "  # the key of the cost of a layer in its tome
_DECIMALS = 6  # cosines that differ by less tie


@dataclass(frozen=True, slots=True)
class Memory:
    """A tome and the systems over it. Where the layers of a system could not be built, the error replaces the system.

    `refused` says by system why it is left out. `passages` are all passages of the tome, by their ids.
    """

    tome: Tome
    systems: Mapping[str, System | ModelError]
    refused: Mapping[str, str]
    passages: Mapping[PassageId, RankedPassage]

    def rank_passages(
        self, question: str, evidence: Sequence[Evidence], depth: int, *, of_one_retriever: bool = True
    ) -> tuple[RankedPassage, ...]:
        """The source passages of evidence, best first, each once.

        Evidence from one passage gives this passage its score. Evidence from several passages, such as a summary, does
        not score them: each gets its own cosine with the question, unless it was also found by itself. So a summary of
        many passages does not push better passages down. Retrievers that find both kinds of evidence score by cosine,
        so the two kinds of scores can be compared. Those of several retrievers cannot, so without `of_one_retriever`
        each passage gets its own cosine.
        """
        scores: dict[PassageId, float] = {}
        for piece in evidence:
            if len(piece.sources) == 1 and of_one_retriever:
                scores.setdefault(piece.sources[0], piece.score)
        if unscored := {source for piece in evidence for source in piece.sources} - set(scores):
            scores |= self._compute_cosines(question, unscored)
            scores = dict(sorted(scores.items(), key=lambda pair: (-pair[1], pair[0])))
        return tuple(self.passages[id] for id in scores if id in self.passages)[:depth]

    def find_shown(self, evidence: Iterable[Evidence]) -> tuple[RankedPassage, ...]:
        """The passages whose own text is in the evidence, and the parts of passages that a loop quoted.

        A summary does not show its passages.
        """
        pieces = list(evidence)
        shown = [
            self.passages[piece.node] for piece in pieces if piece.layer == PASSAGES and piece.node in self.passages
        ]
        return (*shown, *self._find_extracts([piece for piece in pieces if piece.layer == EXTRACTS]))

    def _find_extracts(self, extracts: Sequence[Evidence]) -> Iterator[RankedPassage]:
        """Where the quotations in extracts are in their passages."""
        keys = find_keys(self.tome.store, {source for piece in extracts for source in piece.sources})
        passages = {passage.id: passage for passage in self.tome.store.passages(keys.values()).values()}
        for piece in extracts:
            passage = passages[piece.sources[0]]
            for part in piece.text.split(BETWEEN_QUOTES):
                quote, _, _ = part.partition(NOTED)
                start = passage.start + passage.text.find(quote)
                if start >= passage.start:
                    end = start + len(quote)
                    yield RankedPassage(id=passage.id, document=passage.document, start=start, end=end)

    def _compute_cosines(self, question: str, passages: Iterable[PassageId]) -> dict[PassageId, float]:
        keys = find_keys(self.tome.store, passages)
        vectors = self.tome.store.rows(PASSAGES, keys.values())
        cosines = vectors @ self.tome.kit.embedder.embed([question])[0]
        return dict(zip(keys, np.round(cosines, _DECIMALS).tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Build:
    """What building the layers of one system in one memory took.

    `usage` is the cost of all its layers, also of those that another system had built. `fallbacks` counts by layer the
    texts that the layer replaced by another text, and those that failed. `notes` say what a reader of a table must
    know. `networks` are by layer the networks that layers record (see `memory.schemata.describe_network`).
    """

    usage: dict[str, Any]
    fallbacks: dict[str, int]
    notes: tuple[str, ...]
    networks: dict[str, Any] = field(default_factory=dict)


async def open_memory(
    experiment: Design,
    variants: Sequence[Variant],
    documents: Sequence[Document],
    path: Path,
    report: Report,
    on_build: OnBuild,
) -> Memory:
    """The memory of documents at `path`, brought up to date for the variants. Raises StoreError, Locked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tome = await asyncio.to_thread(_open_tome, experiment, path)
    try:
        await tome.aadd(*documents, on_progress=report)
        # The model keeps its replies in the output folder and charges for each of them: no second cache comes between.
        store = cast("Store", ReplayedStore(tome.store))
        kit = replace(tome.kit, store=store, model=ReplayedModel(experiment.model))
        assembled = {variant.name: variant.wire(kit) for variant in variants}
        refused = _explain_refusals(experiment, assembled) if experiment.retrieval_only else {}
        systems: dict[str, System | ModelError] = {}
        for variant in variants:
            if variant.name in refused:
                continue
            system = assembled[variant.name]
            try:
                on_build(variant.name, await build_layers(tome.store, system.layers, experiment.dataset.openie, report))
                systems[variant.name] = system
            except ModelError as error:
                systems[variant.name] = error
        return Memory(tome, systems, refused, await asyncio.to_thread(_read_passages, tome))
    except BaseException:
        tome.close()
        raise


def _explain_refusals(experiment: Design, systems: Mapping[str, System]) -> dict[str, str]:
    """The systems whose rankings cannot be compared with the others', with the reason.

    They have no retriever, or the given extractions are not for their layers.
    """
    reasons = {}
    for name, system in systems.items():
        asking = [layer.name for layer in system.layers if _asks_model_anyway(layer, experiment.dataset.openie)]
        if system.retriever is None:
            reasons[name] = _NO_RETRIEVER
        elif asking:
            reasons[name] = f"the given triples are of passages, and {', '.join(asking)} is not"
    return reasons


def _open_tome(experiment: Design, path: Path) -> Tome:
    settings: dict[str, Any] = {"passage_tokens": experiment.passage_tokens, "overlap": experiment.overlap}
    # `replay` answers the ranking from these. They also leave the model open when the tome closes.
    model, embedder = ReplayedModel(experiment.model), ReplayedEmbedder(experiment.embedder)
    return Tome.open(path, model=model, embedder=embedder, prompts=experiment.prompts, **settings)


def _read_passages(tome: Tome) -> dict[str, RankedPassage]:
    return {
        passage.id: RankedPassage(id=passage.id, document=passage.document, start=passage.start, end=passage.end)
        for passage in tome.store.passages().values()
    }


async def build_layers(store: Store, layers: Sequence[Layer], openie: Path | None, report: Report) -> Build:
    """Bring layers up to date, lowest first. Extractions from the file `openie` go only to graphs of passages.

    The tome stores the usage of each layer, so that every system that uses a layer is charged for it. A layer that an
    error stops is charged when a later build finishes it. Raises ModelError.
    """
    with work_alone(store, "build"):
        for layer in layers:
            await _build_layer(store, layer, layers, openie, report)
    usages = [await asyncio.to_thread(_read_cost, store, layer) for layer in layers]
    fallbacks = {layer.name: await asyncio.to_thread(_count_fallbacks, store, layer) for layer in layers}
    notes = [_ASKED_MODEL] if any(_asks_model_anyway(layer, openie) for layer in layers) else []
    records = await asyncio.to_thread(store.notes, BUILDS)
    notes += [note for layer in layers for note in describe_sizes(layer, records.get(layer.name, {}))]
    recorded = {layer.name: records.get(layer.name, {}).get("network") for layer in layers}
    networks = {name: network for name, network in recorded.items() if network}
    counted = {name: count for name, count in fallbacks.items() if count}
    return Build(sum_usages(usages), counted, tuple(notes), networks)


def _asks_model_anyway(layer: Layer, openie: Path | None) -> bool:
    """Whether a graph asks the model despite the file of extractions: its source is not the passages."""
    return openie is not None and isinstance(layer, ImportsExtractions) and layer.source != PASSAGES


async def _build_layer(
    store: Store, layer: Layer, layers: Sequence[Layer], openie: Path | None, report: Report
) -> None:
    if not await asyncio.to_thread(find_changes, layer, store, layers):
        return
    with open_run() as used:
        await build([layer], store, report, provide=_make_provider(store, openie, report) if openie else None)
    await asyncio.to_thread(_add_cost, store, layer, make_usage_record(used))


def _make_provider(store: Store, openie: Path, report: Report) -> Provide:
    """A function that gives the extractions of a file to graphs of passages."""

    async def provide(layer: Layer) -> LayerReport | None:
        if not isinstance(layer, ImportsExtractions) or _asks_model_anyway(layer, openie):
            return None
        extractions = await asyncio.to_thread(read_extractions, openie, store)
        return await layer.import_extractions(extractions, report) if layer.style == extractions.style else None

    return provide


def _read_cost(store: Store, layer: Layer) -> dict[str, Any]:
    usage: dict[str, Any] = json.loads(read_setting(store, _COST + layer.name) or "{}")
    return usage


def _add_cost(store: Store, layer: Layer, usage: dict[str, Any]) -> None:
    text = json.dumps(sum_usages([_read_cost(store, layer), usage]))
    with store.write() as change:
        change.put_note(SETTINGS, _COST + layer.name, text)


def _count_fallbacks(store: Store, layer: Layer) -> int:
    """Count the nodes of a layer whose text replaces what the model should have written, and the texts that failed."""
    replaced = sum("fallback" in node.data for node in store.nodes(layer.name).values())
    return replaced + len(store.intake(layer.name).failed)
