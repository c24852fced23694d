"""What the verbs of a tome report, and the JSON that programs read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tomewise.language.price import price
from tomewise.memory.grounds import find_grounds

if TYPE_CHECKING:
    from tomewise.store.sqlite.store import SqliteStore
    from tomewise.systems.spec import Variant
    from tomewise.tome.tome import Tome
from tomewise.types import Answer, Estimate, LayerReport, Passage, Usage

_NEAREST = 3  # passages shown where a question is declined


@dataclass(frozen=True, slots=True)
class AddReport:
    """What an `add` did: ids of documents by outcome, and what was passed over with the reason.

    `removed` are documents that their file, such as a corpus, had when it was added last and has no more.
    """

    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    passages: int = 0
    skipped: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a `build` did, layer by layer, and what it cost."""

    layers: tuple[LayerReport, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class RemoveReport:
    """What a `remove` did: the document, and how many passages and derived memories went with it."""

    document: str
    passages: int
    derived: int


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
        "citations": [asdict(citation) for citation in answer.citations],
        "dropped_quotes": answer.dropped_quotes,
        "usage": usage_json(answer.usage),
    }


def nearest_json(passages: Sequence[Passage]) -> list[dict[str, Any]]:
    """Passages near to a question that was declined, as `tome ask --json` prints them."""
    return [
        {
            "document": passage.document,
            "passage": passage.id,
            "position": passage.position,
            "title": passage.title,
            "text": passage.text,
        }
        for passage in passages
    ]


def usage_json(usage: Usage) -> dict[str, Any]:
    """What was used, as programs read it."""
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


def nearest(answer: Answer, store: SqliteStore) -> list[Passage]:
    """The passages nearest to a question that was declined, of those that were shown; none for an answer."""
    if answer.resolved:
        return []
    ranked = sorted(answer.evidence, key=lambda piece: (piece.node not in piece.sources, -piece.score))
    sources = list(dict.fromkeys(source for piece in ranked for source in piece.sources))[:_NEAREST]
    keys = store.keys_of(sources)
    passages = store.passages(keys.values())
    return [passages[keys[source]] for source in sources if keys.get(source) in passages]


def costs(book: Tome, variant: Variant) -> dict[str, Any]:
    """What `tome build --estimate --json` prints: calls, tokens and dollars by layer and in all."""
    model = book.kit.model.name

    def dollars(one: Estimate) -> float | None:
        return 0.0 if model == "extractive" else price(model, one.input_tokens, one.output_tokens)

    layers = [
        {
            "layer": one.layer,
            "calls": one.calls,
            "input_tokens": one.input_tokens,
            "output_tokens": one.output_tokens,
            "cost": dollars(one),
        }
        for one in book.estimate(variant.system, **variant.settings)
    ]
    sums = {name: sum(layer[name] for layer in layers) for name in ("calls", "input_tokens", "output_tokens")}  # type: ignore[misc]
    known = [layer["cost"] for layer in layers if layer["cost"] is not None]
    total = {**sums, "cost": sum(known) if len(known) == len(layers) else None}  # type: ignore[arg-type]
    return {"system": variant.name, "model": model, "layers": layers, "total": total}


def build_json(report: BuildReport) -> dict[str, Any]:
    """What `tome build --json` prints."""
    layers = [
        {
            "layer": layer.layer,
            "added": layer.added,
            "removed": layer.removed,
            "failed": [{"node": node, "reason": reason} for node, reason in layer.failed.items()],
            "notes": list(layer.notes),
        }
        for layer in report.layers
    ]
    return {"layers": layers, "usage": usage_json(report.usage)}


def contents(book: Tome) -> dict[str, Any]:
    """What `tome show --json` prints."""
    store = book.store
    return {
        "tome": str(store.path),
        "embedder": store.meta("embedder"),
        "passage_tokens": int(store.meta("passage_tokens") or 0),
        "overlap": int(store.meta("overlap") or 0),
        "bytes": store.path.stat().st_size,
        "layers": store.layers(),
        "documents": [
            {
                "id": record.id,
                "title": record.title,
                "source": record.source,
                "characters": record.characters,
                "passages": record.passages,
            }
            for record in book.documents()
        ],
        "replies": {layer: record["replies"] for layer, record in store.builds().items() if "replies" in record},
        "failed": _list_failures(store),
    }


def _list_failures(store: SqliteStore) -> list[dict[str, Any]]:
    """What layers could not take in, and why: by layer and document, with the places of the passages it rests on."""
    found: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for layer, counts in store.layers().items():
        reasons = store.intake(layer).failed if counts["failed"] else {}
        for key, node in store.nodes_at(reasons).items():
            below = find_grounds(store, [key], node.layer)[key]
            for passage in store.passages(below).values():
                found[layer, passage.document, reasons[key]].add(passage.position)
    return [
        {"layer": layer, "document": document, "passages": sorted(places), "reason": reason}
        for (layer, document, reason), places in sorted(found.items())
    ]
