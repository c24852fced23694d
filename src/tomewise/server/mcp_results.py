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

from tomewise.language import fences
from tomewise.language.fences import fence, oneline
from tomewise.recall.outline import Outline
from tomewise.server.replies import Overview, Reply, ScopeReply
from tomewise.server.tome_endpoints import describe_overview
from tomewise.store.records import DocumentRecord
from tomewise.tome.collected import Table
from tomewise.tome.document_names import show_name
from tomewise.tome.entities import Entity
from tomewise.tome.reports import BuildReport, Foresight, Price, Slice
from tomewise.tome.tome import Tome
from tomewise.types import Answer, DocumentId, Evidence, Hits, Passage, Quote, Statement, read_plain
from tomewise.types.place import describe_place
from tomewise.types.proof import list_quotes, name_support, write_marked

ITEM_BYTES = 4_000  # of one text among several, so that at least one fits into a reply
_TEXTS = {
    **dict.fromkeys(("text", "before", "after"), ITEM_BYTES),
    "missing": ITEM_BYTES // 4,
}  # any other is a name, on one line
T = TypeVar("T")
R = TypeVar("R", bound="Result")


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

    rest: str = ""
    """What was left out and which call returns it; empty if nothing was."""

    def write(self) -> str:
        """The result as text, with what documents say between tags."""
        raise NotImplementedError


class AnswerResult(Result):
    """An answer, as `tome ask --json` prints it."""

    answer: Answer

    def write(self) -> str:
        answer = self.answer
        unread = _fence_unread(answer.coverage.remark)
        quotes = list_quotes(answer)
        if answer.only_quotes:
            return "\n".join([*answer.remarks, *unread, *_fence_quotes(quotes)])
        text = write_marked(answer)
        head = f"{answer.choice}. {text}" if answer.choice else text
        lines = [head if answer.resolved else f"Declined. {head}".strip(), f"Support: {answer.support}"]
        lines += [f"Missing: {oneline(answer.missing)}"] if answer.missing else []
        return "\n".join([*lines, *answer.remarks, *unread, *_fence_quotes(quotes), *_fence_passages(answer.nearest)])


class ScopeResult(ScopeReply, Result):
    """An open part of a tome, and how much of it was read."""

    def write(self) -> str:
        lines = [f"Scope {self.id}: {self.documents} documents; read: {self.coverage}"]
        return "\n".join([*lines, *_fence_unread(self.coverage.remark)])


class SearchResult(Result):
    """Evidence, best first."""

    pieces: list[Evidence]

    def write(self) -> str:
        return "\n".join(map(_fence_piece, self.pieces)) or "Nothing was found."


class FindResult(Result):
    """Places that have a text."""

    hits: Hits

    def write(self) -> str:
        counts = [
            f"By {name}: {', '.join(f'{each} {count}' for each, count in counted)}"
            for name, counted in self.hits.counts.items()
        ]
        lines = [str(self.hits), *_fence_unread(self.hits.coverage.remark)]
        lines += [fence("\n".join(map(oneline, counts)), "items")] if counts else []
        whole_lines = (replace(hit, text=hit.before + hit.text + hit.after) for hit in self.hits.quotes)
        return "\n".join([*lines, *_fence_quotes(whole_lines)])


class TableResult(Result):
    """A table, or a part of its `rows`."""

    table: Table
    rows: int

    def write(self) -> str:
        table = self.table
        read = "Every passage in scope was read." if table.all_read else f"Read: {table.coverage}."
        lines = [f"{self.rows} rows. {read}", *map(oneline, map(str, table.figures))]
        lines += _fence_unread(table.coverage.remark)
        names = [column.name for column in table.columns]
        for row in table.rows:
            cells = [f"{name}: {cell.text} ({cell.support})" for name, cell in zip(names, row.cells, strict=True)]
            lines += [fence("; ".join(map(oneline, cells)), "items"), *_fence_quotes(row.quotes[:1])]
        return "\n".join(lines)


class VerifyResult(Result):
    """Statements of a text, with support and quotes. `summary` counts them all, `unread` says what was not compared."""

    summary: str
    unread: str
    statements: list[Statement]

    def write(self) -> str:
        lines = [self.summary, *_fence_unread(self.unread)]
        for each in self.statements:
            lines += [f"{name_support(each.support)}: {oneline(each.text)}", *_fence_quotes(each.quotes)]
        return "\n".join(lines)


class OutlineResult(Result):
    """How a document is laid out."""

    outline: Outline

    def write(self) -> str:
        of = self.outline
        lines = [
            f"{'  ' * (len(each.chapter) - 1)}{oneline(each.chapter[-1])} (characters {each.start} to {each.end})"
            for each in of.sections
        ]
        lines += [f"{speaker} says {characters} characters" for speaker, characters in of.speakers.items()]
        sizes = f"{of.characters} characters, {of.lines} lines, {of.pages} pages"
        return "\n".join([sizes, fence("\n".join(lines), "items", document=of.document)])


