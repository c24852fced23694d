"""The reports of a tome's methods, and what goes out of a tome (`tomewise.outgoing`) that needs its store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tomewise.brief import describe_object
from tomewise.memory.grounds import find_grounds
from tomewise.outgoing import passage_models, report_models
from tomewise.outgoing.form import Naming, read_fields
from tomewise.store.contract import Store
from tomewise.store.lookups import find_keys, read_places
from tomewise.store.records import DocumentRecord
from tomewise.systems.lag import price_estimate
from tomewise.types import Answer, Estimate, Evidence, Lagging, LayerReport, Passage, Usage

if TYPE_CHECKING:
    from tomewise.systems.registry import Variant

_MOST_NEAREST = 3  # passages that are shown when a question is declined


@dataclass(frozen=True, slots=True)
class AddReport:
    """The result of `add`: the ids of documents by outcome."""

    added: tuple[str, ...] = ()
    """Documents that are new."""
    replaced: tuple[str, ...] = ()
    """Documents whose text changed."""
    unchanged: tuple[str, ...] = ()
    """Documents that cost nothing."""
    removed: tuple[str, ...] = ()
    """Documents that their file, such as a corpus, no longer has, and with `sync` those whose file is gone."""
    passages: int = 0
    """How many passages the new and the changed documents have."""
    skipped: Mapping[str, str] | None = None
    """The reason for each path that was skipped."""
    moved: tuple[str, ...] = ()
    """Documents whose file has another path now."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """The reason for each source that could not be read, if the others went on."""
    lagging: Lagging | None = None
    """What a build of the layers that are there would take in and use; None if there is nothing to build."""

    def __repr__(self) -> str:
        counts = {name: len(value) for name in self.__slots__ if isinstance(value := getattr(self, name), Sized)}
        return describe_object(self, **{name: count for name, count in counts.items() if count}, passages=self.passages)


@dataclass(frozen=True, slots=True)
class BuildReport:
    """The result of `build`, layer by layer, and its cost."""

    layers: tuple[LayerReport, ...]
    """What happened to each layer, the lowest first."""
    usage: Usage
    """What all layers cost together."""


@dataclass(frozen=True, slots=True)
class RemoveReport:
    """The result of `remove`."""

    document: str
    """The id, or for several documents the name that was given."""
    passages: int
    """How many passages went."""
    derived: int
    """How many nodes of layers went with them."""
    documents: tuple[str, ...] = ()
    """The ids of the documents."""


@dataclass(frozen=True, slots=True)
class Foresight:
    """The passages of documents, and the nodes that go with them by layer.

    `paid` counts those that rest on replies of a model, by the names of the models: memory that was paid for, in money
    or in time. The extractive model is free. What each of them cost is not kept.
    """

    passages: int
    layers: Mapping[str, int]
    paid: Mapping[str, int]

    @property
    def derived(self) -> int:
        """How many nodes go beside the passages."""
        return sum(self.layers.values())


def describe_evidence(
    found: Sequence[Evidence], store: Store, naming: Naming | None = None
) -> list[passage_models.Evidence]:
    """The evidence of a search as it goes out, with the passages that each piece rests on. The first is the best."""
    places = read_places(store, {source for piece in found for source in piece.sources})
    return [
        passage_models.Evidence.of(
            piece,
            naming,
            sources=[
                {"document": places[source][0], "passage": source, "position": places[source][1]}
                for source in piece.sources
                if source in places  # a passage may have been removed since
            ],
        )
        for piece in found
    ]


def find_nearest(answer: Answer, store: Store) -> list[Passage]:
    """The best passages of the evidence if the question was declined; an empty list if it was answered."""
    if answer.resolved:
        return []
    ranked = sorted(answer.evidence, key=lambda piece: (piece.node not in piece.sources, -piece.score))
    sources = list(dict.fromkeys(source for piece in ranked for source in piece.sources))[:_MOST_NEAREST]
    keys = find_keys(store, sources)
    passages = store.passages(keys.values())
    return [passages[keys[source]] for source in sources if keys.get(source) in passages]


def describe_slice(
    record: DocumentRecord, start: int, end: int, store: Store, naming: Naming | None = None
) -> passage_models.Slice:
    """The characters `start` to `end` of a document as they go out, with the passages that have some of them."""
    text = store.text_between(record.id, start, end)
    passages = list(store.passages(documents=[record.id], between=(start, start + len(text))).values())
    part = {"document": record.id, "start": start, "end": start + len(text), "text": text, "passages": passages}
    return passage_models.Slice.of(record, naming, **part)


def describe_costs(estimates: Sequence[Estimate], variant: Variant, model: str) -> report_models.BuildCosts:
    """What a build would use as it goes out: calls, tokens and dollars by layer, and their sums."""

    layers = [report_models.LayerCosts.of(estimate, cost=price_estimate(estimate)) for estimate in estimates]
    costs = [layer.cost for layer in layers if layer.cost is not None]
    total = report_models.Costs(
        calls=sum(layer.calls for layer in layers),
        input_tokens=sum(layer.input_tokens for layer in layers),
        output_tokens=sum(layer.output_tokens for layer in layers),
        cost=sum(costs) if len(costs) == len(layers) else None,
    )
    return report_models.BuildCosts(system=variant.name, model=model, layers=layers, total=total)


def describe_build(report: BuildReport, store: Store, naming: Naming | None = None) -> report_models.BuildReport:
    """The report of a build as it goes out. Each failure has the passages that it concerns."""
    layers = [{**read_fields(layer), "failed": _locate_failures(store, layer.failed)} for layer in report.layers]
    return report_models.BuildReport.of({"layers": layers, "usage": report.usage}, naming)


def _locate_failures(store: Store, reasons: Mapping[int, str]) -> list[dict[str, Any]]:
    """The failed nodes by key, with the passages that each rests on; none for a node that is gone."""
    nodes = store.nodes_at(reasons)
    grounds = {key: find_grounds(store, [key], node.layer)[key] for key, node in nodes.items()}
    passages = store.passages({source for sources in grounds.values() for source in sources})
    return [
        {
            "node": key,
            "reason": reason,
            "sources": [
                {"document": passage.document, "passage": passage.id, "position": passage.position}
                for source in grounds.get(key, ())
                if (passage := passages.get(source))
            ],
        }
        for key, reason in reasons.items()
    ]
