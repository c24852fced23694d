"""The command `tome search`."""

from __future__ import annotations

from typing import Annotated

import typer

from tomewise.terminal.commands import app, find_system, open_tome, repeat_options
from tomewise.terminal.model_options import UNSTATED, ModelOptions, take_model_options
from tomewise.terminal.options import (
    Documents,
    Json,
    Strict,
    System,
    TomeFile,
    Where,
)
from tomewise.terminal.screen import console, print_json
from tomewise.terminal.work import show_work


@app.command(epilog='Example: tome search "the forged letter" --limit 5')
@take_model_options
def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    tome: TomeFile = None,
    system: System = None,
    limit: Annotated[int, typer.Option(min=1, help="At most this many pieces of evidence.")] = 10,
    document: Documents = None,
    where: Where = None,
    strict: Strict = False,
    models: ModelOptions = UNSTATED,
    as_json: Json = False,
) -> None:
    """Show the evidence that a system finds, without an answer. No model is asked to answer."""
    system = system or find_system()
    with show_work(f"searching with {system}"):
        from tomewise.systems.registry import parse_variant
        from tomewise.terminal import render
        from tomewise.tome.reports import describe_evidence
        from tomewise.tome.scopes import find_scope

        variant = parse_variant(system)
        with open_tome(tome, create=False, models=models) as book:
            scope = find_scope(book.store, documents=document or (), where=where or ())
            found = book.search(query, system=variant, limit=limit, strict=strict, within=scope)
            lagging = book.find_lag(query, system=variant, within=scope)
            pieces = describe_evidence(found, book.store)
    print_json([piece.write() for piece in pieces]) if as_json else render.print_evidence(pieces, console(), scope)
    render.print_lag(lagging, console(stderr=True))
    render.offer_build(lagging, repeat_options(tome, models), console(stderr=True))
