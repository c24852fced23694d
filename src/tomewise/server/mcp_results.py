"""What the MCP tools return: nouns, and what was left out of them. These are the output schemas.

Before a result is sent, every text in it is made neutral and short, by one pass over it. A reply has the result
as structured content and as text, bounded in size: a client shows its model one of the two or both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from mcp.types import CallToolResult, TextContent
from pydantic import Field

from tomewise.language import fences
from tomewise.language.fences import fence, oneline
from tomewise.server.replies import Overview, Reply
from tomewise.server.tome_endpoints import describe_overview
from tomewise.store.records import DocumentRecord
from tomewise.tome.document_names import show_name
from tomewise.tome.entities import Entity
from tomewise.tome.reports import BuildCosts, BuildReport, Foresight, Slice
from tomewise.tome.tome import Tome
from tomewise.types import Answer, DocumentId, Evidence, Lagging, Passage, Quote, read_plain
from tomewise.types.place import describe_place
from tomewise.types.proof import list_remarks, summarize_lag

ITEM_BYTES = 4_000  # of one text among several, so that at least one fits into a reply
_TEXTS = {
    **dict.fromkeys(("text", "before", "after"), ITEM_BYTES),
    "missing": ITEM_BYTES // 4,
}  # any other is a name, on one line
T = TypeVar("T")


def neutralise(kind: type[T], data: Any, most_bytes: int = ITEM_BYTES) -> T:
    """The noun of this class in which each text is neutral and short; `text` has at most so many bytes."""
    return read_plain(kind, _neutralise(data, _TEXTS | {"text": most_bytes}))


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
    encoded = fences.neutralise(text).encode()
    if len(encoded) <= most_bytes:
        return encoded.decode()
    return encoded[: most_bytes - 3].decode(errors="ignore") + "…"


class Result(Reply):
    """What every tool returns."""

    rest: str = Field(default="", description="What was left out and which call returns it; empty if nothing was.")


class AnswerResult(Result):
    """An answer, as `tome ask --json` prints it."""

    answer: Answer


class SearchResult(Result):
    """Evidence, best first."""

    pieces: list[Evidence]


class TextResult(Result):
    """A part of the text of a document: characters `start` to `end` of `characters`."""

    part: Slice


class DocumentsResult(Result):
    """Documents by id; `total` is the number of all."""

    total: int
    documents: list[DocumentRecord]


class OverviewResult(Overview, Result):
    """What a tome holds."""


class EntityResult(Result):
    """What the graphs of a tome hold on an entity."""

    entity: Entity


class AddResult(Result):
    """The result of `add_text`: `outcome` is added, replaced or unchanged."""

    document: DocumentId
    outcome: str
    passages: int


class RemoveResult(Result):
    """The result of `remove_document`: what went, or would go."""

    document: DocumentId
    removed: bool
    foresight: Foresight


class BuildResult(Result):
    """The estimate, and the report if the build ran."""

    built: bool
    estimate: BuildCosts
    report: BuildReport | None = None


_MOST_FIELDS = 20
_MOST_LAYERS = 50


def write_answer(answer: Answer) -> str:
    """The answer, what it lacks, and its quotations between tags."""
    lag = _write_lag(answer.lagging) if answer.lagging else []
    quotes = [quote for statement in answer.statements for quote in statement.quotes]
    if answer.only_quotes and quotes:
        return "\n".join([*list_remarks(answer), *lag, *_fence_quotes(quotes)])
    head = f"{answer.choice}. {answer.text}" if answer.choice else answer.text
    lines = [head if answer.resolved else f"Declined. {head}".strip(), f"Support: {answer.support}"]
    lines += [f"Missing: {oneline(answer.missing)}"] if answer.missing else []
    lines += [remark for remark in list_remarks(answer) if answer.resolved]
    return "\n".join([*lines, *lag, *_fence_quotes(quotes), *write_passages(answer.nearest)])


def keep_quotes(answer: Answer, count: int) -> Answer:
    """The answer with the first so many of its quotes, then of the nearest passages."""
    statements, left = [], count
    for statement in answer.statements:
        statements.append(replace(statement, quotes=statement.quotes[:left]))
        left = max(0, left - len(statement.quotes))
    return replace(answer, statements=tuple(statements), nearest=answer.nearest[:left])


def _fence_quotes(quotes: Iterable[Quote]) -> Iterator[str]:
    for quote in quotes:
        yield _fence_passage(quote.text, quote.passage, quote, start=quote.start, end=quote.end)


def _write_lag(lagging: Lagging) -> list[str]:
    """What the memory has yet to take in, with the names of documents between tags."""
    names = [fence("\n".join(lagging.documents), "names", of="documents not in the memory yet")]
    return [summarize_lag(lagging, names=False), *(names if lagging.documents else [])]


def keep_small(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata of a document; none where it would take much of a reply."""
    return metadata if len(str(metadata)) <= ITEM_BYTES // 2 else {}


def write_pieces(result: SearchResult) -> str:
    """Each piece of evidence between tags."""
    return "\n".join(_fence_piece(piece) for piece in result.pieces) or "Nothing was found."


def write_text(part: Slice) -> str:
    """A part of a document between tags."""
    where = {"start": part.start, "end": part.end, "of": part.characters}
    return fence(part.text, "text", document=part.document, title=part.title, **where)


def write_entity(entity: Entity) -> str:
    """The facts, one a line, and the passages, each between tags."""
    facts = [fence("\n".join(oneline(fact.text) for fact in entity.facts), "evidence", kind="facts")]
    similar = [fence("\n".join(entity.similar), "names")]
    return "\n".join(
        [*(similar if entity.similar else []), *(facts if entity.facts else []), *write_passages(entity.passages)]
    )


def write_passages(passages: Iterable[Passage]) -> list[str]:
    """Each passage between tags."""
    return [_fence_passage(passage.text, passage.id, passage) for passage in passages]


def _fence_passage(text: str, id: str, source: Quote | Passage, **span: int) -> str:
    place = describe_place(source.place, source.position + 1)
    return fence(text, "passage", passage=id, document=source.document, title=source.title, place=place, **span)


def _fence_piece(piece: Evidence) -> str:
    sources = " ".join(source.passage for source in piece.origins)
    place = describe_place(piece.place)
    names = {"layer": piece.layer, "passages": sources, "title": piece.title, "place": place}
    fields = "; ".join(f"{name}={value}" for name, value in piece.metadata.items())
    rewrite = piece.rewrite.text if piece.rewrite else ""
    return fence(piece.text, "evidence", **names, metadata=fields, rewrite=rewrite)


def make_overview(name: str, book: Tome) -> OverviewResult:
    """What a tome holds, with at most so many layers and fields as fit."""
    found = describe_overview(name, book)
    rest = "Call list_documents for the documents." if found.documents else ""
    layers = dict(list(found.layers.items())[:_MOST_LAYERS])
    kept = {"fields": found.fields[:_MOST_FIELDS], "layers": layers, "rest": rest}
    return neutralise(OverviewResult, found.model_dump() | kept)


def write_overview(result: OverviewResult) -> str:
    """The overview in lines of plain text."""
    lines = [
        f"Tome {result.tome}: {result.documents} documents, {result.passages} passages, {result.characters} characters",
        f"Embedder: {result.embedder}; passages of at most {result.passage_tokens} tokens",
        *(f"Layer {name}: {layer.nodes} nodes, {layer.failed} failed" for name, layer in result.layers.items()),
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
