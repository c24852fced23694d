"""The tomes of an experiment: one for each set of documents and model, shared by all its systems and reruns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tomewise.errors import ModelError
from tomewise.evaluate.builds import Build, build_layers, explain_refusal
from tomewise.evaluate.design import Design
from tomewise.evaluate.items import RankedPassage
from tomewise.evaluate.replay import ReplayedEmbedder, ReplayedModel, ReplayedStore
from tomewise.loops.notebooks import BETWEEN_QUOTES, EXTRACTS
from tomewise.store.records import PASSAGES
from tomewise.systems.kit import System
from tomewise.systems.registry import assemble
from tomewise.systems.spec import Variant
from tomewise.tome.tome import Tome
from tomewise.types import Document, Evidence, PassageId, Report

if TYPE_CHECKING:
    from tomewise.store.contract import Store

NO_RETRIEVER = "it has no retriever of its own, or several, so only its answers can be measured"
_DECIMALS = 6  # cosines that differ by less tie


@dataclass(frozen=True, slots=True)
class Memory:
    """A tome and the systems over it. Where the layers of a system could not be built, the error replaces the system.

    `refused` says by system why it is left out. `places` are the places of all passages, by their ids.
    """

    tome: Tome
    systems: Mapping[str, System | ModelError]
    refused: Mapping[str, str]
    places: Mapping[PassageId, RankedPassage]

    def rank_passages(self, question: str, evidence: Sequence[Evidence], depth: int) -> tuple[RankedPassage, ...]:
        """The passages that evidence rests on, best first, each once.

        Evidence that rests on one passage gives this passage its score. Evidence that rests on several passages, such
        as a summary, does not score them: each gets its own cosine with the question, unless it was also found by
        itself. So a summary of many passages does not push better passages down. Retrievers that find both kinds of
        evidence score by cosine, so the two kinds of scores can be compared.
        """
        scores: dict[PassageId, float] = {}
        for piece in evidence:
            if len(piece.sources) == 1:
                scores.setdefault(piece.sources[0], piece.score)
        below = {source for piece in evidence if len(piece.sources) > 1 for source in piece.sources} - set(scores)
        if below:
            scores |= self._cosines(question, below)
            scores = dict(sorted(scores.items(), key=lambda pair: (-pair[1], pair[0])))
        return tuple(self.places[id] for id in scores if id in self.places)[:depth]

    def rank_sources(self, question: str, evidence: Sequence[Evidence], depth: int) -> tuple[RankedPassage, ...]:
        """The passages that evidence rests on, each once, by their own cosine with the question.

        For evidence of several retrievers, whose scores cannot be compared.
        """
        scores = self._cosines(question, {source for piece in evidence for source in piece.sources})
        best = sorted(scores, key=lambda id: (-scores[id], id))
        return tuple(self.places[id] for id in best if id in self.places)[:depth]

    def find_shown(self, evidence: Iterable[Evidence]) -> tuple[RankedPassage, ...]:
        """The passages whose own text is in the evidence, and the words of passages that a loop took out of them.

        A summary does not show its passages.
        """
        pieces = list(evidence)
        shown = [self.places[piece.node] for piece in pieces if piece.layer == PASSAGES and piece.node in self.places]
        return (*shown, *self._find_extracts([piece for piece in pieces if piece.layer == EXTRACTS]))

    def _find_extracts(self, extracts: Sequence[Evidence]) -> Iterator[RankedPassage]:
        """The quotations of which extracts are made, each where it stands in its passage."""
        keys = self.tome.store.keys_of({source for piece in extracts for source in piece.sources})
        passages = {passage.id: passage for passage in self.tome.store.passages(keys.values()).values()}
        for piece in extracts:
            passage = passages[piece.sources[0]]
            for quote in piece.text.split(BETWEEN_QUOTES):
                start = passage.start + passage.text.find(quote)
                if start >= passage.start:
                    end = start + len(quote)
                    yield RankedPassage(id=passage.id, document=passage.document, start=start, end=end)

    def _cosines(self, question: str, passages: Iterable[PassageId]) -> dict[PassageId, float]:
        keys = self.tome.store.keys_of(passages)
        vectors = self.tome.store.rows(PASSAGES, keys.values())
        cosines = vectors @ self.tome.kit.embedder.embed([question])[0]
        return dict(zip(keys, np.round(cosines, _DECIMALS).tolist(), strict=True))


OnBuild = Callable[[Variant, Build], None]


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
    tome = await asyncio.to_thread(_open, experiment, path)
    try:
        await tome.aadd(*documents, on_progress=report)
        # The model keeps its replies in the output folder and charges for each of them: no second cache comes between.
        store = cast("Store", ReplayedStore(tome.store))
        kit = replace(tome.kit, store=store, model=ReplayedModel(experiment.model))
        assembled = {
            variant.name: assemble(variant.recipe or variant.system, kit, **variant.settings) for variant in variants
        }
        refused = _explain_refusals(experiment, assembled) if experiment.retrieval_only else {}
        systems: dict[str, System | ModelError] = {}
        for variant in variants:
            if variant.name in refused:
                continue
            system = assembled[variant.name]
            try:
                on_build(variant, await build_layers(tome.store, system.layers, experiment.dataset.openie, report))
                systems[variant.name] = system
            except ModelError as error:
                systems[variant.name] = error
        return Memory(tome, systems, refused, await asyncio.to_thread(_places, tome))
    except BaseException:
        tome.close()
        raise


def _explain_refusals(experiment: Design, systems: Mapping[str, System]) -> dict[str, str]:
    """The systems whose rankings cannot be compared with the others', with the reason."""
    openie = experiment.dataset.openie
    reasons = {
        name: NO_RETRIEVER if system.retriever is None else explain_refusal(system.layers, openie)
        for name, system in systems.items()
    }
    return {name: reason for name, reason in reasons.items() if reason}


def _open(experiment: Design, path: Path) -> Tome:
    settings: dict[str, Any] = {"passage_tokens": experiment.passage_tokens, "overlap": experiment.overlap}
    # `replay` answers the ranking from these. They also leave the model open when the tome closes.
    model, embedder = ReplayedModel(experiment.model), ReplayedEmbedder(experiment.embedder)
    return Tome.open(path, model=model, embedder=embedder, prompts=experiment.prompts, **settings)


def _places(tome: Tome) -> dict[str, RankedPassage]:
    return {
        passage.id: RankedPassage(id=passage.id, document=passage.document, start=passage.start, end=passage.end)
        for passage in tome.store.passages().values()
    }