class TextResult(Result):
    """A part of the text of a document: characters `start` to `end` of `characters`."""

    part: Slice

    def write(self) -> str:
        part = self.part
        where = {"start": part.start, "end": part.end, "of": part.characters}
        return fence(part.text, "text", document=part.document, title=part.title, **where)


class DocumentsResult(Result):
    """Documents by id; `total` is the number of all."""

    total: int
    documents: list[DocumentRecord]

    def write(self) -> str:
        lines = [
            f"{each.id} ({each.title}): {each.characters} characters, {each.passages} passages {each.metadata or ''}"
            for each in self.documents
        ]
        return "\n".join([f"{self.total} documents", fence("\n".join(lines), "items")])


class OverviewResult(Overview, Result):
    """What a tome holds."""

    def write(self) -> str:
        sizes = f"{self.documents} documents, {self.passages} passages, {self.characters} characters"
        lines = [
            f"Tome {self.tome}: {sizes}",
            f"Embedder: {self.embedder}; passages of at most {self.passage_tokens} tokens",
            *(f"Layer {name}: {layer.nodes} nodes, {layer.failed} failed" for name, layer in self.layers.items()),
        ]
        lines += [fence("\n".join(self.fields), "names", of="fields of metadata")] if self.fields else []
        return "\n".join(lines)


class EntityResult(Result):
    """What the graphs of a tome hold on an entity."""

    entity: Entity

    def write(self) -> str:
        entity = self.entity
        lines = [fence("\n".join(entity.similar), "names")] if entity.similar else []
        if entity.facts:
            lines.append(fence("\n".join(oneline(fact.text) for fact in entity.facts), "evidence", kind="facts"))
        return "\n".join([*lines, *_fence_passages(entity.passages)])


class AddResult(Result):
    """The result of `add_text`: `outcome` is added, replaced or unchanged."""

    document: DocumentId
    outcome: str
    passages: int

    def write(self) -> str:
        return f"{self.outcome}: {self.document}, {self.passages} new passages"


class RemoveResult(Result):
    """The result of `remove_document`: what went, or would go."""

    document: DocumentId
    removed: bool
    foresight: Foresight

    def write(self) -> str:
        passages, paid = self.foresight.passages, self.foresight.paid
        what = f"{self.document}, {passages} passages, {self.foresight.derived} derived"
        if self.removed:
            return f"removed: {what}"
        return f"This would remove {what}, {sum(paid.values())} of them made by {', '.join(paid)}"


class BuildResult(Result):
    """The estimate, and the report if the build ran."""

    built: bool
    estimate: Price
    report: BuildReport | None = None

    def write(self) -> str:
        if self.report is None:
            return f"This build takes about {self.estimate.text}; repairs come on top"
        layers = self.report.layers
        lines = [f"{layer.layer}: {layer.added} added, {len(layer.failed)} failed" for layer in layers]
        return "\n".join(lines) or "Nothing to build."


_MOST_FIELDS = 20
_MOST_LAYERS = 50


def _fence_unread(remark: str) -> list[str]:
    return [fence(remark, "names", of="what was not read")] if remark else []


def _fence_quotes(quotes: Iterable[Quote]) -> Iterator[str]:
    for number, quote in enumerate(quotes, start=1):
        yield _fence_passage(quote.text, quote.passage, quote, number=number, start=quote.start, end=quote.end)


def _fence_passages(passages: Iterable[Passage]) -> list[str]:
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


def make_overview(name: str, tome: Tome) -> OverviewResult:
    """What a tome holds, with at most so many layers and fields as fit."""
    found = describe_overview(name, tome)
    rest = "Call list_documents for the documents." if found.documents else ""
    layers = dict(list(found.layers.items())[:_MOST_LAYERS])
    kept = {"fields": found.fields[:_MOST_FIELDS], "layers": layers, "rest": rest}
    return neutralise(OverviewResult, found.model_dump() | kept)


TOKENS = 8_000
_ENVELOPE = 500  # bytes that the protocol puts around a reply
# Tokenizers make about one token of four bytes of English, of three bytes of Chinese or of JSON.
MOST_BYTES = 3 * TOKENS - _ENVELOPE


def make_reply(result: Result) -> CallToolResult:
    """The reply with this result as structured content and as text."""
    text = f"{result.write()}\n\n{result.rest}" if result.rest else result.write()
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=result.model_dump(mode="json")
    )


def make_failure(message: str) -> CallToolResult:
    """The reply that says why a call failed."""
    return CallToolResult(content=[TextContent(type="text", text=cut_text(message, 4_000))], is_error=True)


def fit(make: Callable[[int], R], most: int) -> R:
    """The result of the greatest count from 0 to `most` whose reply is small enough; `make` grows with its count."""
    if _is_small(whole := make(most)):
        return whole
    return make(bisect_left(range(1, most), True, key=lambda count: not _is_small(make(count))))


def _is_small(result: Result) -> bool:
    """Whether the reply, as it is sent, keeps within the bound."""
    return len(make_reply(result).model_dump_json(by_alias=True, exclude_none=True).encode()) <= MOST_BYTES
