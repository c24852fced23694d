"""What the MCP tools return: what goes out (`tomewise.outgoing`), and what was left out. They are the output schemas.

Before a result is sent, every text in it is made neutral and short, by one pass over the model. A reply has the result
as structured content and as text, bounded in size: a client shows its model one of the two or both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from mcp.types import CallToolResult, TextContent
from pydantic import Field

from tomewise.language.fences import fence, neutralise, oneline
from tomewise.outgoing.answer_models import Asked, Citation, Lagging, Usage
from tomewise.outgoing.form import DocumentName, Outgoing
from tomewise.outgoing.passage_models import DocumentEntry, Evidence, Passage, Slice
from tomewise.outgoing.report_models import BuildCosts, Entity, LayerReport, Removal
from tomewise.place import describe_place, read_plain_data
from tomewise.server.replies import Overview
from tomewise.server.tome_endpoints import describe_overview
from tomewise.tome.document_names import show_name
from tomewise.tome.tome import Tome

ITEM_BYTES = 4_000  # of one text among several, so that at least one fits into a reply
_TEXTS = {
    **dict.fromkeys(("text", "quote", "before", "after"), ITEM_BYTES),
    "missing": ITEM_BYTES // 4,
}  # any other is a name, on one line
Model = TypeVar("Model", bound=Outgoing)


def neutralise_result(result: Model, most_bytes: int = ITEM_BYTES) -> Model:
    """The result with each text in it neutral and short; `text` has at most so many bytes."""
    return type(result).model_validate(_neutralise(result.model_dump(), _TEXTS | {"text": most_bytes}))


def _neutralise(value: Any, texts: Mapping[str, int], name: str = "") -> Any:
    if isinstance(value, str):
        return cut_text(value, texts[name]) if name in texts else show_name(value)
    if isinstance(value, Mapping):
        return {show_name(key): _neutralise(item, texts, key) for key, item in value.items()}
    return [_neutralise(item, texts, name) for item in value] if isinstance(value, list | tuple) else value


def cut_text(text: str, most_bytes: int) -> str:
    """Neutral text of at most `most_bytes` bytes of UTF-8; a cut shows as an ellipsis.

    Neutral text (see `language.fences`) opens no tag and no turn of a conversation. Ordinary text stays as it is.
    """
    encoded = neutralise(text).encode()
    if len(encoded) <= most_bytes:
        return encoded.decode()
    return encoded[: most_bytes - 3].decode(errors="ignore") + "…"


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


class OverviewResult(Overview, Result):
    """What a tome holds."""


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


_MOST_FIELDS = 20
_MOST_LAYERS = 50


def write_answer(result: AnswerResult) -> str:
    """The answer, what it lacks, and its quotations between tags."""
    lag = _write_lag(result.lagging) if result.lagging else []
    if result.quotations:
        quoted = _fence_citations([each.citation for each in result.quotations])
        return "\n".join([*result.list_remarks(), *lag, *quoted])
    head = f"{result.choice}. {result.text}" if result.choice else result.text
    lines = [head if result.resolved else f"Declined. {head}".strip(), f"Supported: {result.supported}"]
    lines += [f"Missing: {oneline(result.missing)}"] if result.missing else []
    return "\n".join([*lines, *lag, *_fence_citations(result.citations), *write_passages(result.nearest)])


def _fence_citations(citations: Iterable[Citation]) -> Iterator[str]:
    for citation in citations:
        yield _fence_passage(citation.quote, citation.passage, citation, start=citation.start, end=citation.end)


def _write_lag(lagging: Lagging) -> list[str]:
    """What the memory has yet to take in, with the names of documents between tags."""
    names = [fence("\n".join(lagging.documents), "names", of="documents not in the memory yet")]
    return [lagging.summarize(names=False), *(names if lagging.documents else [])]


def keep_small(metadata: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a document; none where it would take much of a reply."""
    return metadata if len(str(metadata)) <= ITEM_BYTES // 2 else {}


