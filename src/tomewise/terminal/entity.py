"""How an entity looks on a terminal."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tomewise.place import describe_place
from tomewise.terminal.plain import escape, name_document

if TYPE_CHECKING:
    from rich.console import Console

    from tomewise.tome.entities import FoundEntity

_PASSAGES = 10  # how many to show
_BEGINNING = 200  # characters to show of a passage and of a gist


def print_entity(found: FoundEntity, out: Console) -> None:
    """What `tome show --entity NAME` prints: the facts by graph, then passages with their gists."""
    out.print(f"[bold]{escape(found.name)}[/bold]")
    by_graph: dict[str, list[str]] = defaultdict(list)
    for text, graph in found.facts:
        by_graph[graph].append(text)
    for graph, facts in by_graph.items():
        out.print(f"[dim]{len(facts):,} {'fact' if len(facts) == 1 else 'facts'} of graph:{escape(graph)}[/dim]")
        for text in facts:
            out.print(f"  {escape(_shorten(text))}")
    for passage in found.passages[:_PASSAGES]:
        name = passage.title or name_document(passage.document)
        where = f"{name}, {describe_place(passage.place, passage.position + 1)}"
        out.print(f"[green]{escape(where)}[/green] {escape(_shorten(passage.text))}")
        if gist := found.gists.get(passage.id):
            out.print(f"  [dim]gist[/dim] {escape(_shorten(gist))}")
    if len(found.passages) > _PASSAGES:
        out.print(f"[dim]… and {len(found.passages) - _PASSAGES:,} more passages (--json shows them)[/dim]")


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _BEGINNING else line[: _BEGINNING - 1] + "…"
