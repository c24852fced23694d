"""The reports of a tome's methods, and what answers and evidence say that needs the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from tomewise.loops.evidence import EXTRACTS
from tomewise.store.contract import Store
from tomewise.store.lookups import find_keys, read_places
from tomewise.store.records import PASSAGES, DocumentRecord
from tomewise.systems.lag import price_estimate
from tomewise.types import (
    Answer,
    Cost,
    Coverage,
    DocumentId,
    Estimate,
    Evidence,
    Lagging,
    LayerReport,
    Noun,
    Passage,
    PassageId,
    Place,
    Question,
    Source,
)
from tomewise.types.plain import describe_object

if TYPE_CHECKING:
    from tomewise.systems.registry import Variant

_MOST_NEAREST = 3  # passages that are shown when a question is declined
_READ = (PASSAGES, EXTRACTS)  # the layers of evidence that are words of passages


@dataclass(frozen=True, slots=True)
class AddReport(Noun):
    """The result of `add`: the ids of documents by outcome."""

    computed: ClassVar[tuple[str, ...]] = ("losses",)
    added: tuple[DocumentId, ...] = ()
    """Documents that are new."""
    replaced: tuple[DocumentId, ...] = ()
    """Documents whose text changed."""
    unchanged: tuple[DocumentId, ...] = ()
    """Documents that cost nothing."""
    removed: tuple[DocumentId, ...] = ()
    """Documents that their file, such as a corpus, no longer has, and with `sync` those whose file is gone."""
    passages: int = 0
    """How many passages the new and the changed documents have."""
    skipped: Mapping[str, str] | None = None
    """The reason for each path that was skipped."""
    moved: tuple[DocumentId, ...] = ()
    """Documents whose file has another path now."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """The reason for each source that could not be read, if the others went on."""
    lagging: Lagging | None = None
    """What a build of the layers that are there would take in and use; None if there is nothing to build."""

    @property
    def losses(self) -> Mapping[str, str]:
        """The reason for each path that was not taken in: what was skipped, and what failed."""
        return {**(self.skipped or {}), **self.failed}

    def __repr__(self) -> str:
        counts = {name: len(value) for name in self.__slots__ if isinstance(value := getattr(self, name), Sized)}
        return describe_object(self, **{name: count for name, count in counts.items() if count}, passages=self.passages)


@dataclass(frozen=True, slots=True)
class BuildReport(Noun):
    """The result of `build`, layer by layer, and its cost."""

    layers: tuple[LayerReport, ...]
    """What happened to each layer, the lowest first."""
    cost: Cost
    """What all layers cost together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildCosts(Noun):
    """What a build would use, before anything is spent."""

    system: str
    """The system."""
    model: str
    """The model that would be called."""
    layers: tuple[Estimate, ...]
    """By layer."""
    total: Cost
    """In all."""
    instead: BuildCosts | None = None
    """The same with another number of passages a call, for comparison."""


@dataclass(frozen=True, slots=True)
class RemoveReport(Noun):
    """The result of `remove`."""

    document: DocumentId
    """The id, or for several documents the name that was given."""
    passages: int
    """How many passages went."""
    derived: int
    """How many nodes of layers went with them."""
    documents: tuple[DocumentId, ...] = ()
    """The ids of the documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span(Noun):
    """Where a passage stands: characters `start` to `end` of its document; `position` counts its passages from 0."""

    id: PassageId
    position: int
    start: int
    end: int
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice(Noun):
    """A part of the text of a document: characters `start` to `end` of `characters`."""

    document: DocumentId
    title: str
    start: int
    end: int
    characters: int
    text: str
    passages: tuple[Span, ...]
    """The passages that have some of them."""


@dataclass(frozen=True, slots=True)
class Foresight(Noun):
    """The passages of documents, and the nodes that would go with them by layer.

    What was paid for, in money or in time, is counted; what it cost is not kept.
    """

    passages: int
    """How many passages there are."""
    layers: Mapping[str, int]
    """Nodes of layers, by layer."""
    paid: Mapping[str, int]
    """Those of them that rest on replies of a model, by its name; the extractive model is free."""

    @property
    def derived(self) -> int:
        """How many nodes go beside the passages."""
        return sum(self.layers.values())


def complete_evidence(found: Sequence[Evidence], store: Store) -> tuple[Evidence, ...]:
    """The same evidence with its kind, the documents that each piece rests on, and the metadata of the only one."""
    places = read_places(store, {source for piece in found for source in piece.sources})
    origins = [
        tuple(
            Source(document=places[source][0], passage=source, position=places[source][1])
            for source in piece.sources
            if source in places  # a passage may have been removed since
        )
        for piece in found
    ]
    documents = [{source.document for source in group} for group in origins]
    records = store.documents({document for group in documents if len(group) == 1 for document in group})
    metadata = {record.id: record.metadata for record in records}
    return tuple(
        replace(
            piece,
            kind=piece.kind or ("passage" if piece.layer == PASSAGES else piece.layer),
            origins=group,
            metadata=metadata.get(group[0].document, {}) if len(names) == 1 else {},
        )
        for piece, group, names in zip(found, origins, documents, strict=True)
    )


def complete_answer(answer: Answer, question: Question, store: Store) -> Answer:
    """The answer with its scope and coverage, what its evidence rests on, and, if declined, the nearest passages."""
    keys = store.keys_within(question.within)
    shown = {source for piece in answer.evidence if piece.layer in _READ for source in piece.sources}
    cuts = [cut for event in answer.events if isinstance(cut := event.detail.get("cut"), int)]
    return replace(
        answer,
        evidence=complete_evidence(answer.evidence, store),
        coverage=Coverage(
            passages=store.count_passages() if keys is None else len(keys),
            read=max(answer.coverage.read, len(shown)),  # a loop that reads in chunks has counted these itself
            dropped=cuts[-1] if cuts else 0,
        ),
        within=question.within,
        nearest=() if answer.resolved else _find_nearest(answer, store),
    )


def _find_nearest(answer: Answer, store: Store) -> tuple[Passage, ...]:
    """The best passages of the evidence."""
    ranked = sorted(answer.evidence, key=lambda piece: (piece.id not in piece.sources, -piece.score))
    sources = list(dict.fromkeys(source for piece in ranked for source in piece.sources))[:_MOST_NEAREST]
    keys = find_keys(store, sources)
    passages = store.passages(keys.values())
    return tuple(passages[keys[source]] for source in sources if keys.get(source) in passages)


def read_slice(record: DocumentRecord, start: int, end: int, store: Store) -> Slice:
    """The characters `start` to `end` of a document, with the passages that have some of them."""
    text = store.text_between(record.id, start, end)
    passages = store.passages(documents=[record.id], between=(start, start + len(text))).values()
    return Slice(
        document=record.id,
        title=record.title,
        start=start,
        end=start + len(text),
        characters=record.characters,
        text=text,
        passages=tuple(
            Span(id=each.id, position=each.position, start=each.start, end=each.end, place=each.place)
            for each in passages
        ),
    )


def sum_estimates(estimates: Sequence[Estimate], variant: Variant, model: str) -> BuildCosts:
    """What a build would use: by layer, and in all."""
    layers = tuple(map(price_estimate, estimates))
    return BuildCosts(
        system=variant.name, model=model, layers=layers, total=sum((layer.cost for layer in layers), Cost())
    )
