"""The memories of an experiment, and what its systems answer over them, as rows.

There is a tome for each set of documents and model. All systems of an experiment and all its runs share them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tomewise.concurrency import run_side_by_side
from tomewise.errors import ModelError
from tomewise.evaluate.design import DEPTH, Design
from tomewise.evaluate.digests import digest_documents, digest_prompts
from tomewise.evaluate.items import Item, Prediction, RankedPassage
from tomewise.evaluate.replay import ask_as_before, remember_question, replay
from tomewise.evaluate.rows import Row, make_cost_record, read_answer_fields, sum_costs
from tomewise.language.wrapped import SharedModel, Wrapped
from tomewise.loops.evidence import EXTRACTS
from tomewise.loops.read_through import BETWEEN_QUOTES
from tomewise.memory.building import Provide, build, find_changes
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.imports.extraction_file import read_extractions
from tomewise.memory.neighbours import describe_sizes
from tomewise.run import Meter, open_run
from tomewise.store.lookups import find_keys, read_setting
from tomewise.store.records import BUILDS, PASSAGES, SETTINGS
from tomewise.store.rights import work_alone
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import System
from tomewise.systems.registry import Variant, assemble
from tomewise.tome.computing import let_compute
from tomewise.tome.tome import Tome
from tomewise.types import Document, Evidence, Layer, LayerReport, PassageId, Report

if TYPE_CHECKING:
    from tomewise.store.contract import Store

_NO_RETRIEVER = "it has no retriever of its own, or several, so only its answers can be measured"
_ASKED_MODEL = "asked the model: the given triples are of passages"
_COST = "evaluated cost of "  # the key of the cost of a layer in its tome
_DECIMALS = 6  # cosines that differ by less tie


@dataclass(frozen=True, slots=True)
class BuiltMemory:
    """A tome and the systems over it. Where the layers of a system could not be built, the error replaces the system.

    `builds` says by system what building its layers took, `refused` why it is left out. `passages` are all passages of
    the tome, by their ids.
    """

    tome: Tome
    systems: Mapping[str, System | ModelError]
    builds: Mapping[str, Build]
    refused: Mapping[str, str]
    passages: Mapping[PassageId, RankedPassage]

    def rank_passages(
        self, question: str, evidence: Sequence[Evidence], *, of_one_retriever: bool
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
        return tuple(self.passages[id] for id in scores if id in self.passages)[:DEPTH]

    def find_shown(self, evidence: Iterable[Evidence]) -> tuple[RankedPassage, ...]:
        """The passages whose own text is in the evidence, and the parts of passages that a loop quoted.

        A summary does not show its passages.
        """
        pieces = list(evidence)
        shown = [self.passages[piece.id] for piece in pieces if piece.layer == PASSAGES and piece.id in self.passages]
        return (*shown, *self._find_extracts([piece for piece in pieces if piece.layer == EXTRACTS]))

    def _find_extracts(self, extracts: Sequence[Evidence]) -> Iterator[RankedPassage]:
        """Where the quotations in extracts are in their passages."""
        keys = find_keys(self.tome.store, {source for piece in extracts for source in piece.sources})
        passages = {passage.id: passage for passage in self.tome.store.passages(keys.values()).values()}
        for piece in extracts:
            passage = passages[piece.sources[0]]
            for quote in piece.text.split(BETWEEN_QUOTES):
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

    `cost` is that of all its layers, also of those that another system had built. `fallbacks` counts by layer the texts
    that failed. `notes` say what a reader of a table must know. `networks` are by layer the networks that layers record
    (see `memory.schemata.describe_network`).
    """

    cost: dict[str, Any]
    fallbacks: dict[str, int]
    notes: tuple[str, ...]
    networks: dict[str, Any] = field(default_factory=dict)


