"""What the MCP tools return: what goes out (`tomewise.outgoing`), and what was left out. They are the output schemas.

Before a result is sent, every text in it is made neutral and short, by one pass over the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import Field

from tomewise.outgoing.answer_models import Asked, Usage
from tomewise.outgoing.form import DocumentName, Outgoing
from tomewise.outgoing.passage_models import DocumentEntry, Evidence, Slice
from tomewise.outgoing.report_models import BuildCosts, Entity, LayerCounts, LayerReport, Removal
from tomewise.server.mcp_documents import cut_text, show_name

ITEM_BYTES = 4_000  # of one text among several, so that at least one fits into a reply
_TEXTS = {"text": ITEM_BYTES, "quote": ITEM_BYTES, "missing": ITEM_BYTES // 4}  # any other is a name, on one line
Model = TypeVar("Model", bound=Outgoing)


def neutralise_result(result: Model, most_bytes: int = ITEM_BYTES) -> Model:
    """The result with each text in it neutral and short (see `mcp_documents`); `text` has at most so many bytes."""
    return type(result).model_validate(_neutralise(result.model_dump(), _TEXTS | {"text": most_bytes}))


def _neutralise(value: Any, texts: Mapping[str, int], name: str = "") -> Any:
    if isinstance(value, str):
        return cut_text(value, texts[name]) if name in texts else show_name(value)
    if isinstance(value, Mapping):
        return {show_name(key): _neutralise(item, texts, key) for key, item in value.items()}
    return [_neutralise(item, texts, name) for item in value] if isinstance(value, list | tuple) else value


class Result(Outgoing):
    """What every tool returns."""

    rest: str = Field(default="", description="What was left out and which call returns it; empty if nothing was.")


class AnswerResult(Asked, Result):
    """An answer, as `tome ask --json` prints it."""


class SearchResult(Result):
    """Evidence, best first."""

    pieces: list[Evidence]


class TextResult(Slice, Result):
    """A part of the text of a document: characters `start` to `end` of `characters`."""


class DocumentsResult(Result):
    """Documents by id; `total` is the number of all."""

    total: int
    documents: list[DocumentEntry]


class LayerEntry(LayerCounts):
    """A memory layer: how many nodes it has, and how many it failed to take in."""

    layer: str


class OverviewResult(Result):
    """What a tome holds."""

    tome: str
    embedder: str
    passage_tokens: int
    documents: int
    passages: int
    characters: int
    fields: list[str] = Field(description="The fields of metadata that `where` can test.")
    layers: list[LayerEntry]


class EntityResult(Entity, Result):
    """What the graphs of a tome hold on an entity."""


class AddResult(Result):
    """The result of `add_text`: `outcome` is added, replaced or unchanged."""

    document: DocumentName
    outcome: str
    passages: int


class RemoveResult(Removal, Result):
    """The result of `remove_document`: what went, or would go."""

    removed: bool
    derived: int


class CountedLayer(LayerReport):
    """What a build did to one layer, with its first failures, and how many there are."""

    failures: int


class CountedReport(Outgoing):
    """What a build did, layer by layer, and its cost."""

    layers: list[CountedLayer]
    usage: Usage


class BuildResult(Result):
    """The estimate, and the report if the build ran."""

    built: bool
    estimate: BuildCosts
    report: CountedReport | None = None
