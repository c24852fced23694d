"""Results of MCP tools as plain text, for clients that do not read their structured content."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tomewise.language.fences import fence, oneline
from tomewise.place import describe_place, read_plain_data
from tomewise.server.mcp_results import (
    AnswerResult,
    EntityResult,
    LayerEntry,
    OverviewResult,
    SearchResult,
    TextResult,
    neutralise_result,
)

if TYPE_CHECKING:
    from tomewise.outgoing.passage_models import Evidence, Passage
    from tomewise.tome.tome import Tome

_MOST_FIELDS = 20
_MOST_LAYERS = 50


def write_answer(result: AnswerResult) -> str:
    """The answer, what it lacks, and its quotations between tags."""
    head = f"{result.choice}. {result.text}" if result.choice else result.text
    lines = [head if result.resolved else f"Declined. {head}".strip(), f"Supported: {result.supported}"]
    lines += [f"Missing: {oneline(result.missing)}"] if result.missing else []
    for citation in result.citations:
        place = describe_place(read_plain_data(citation.place), citation.position + 1)
        names = {"passage": citation.passage, "document": citation.document, "title": citation.title, "place": place}
        lines.append(fence(citation.quote, "passage", **names, start=citation.start, end=citation.end))
    return "\n".join([*lines, *write_passages(result.nearest)])


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
    return [_fence_passage(passage) for passage in passages]


def _fence_passage(passage: Passage) -> str:
    place = describe_place(read_plain_data(passage.place), passage.position + 1)
    names = {"passage": passage.id, "document": passage.document, "title": passage.title, "place": place}
    return fence(passage.text, "passage", **names)


def _fence_piece(piece: Evidence) -> str:
    sources = " ".join(source.passage for source in piece.sources)
    place = describe_place(read_plain_data(piece.place))
    names = {"layer": piece.layer, "passages": sources, "title": piece.title, "place": place}
    return fence(piece.text, "evidence", **names, rewrite=piece.rewrite.text if piece.rewrite else "")


def describe_tome(name: str, book: Tome) -> OverviewResult:
    """The sizes, layers and metadata fields of a tome. Names no place where it is kept."""
    store, records = book.store, book.documents()
    layers = [LayerEntry.of(counts, layer=layer) for layer, counts in store.layers().items()]
    result = OverviewResult(
        tome=name,
        embedder=store.meta("embedder") or "",
        passage_tokens=int(store.meta("passage_tokens") or 0),
        documents=len(records),
        passages=sum(record.passages for record in records),
        characters=sum(record.characters for record in records),
        fields=sorted({field for record in records for field in record.metadata})[:_MOST_FIELDS],
        layers=layers[:_MOST_LAYERS],
        rest="Call list_documents for the documents." if records else "",
    )
    return neutralise_result(result)


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