async def open_memory(
    experiment: Design,
    variants: Collection[Variant],
    documents: Sequence[Document],
    path: Path,
    report: Report,
) -> BuiltMemory:
    """The memory of documents at `path`, brought up to date for the variants. Raises StoreError, Locked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tome = await asyncio.to_thread(_open_tome, experiment, path)
    try:
        # The model keeps its replies in the output folder and charges for each of them: no second cache comes between.
        kit = replace(tome.kit, model=Wrapped(experiment.model, ask_as_before))
        assembled = {
            variant.name: let_compute(assemble(variant.recipe or variant.system, kit, **variant.settings), kit)
            for variant in variants
        }
        refused = _explain_refusals(experiment, assembled) if experiment.retrieval_only else {}
        systems: dict[str, System | ModelError] = {}
        builds: dict[str, Build] = {}
        size = experiment.batch or max(len(documents), 1)
        for start in range(0, max(len(documents), 1), size):
            await tome.aadd(*documents[start : start + size], on_progress=report)
            for name, system in assembled.items():
                if name in refused:
                    continue
                systems[name] = system
                try:
                    builds[name] = await build_layers(tome.store, system.layers, experiment.dataset.openie, report)
                except ModelError as error:
                    systems[name] = error
        return BuiltMemory(tome, systems, builds, refused, await asyncio.to_thread(_read_passages, tome))
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
    settings = {name: getattr(experiment, name) for name in ("passage_tokens", "overlap", "prompts")}
    model = SharedModel(experiment.model)  # which stays open when the tome closes
    return Tome.open(path, model=model, embedder=experiment.embedder, settings=settings)


def _read_passages(tome: Tome) -> dict[str, RankedPassage]:
    return {
        passage.id: RankedPassage(id=passage.id, document=passage.document, start=passage.start, end=passage.end)
        for passage in tome.store.passages().values()
    }


async def build_layers(store: Store, layers: Sequence[Layer], openie: Path | None, report: Report) -> Build:
    """Bring layers up to date, lowest first. Extractions from the file `openie` go only to graphs of passages.

    The tome stores the cost of each layer, so that every system that uses a layer is charged for it. A layer that an
    error stops is charged when a later build finishes it. Raises ModelError.
    """
    provide = _make_provider(store, openie, report) if openie else None
    with work_alone(store, "build"):
        for layer in layers:
            if await asyncio.to_thread(find_changes, layer, store, layers):
                with open_run() as used:
                    await build([layer], store, report, provide=provide)
                await asyncio.to_thread(_add_cost, store, layer, make_cost_record(used))
    return await asyncio.to_thread(_describe_build, store, layers, openie)


def _describe_build(store: Store, layers: Sequence[Layer], openie: Path | None) -> Build:
    kept = store.notes(BUILDS)
    records = {layer.name: kept.get(layer.name, {}) for layer in layers}
    notes = [_ASKED_MODEL] if any(_asks_model_anyway(layer, openie) for layer in layers) else []
    return Build(
        cost=sum_costs(_read_cost(store, layer) for layer in layers),
        fallbacks={layer.name: count for layer in layers if (count := len(store.intake(layer.name).failed))},
        notes=(*notes, *(note for layer in layers for note in describe_sizes(layer, records[layer.name]))),
        networks={name: record["network"] for name, record in records.items() if record.get("network")},
    )


def _asks_model_anyway(layer: Layer, openie: Path | None) -> bool:
    """Whether a graph asks the model despite the file of extractions: its source is not the passages."""
    return openie is not None and isinstance(layer, GraphLayer) and layer.names.source != PASSAGES


def _make_provider(store: Store, openie: Path, report: Report) -> Provide:
    """A function that gives the extractions of a file to graphs of passages."""

    async def provide(layer: Layer) -> LayerReport | None:
        if not isinstance(layer, GraphLayer) or _asks_model_anyway(layer, openie):
            return None
        extractions = await asyncio.to_thread(read_extractions, openie, store)
        return await layer.import_extractions(extractions, report) if layer.names.style == extractions.style else None

    return provide


def _read_cost(store: Store, layer: Layer) -> dict[str, Any]:
    cost: dict[str, Any] = json.loads(read_setting(store, _COST + layer.name) or "{}")
    return cost


def _add_cost(store: Store, layer: Layer, cost: dict[str, Any]) -> None:
    text = json.dumps(sum_costs([_read_cost(store, layer), cost]))
    with store.write() as change:
        change.put_note(SETTINGS, _COST + layer.name, text)


KeyedItem: TypeAlias = tuple[str, Variant, Item]  # with the key of its row


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A memory was built: what that took by system, and why systems are left out."""

    builds: Mapping[str, Build]
    refused: Mapping[str, str]


Message: TypeAlias = Opened | Row
Send: TypeAlias = Callable[[Message], Awaitable[None]]