def write_pieces(result: SearchResult) -> str:
    """Each piece of evidence between tags."""
    return "\n".join(_fence_piece(piece) for piece in result.pieces) or "Nothing was found."


def write_text(result: TextResult) -> str:
    """A part of a document between tags."""
    where = {"start": result.start, "end": result.end, "of": result.characters}
    return fence(result.text, "text", document=result.document, title=result.title, **where)


def write_entity(result: EntityResult) -> str:
    """The facts, one a line, and the passages, each between tags."""
    facts = [fence("\n".join(oneline(fact.text) for fact in result.facts), "evidence", kind="facts")]
    similar = [fence("\n".join(result.similar), "names")]
    return "\n".join(
        [*(similar if result.similar else []), *(facts if result.facts else []), *write_passages(result.passages)]
    )


def write_passages(passages: Iterable[Passage]) -> list[str]:
    """Each passage between tags."""
    return [_fence_passage(passage.text, passage.id, passage) for passage in passages]


def _fence_passage(text: str, id: str, source: Citation | Passage, **span: int) -> str:
    place = describe_place(read_plain_data(source.place), source.position + 1)
    return fence(text, "passage", passage=id, document=source.document, title=source.title, place=place, **span)


def _fence_piece(piece: Evidence) -> str:
    sources = " ".join(source.passage for source in piece.sources)
    place = describe_place(read_plain_data(piece.place))
    names = {"layer": piece.layer, "passages": sources, "title": piece.title, "place": place}
    fields = "; ".join(f"{name}={value}" for name, value in piece.metadata.items())
    rewrite = piece.rewrite.text if piece.rewrite else ""
    return fence(piece.text, "evidence", **names, metadata=fields, rewrite=rewrite)


def make_overview(name: str, book: Tome) -> OverviewResult:
    """What a tome holds, with at most so many layers and fields as fit."""
    found = describe_overview(name, book)
    rest = "Call list_documents for the documents." if found.documents else ""
    fields, layers = found.fields[:_MOST_FIELDS], found.layers[:_MOST_LAYERS]
    return neutralise_result(OverviewResult.of(found, rest=rest, fields=fields, layers=layers))


def write_overview(result: OverviewResult) -> str:
    """The overview in lines of plain text."""
    lines = [
        f"Tome {result.tome}: {result.documents} documents, {result.passages} passages, {result.characters} characters",
        f"Embedder: {result.embedder}; passages of at most {result.passage_tokens} tokens",
        *(f"Layer {layer.layer}: {layer.nodes} nodes, {layer.failed} failed" for layer in result.layers),
    ]
    if result.fields:
        lines.append(fence("\n".join(result.fields), "names", of="fields of metadata"))
    return "\n".join(lines)


TOKENS = 8_000
_ENVELOPE = 500  # bytes that the protocol puts around a reply
# Tokenizers make about one token of four bytes of English, of three bytes of Chinese or of JSON.
MOST_BYTES = 3 * TOKENS - _ENVELOPE


def make_reply(result: Result, text: str) -> CallToolResult:
    """The reply with this structured content and this text."""
    whole = f"{text}\n\n{result.rest}" if result.rest else text
    return CallToolResult(
        content=[TextContent(type="text", text=whole)], structured_content=result.model_dump(mode="json")
    )


def make_failure(message: str) -> CallToolResult:
    """The reply that says why a call failed."""
    return CallToolResult(content=[TextContent(type="text", text=cut_text(message, 4_000))], is_error=True)


def fit_reply(make: Callable[[int], CallToolResult], most: int) -> CallToolResult:
    """The reply of the greatest count from 0 to `most` that is small enough; `make` grows with its count."""
    if is_small(whole := make(most)):
        return whole
    return make(bisect_left(range(1, most), True, key=lambda count: not is_small(make(count))))


def is_small(reply: CallToolResult) -> bool:
    """Whether a reply, as it is sent, keeps within the bound."""
    return len(reply.model_dump_json(by_alias=True, exclude_none=True).encode()) <= MOST_BYTES
