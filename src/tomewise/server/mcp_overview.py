"""What a tome holds, as an MCP client sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tomewise.language.fences import fence
from tomewise.server.mcp_documents import show_name
from tomewise.server.mcp_results import LayerEntry, OverviewResult

if TYPE_CHECKING:
    from tomewise.tome.tome import Tome

_MOST_FIELDS = 20
_MOST_LAYERS = 50


def describe_tome(name: str, book: Tome) -> OverviewResult:
    """The sizes, layers and metadata fields of a tome. Names no place where it is kept."""
    store, records = book.store, book.documents()
    layers = [
        LayerEntry(layer=layer, nodes=counts["nodes"], failed=counts["failed"])
        for layer, counts in store.layers().items()
    ]
    fields = sorted({show_name(field) for record in records for field in record.metadata})
    return OverviewResult(
        tome=name,
        embedder=show_name(store.meta("embedder") or ""),
        passage_tokens=int(store.meta("passage_tokens") or 0),
        documents=len(records),
        passages=sum(record.passages for record in records),
        characters=sum(record.characters for record in records),
        fields=fields[:_MOST_FIELDS],
        layers=layers[:_MOST_LAYERS],
        rest="Call list_documents for the documents." if records else "",
    )


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