class GroupsHere:
    """Asks the systems of an experiment, whose model pays for each reply once. Memories lie in a `folder`.

    One memory is opened at a time; the next one is built while the last questions over one are asked.
    """

    def __init__(
        self, experiment: Design, folder: Path, slots: asyncio.Semaphore, report: Report = lambda _: None
    ) -> None:
        self._experiment = experiment
        self._folder = folder
        self._slots = slots
        self._report = report
        self._prompts = digest_prompts(experiment.prompts)[:16]
        self._opening = asyncio.Lock()

    async def ask_group(self, documents: tuple[Document, ...], questions: Sequence[KeyedItem], send: Send) -> None:
        """Build the memory of documents and ask over it, each question when a slot is free; `send` gets what comes out.

        Refused systems are not asked.
        """
        path = self._folder / f"{self._experiment.name_memory(digest_documents(documents))}.tome"
        variants = {variant.name: variant for _, variant, _ in questions}

        async def ask(key: str, variant: Variant, item: Item, memory: BuiltMemory) -> None:
            try:
                await send(await self._ask(key, variant, item, memory))
            finally:
                self._slots.release()

        with ExitStack() as closing:
            async with run_side_by_side() as under_way, self._opening:
                memory = await open_memory(self._experiment, variants.values(), documents, path, self._report)
                closing.callback(memory.tome.close)
                await send(Opened(builds=memory.builds, refused=memory.refused))
                for key, variant, item in questions:
                    if variant.name not in memory.refused:
                        await self._slots.acquire()
                        under_way.create_task(ask(key, variant, item, memory))

    async def listen(self) -> None:
        """Nothing comes from elsewhere."""

    async def _ask(self, key: str, variant: Variant, item: Item, memory: BuiltMemory) -> Row:
        """Ask a question and return its row, also where the question fails."""
        row = Row(
            key=key,
            system=variant.name,
            item=item,
            asked=datetime.now(UTC).isoformat(timespec="seconds"),
            versions=self._describe_versions(variant),
        )
        system = memory.systems[variant.name]
        if isinstance(system, ModelError):
            return replace(row, error=_describe_error(system))
        with remember_question(), open_run() as used:
            try:
                fields = await self._answer_and_rank(system, item, memory, used)
            except ModelError as error:
                return replace(row, error=_describe_error(error), cost=make_cost_record(used))
        return replace(row, **fields)

    async def _answer_and_rank(self, system: System, item: Item, memory: BuiltMemory, used: Meter) -> Mapping[str, Any]:
        """The fields of a row: the answer of a system, and a ranking where the item has gold.

        The ranking is that of the system's retriever, or of what the answering call was shown.
        """
        if self._experiment.retrieval_only:
            if system.retriever is None:
                raise RuntimeError("a system without a retriever is refused before its first question")
            evidence = await system.retriever.retrieve(item.question.text, DEPTH, within=item.question.within)
            fields = {"resolved": True, **_read_costs(used)}
            prediction = Prediction()
        else:
            # A guess too is an answer: the row says how sure it is, and the table shows the risk.
            answer = await answer_question(system, replace(item.question, force=self._experiment.force, current=True))
            fields = {**read_answer_fields(answer), **_read_costs(used)}
            if not (item.supporting or item.spans):
                return fields
            prediction = replace(fields["prediction"], shown=memory.find_shown(answer.evidence))
            if system.retriever is None:
                fields["ranked_by"], evidence = "shown", list(answer.evidence)
            else:
                with replay():
                    evidence = await system.retriever.retrieve(item.question.text, DEPTH, within=item.question.within)
        by_one, text = system.retriever is not None, item.question.text
        ranked = await asyncio.to_thread(memory.rank_passages, text, evidence, of_one_retriever=by_one)
        return {**fields, "prediction": replace(prediction, ranked=ranked)}

    def _describe_versions(self, variant: Variant) -> dict[str, Any]:
        experiment = self._experiment
        return {
            "tomewise": version("tomewise"),
            "prompts": self._prompts,
            "model": experiment.model.name,
            "embedder": experiment.embedder.name,
            "settings": dict(variant.settings),
            "seed": experiment.seed,
        }


def _read_costs(used: Meter) -> dict[str, Any]:
    """What answering took, before a ranking is added to it."""
    return {"cost": make_cost_record(used), "fallbacks": dict(used.fallbacks)}


def _describe_error(error: ModelError) -> str:
    return f"{type(error).__name__}: {error}"
