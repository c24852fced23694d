"""The command `tome clean`."""

from __future__ import annotations

from tomewise.terminal.commands import app, open_tome
from tomewise.terminal.options import Json, TomeFile
from tomewise.terminal.screen import console, print_json


@app.command()
def clean(tome: TomeFile = None, as_json: Json = False) -> None:
    """Delete the cached arrays beside a tome. The next question makes those that it needs again; nothing is lost."""
    with open_tome(tome, create=False) as book:
        size = book.clean()
    if as_json:
        print_json({"freed": size})
    else:
        console().print(f"[bold]freed[/bold] {size / 1e6:.1f} MB of cached arrays")
