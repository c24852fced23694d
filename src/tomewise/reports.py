"""What the verbs of a tome report, and the JSON that programs read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tomewise.types import Answer, LayerReport, Passage, Usage


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
