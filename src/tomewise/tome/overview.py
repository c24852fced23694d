"""A tome as a notebook shows it: its layers, and its first documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tomewise.notebook_display import write_table

if TYPE_CHECKING:
    from tomewise.store.contract import Store

_MOST = 20  # documents


def write_overview(store: Store, model: str) -> str:
    """Two tables as HTML."""
    layers = [(name, f"{layer['nodes']:,}", layer["failed"] or "") for name, layer in store.layers().items()]
    records = store.documents()
    rows = [(record.title or record.id, f"{record.passages:,}", f"{record.characters:,}") for record in records[:_MOST]]
    more = len(records) - len(rows)
    title = f"{len(records):,} document{'' if len(records) == 1 else 's'}"
    title += f", of which {more:,} are not shown" if more else ""
    origin = f"{store.address} · {store.meta('embedder')} · {model}"
    return write_table(("layer", "nodes", "failed"), layers, origin) + write_table(
        ("document", "passages", "characters"), rows, title
    )
