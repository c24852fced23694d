"""The reports of a tome's methods, and the JSON that programs read."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from tomewise.brief import describe_object
from tomewise.language.providers import price
from tomewise.memory.grounds import find_grounds
from tomewise.memory.passages import Outcome
from tomewise.place import as_plain_data
from tomewise.types import Answer, Estimate, Event, Evidence, FromSession, LayerReport, Passage, Usage

if TYPE_CHECKING:
    from tomewise.memory.passages import TakenDocument
    from tomewise.store.contract import Store
    from tomewise.systems.variants import Variant

_MOST_NEAREST = 3  # passages that are shown when a question is declined


@dataclass(frozen=True, slots=True)
class AddReport:
    """The result of `add`: the ids of documents by outcome, and the reason for each path that was skipped.

    `removed` are documents that their file, such as a corpus, had when it was last added and no longer has, and with
    `sync` those whose file is gone; `moved` those whose file has another path now. `failed` has the reason for each
    source that could not be read, if the others went on.
    """

    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    passages: int = 0
    skipped: Mapping[str, str] | None = None
    moved: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        counts = {name: len(value) for name in self.__slots__ if isinstance(value := getattr(self, name), Sized)}
        return describe_object(self, **{name: count for name, count in counts.items() if count}, passages=self.passages)

    @classmethod
    def of(
        cls,
        taken: Sequence[TakenDocument],
        skipped: Mapping[str, str],
        moved: Sequence[str] = (),
        failed: Mapping[str, str] | None = None,
    ) -> AddReport:
        """The report on these documents. A document that moved is not among those that are unchanged."""
        by_outcome = {
            outcome: tuple(item.document for item in taken if item.outcome == outcome) for outcome in get_args(Outcome)
        }
        by_outcome["unchanged"] = tuple(name for name in by_outcome["unchanged"] if name not in set(moved))
        passages = sum(item.passages for item in taken)
        return cls(**by_outcome, passages=passages, skipped=skipped, moved=tuple(moved), failed=failed or {})


@dataclass(frozen=True, slots=True)
class BuildReport:
    """The result of `build`, layer by layer, and its cost."""

    layers: tuple[LayerReport, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class RemoveReport:
    """The result of `remove`: the ids of the documents, and how many passages and derived nodes went with them.

    `document` is the id, or for several documents the name that was given.
    """

    document: str
    passages: int
    derived: int
    documents: tuple[str, ...] = ()


def as_json(answer: Answer) -> dict[str, Any]:
    """An answer as the object that `tome ask --json` prints."""
    return {
        "answer": answer.text,
        "choice": answer.choice,
        "resolved": answer.resolved,
        "forced": answer.forced,
        "supported": answer.supported,
        "missing": answer.missing,
        "system": answer.system,
        "model": answer.model,
        "citations": [{**asdict(citation), "place": as_plain_data(citation.place)} for citation in answer.citations],
        "dropped_quotes": answer.dropped_quotes,
        "derived_quotes": answer.derived_quotes,
        "usage": usage_json(answer.usage),
        "session": session_json(answer.session),
    }


def event_json(event: Event) -> dict[str, Any]:
    """An event as plain data, whatever a loop from outside put into it.

    What JSON has no form for becomes its `repr`. Keys that are no text are left out, as is a detail that holds itself.
    """
    try:
        detail = json.loads(json.dumps(dict(event.detail), default=repr, skipkeys=True))
    except (ValueError, RecursionError):
        detail = {}
    return {"name": event.name, "step": event.step, "summary": event.summary, "detail": detail}


def session_json(origin: FromSession | None) -> dict[str, Any] | None:
    """What an answer took from its session, as `tome ask --json` prints it."""
    if origin is None:
        return None
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(origin).items()}


def nearest_json(passages: Sequence[Passage]) -> list[dict[str, Any]]:
    """The passages nearest to a declined question, as `tome ask --json` prints them."""
    return [
        {
            "document": passage.document,
            "passage": passage.id,
            "position": passage.position,
            "start": passage.start,
            "end": passage.end,
            "title": passage.title,
            "place": as_plain_data(passage.place),
            "text": passage.text,
        }
        for passage in passages
    ]


def evidence_json(found: Sequence[Evidence], store: Store) -> list[dict[str, Any]]:
    """The evidence of a search, as `tome search --json` prints it. The first piece is the best.

    `rewrite` is the rewritten question that brought the piece, with the name in it and the passage that gave the name.
    """
    places = store.places({source for piece in found for source in piece.sources})
    return [
        {
            "node": piece.node,
            "layer": piece.layer,
            "score": piece.score,
            "title": piece.title,
            "place": as_plain_data(piece.place),
            "text": piece.text,
            "sources": [
                {"document": places[source][0], "passage": source, "position": places[source][1]}
                for source in piece.sources
                if source in places  # a passage may have been removed since
            ],
            "rewrite": asdict(piece.rewrite) if piece.rewrite else None,
        }
        for piece in found
    ]


def usage_json(usage: Usage) -> dict[str, Any]:
    """The usage of an answer or a build, as `--json` prints it."""
    roles = {
        role: {
            "calls": spent.calls,
            "input_tokens": spent.input_tokens,
            "output_tokens": spent.output_tokens,
            "cached_tokens": spent.cached_tokens,
            "reasoning_tokens": spent.reasoning_tokens,
            "cost": spent.cost,
            "model_seconds": spent.seconds,
        }
        for role, spent in sorted(usage.roles.items())
    }
    return {
        "calls": usage.total.calls,
        "input_tokens": usage.total.input_tokens,
        "output_tokens": usage.total.output_tokens,
        "cached_tokens": usage.total.cached_tokens,
        "reasoning_tokens": usage.total.reasoning_tokens,
        "cost": usage.total.cost,
        "model_seconds": usage.model_seconds,
        "own_seconds": usage.own_seconds,
        "depth": usage.depth,
        "roles": roles,
    }


def find_nearest(answer: Answer, store: Store) -> list[Passage]:
    """The best passages of the evidence if the question was declined; an empty list if it was answered."""
    if answer.resolved:
        return []
    ranked = sorted(answer.evidence, key=lambda piece: (piece.node not in piece.sources, -piece.score))
    sources = list(dict.fromkeys(source for piece in ranked for source in piece.sources))[:_MOST_NEAREST]
    keys = store.keys_of(sources)
    passages = store.passages(keys.values())
    return [passages[keys[source]] for source in sources if keys.get(source) in passages]


def costs_json(estimates: Sequence[Estimate], variant: Variant, model: str) -> dict[str, Any]:
    """The object that `tome build --estimate --json` prints: calls, tokens and dollars by layer, and their sums."""

    def find_price(estimate: Estimate) -> float | None:
        if not estimate.calls or estimate.model == "extractive":
            return 0.0
        if not estimate.model or "," in estimate.model:  # not known which of its calls are whose
            return None
        return price(estimate.model, estimate.input_tokens, estimate.output_tokens)

    layers = [
        {
            "layer": estimate.layer,
            "calls": estimate.calls,
            "input_tokens": estimate.input_tokens,
            "output_tokens": estimate.output_tokens,
            "cost": find_price(estimate),
        }
        for estimate in estimates
    ]
    sums = {name: sum(layer[name] for layer in layers) for name in ("calls", "input_tokens", "output_tokens")}  # type: ignore[misc]
    costs = [layer["cost"] for layer in layers if layer["cost"] is not None]
    total = {**sums, "cost": sum(costs) if len(costs) == len(layers) else None}  # type: ignore[arg-type]
    return {"system": variant.name, "model": model, "layers": layers, "total": total}


def build_json(report: BuildReport, store: Store) -> dict[str, Any]:
    """The object that `tome build --json` prints. Each failure has the places of the passages that it concerns."""
    layers = [
        {
            "layer": layer.layer,
            "added": layer.added,
            "removed": layer.removed,
            "failed": _locate_failures(store, layer.failed),
            "notes": list(layer.notes),
        }
        for layer in report.layers
    ]
    return {"layers": layers, "usage": usage_json(report.usage)}


def _locate_failures(store: Store, reasons: Mapping[int, str]) -> list[dict[str, Any]]:
    """The failed nodes by key, with the places of the passages that each rests on; none for a node that is gone."""
    nodes = store.nodes_at(reasons)
    grounds = {key: find_grounds(store, [key], node.layer)[key] for key, node in nodes.items()}
    passages = store.passages({source for sources in grounds.values() for source in sources})
    return [
        {
            "node": key,
            "reason": reason,
            "sources": [
                {"document": passages[source].document, "position": passages[source].position}
                for source in grounds.get(key, ())
                if source in passages
            ],
        }
        for key, reason in reasons.items()
    ]


def contents_json(store: Store) -> dict[str, Any]:
    """The object that `tome show --json` prints."""
    return {
        "tome": store.address,
        "embedder": store.meta("embedder"),
        "passage_tokens": int(store.meta("passage_tokens") or 0),
        "overlap": int(store.meta("overlap") or 0),
        "bytes": store.size(),
        "cache_bytes": store.cache_size(),
        "layers": store.layers(),
        "documents": [
            {
                "id": record.id,
                "title": record.title,
                "source": record.source,
                "characters": record.characters,
                "passages": record.passages,
                "metadata": record.metadata,
            }
            for record in store.documents()
        ],
        "replies": _list_records(store, "replies"),
        "networks": _list_records(store, "network"),
        "failed": _list_failures(store),
    }


def _list_records(store: Store, name: str) -> dict[str, Any]:
    """What the layers record under this name, for those that do."""
    return {layer: record[name] for layer, record in store.builds().items() if name in record}


def _list_failures(store: Store) -> list[dict[str, Any]]:
    """The failures of all layers, by layer, document and reason, with the positions of the passages concerned."""
    positions: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for layer, counts in store.layers().items():
        reasons = store.intake(layer).failed if counts["failed"] else {}
        for key, node in store.nodes_at(reasons).items():
            sources = find_grounds(store, [key], node.layer)[key]
            for passage in store.passages(sources).values():
                positions[layer, passage.document, reasons[key]].add(passage.position)
    return [
        {"layer": layer, "document": document, "passages": sorted(places), "reason": reason}
        for (layer, document, reason), places in sorted(positions.items())
    ]
