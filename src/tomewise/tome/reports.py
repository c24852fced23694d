"""The reports of a tome's methods."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, ClassVar, Literal

from tomewise.errors import count_noun, describe_seconds
from tomewise.store.contract import Store
from tomewise.store.records import DocumentRecord
from tomewise.types import (
    Cost,
    DocumentId,
    Estimate,
    Lagging,
    LayerReport,
    Limit,
    Noun,
    PassageId,
    Place,
)
from tomewise.types.plain import describe_object

if TYPE_CHECKING:
    pass

_LONG = 10.0  # seconds


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
    skipped: Mapping[str, str] = field(default_factory=dict)
    """The reason for each path that was skipped."""
    moved: tuple[DocumentId, ...] = ()
    """Documents whose file has another path now."""
    kept: Mapping[DocumentId, str] = field(default_factory=dict)
    """With `sync`, documents that keep their former text though their file cannot be read any more, with the reason."""
    resting: tuple[int, ...] = ()
    """The traces of answers that quote removed or kept documents: what they rest on is no longer there."""
    left_out: Mapping[DocumentId, str] = field(default_factory=dict)
    """What was seen in a new or changed document and left out, such as "3 pictures and 1 chart"."""
    guessed: Mapping[DocumentId, str] = field(default_factory=dict)
    """The encoding of each new or changed document that nothing states, such as "cp1252 (guessed)"."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """The reason for each source that could not be read, if the others went on."""
    lagging: Lagging | None = None
    """What a build of the layers that are there would take in and use; None if there is nothing to build."""

    @property
    def losses(self) -> Mapping[str, str]:
        """The reason for each path that was not taken in: what was skipped, and what failed."""
        return {**self.skipped, **self.failed}

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
class Price(Noun):
    """What a build or a question would use, before anything is spent."""

    computed: ClassVar[tuple[str, ...]] = ("accept", "text")
    system: str
    """The system."""
    model: str
    """The model that would be called."""
    layers: tuple[Estimate, ...] = ()
    """By layer, for a build."""
    total: Cost
    """In all; `model_seconds` at the speed that was measured of the model, 0 where none was."""
    bound: Literal["", "at most", "at least"] = ""
    """Whether it may be less, or more, as where what the first reply says decides what follows."""
    instead: Price | None = None
    """The same with another number of passages a call, for comparison."""

    @property
    def accept(self) -> str:
        """A limit on calls and dollars that it keeps where a tenth comes on top, as repairs do."""
        calls, dollars = self.total.calls, self.total.dollars
        most = None if dollars is None else ceil(dollars * 11_000) / 10_000
        return str(Limit(calls=ceil(calls * 11 / 10), dollars=most))

    @property
    def time(self) -> str:
        """How long the model would work; empty for less than ten seconds, and where its speed is not known."""
        seconds = self.total.model_seconds
        return f"about {describe_seconds(seconds)}" if seconds >= _LONG else ""

    @property
    def text(self) -> str:
        """In a line for people."""
        total = self.total
        dollars = "an unknown price" if total.dollars is None else f"${total.dollars:.4f}"
        parts = (count_noun(total.calls, "call"), f"{total.tokens:,} tokens", dollars, self.time)
        return f"{self.bound} ".lstrip() + ", ".join(filter(None, parts))


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
class PassageSpan(Noun):
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
    passages: tuple[PassageSpan, ...]
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
            PassageSpan(id=each.id, position=each.position, start=each.start, end=each.end, place=each.place)
            for each in passages
        ),
    )
