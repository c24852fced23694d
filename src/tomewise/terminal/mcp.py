"""The command `tome mcp`."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from tomewise import settings as configuration
from tomewise.credentials import hide_credentials
from tomewise.terminal.cleaning import clean_json, find_raw
from tomewise.terminal.commands import app, open_tome
from tomewise.terminal.model_options import UNSTATED, ModelOptions, take_model_options
from tomewise.terminal.options import TomeFile
from tomewise.terminal.state import State


@app.command(epilog="Example: tome mcp -m novel.tome --config")
@take_model_options
def mcp(
    tome: TomeFile = None,
    write: Annotated[bool, typer.Option("--write", help="Offer tools that add, remove and build.")] = False,
    config: Annotated[bool, typer.Option("--config", help="Print what to paste into a client's settings.")] = False,
    models: ModelOptions = UNSTATED,
) -> None:
    """Offer a tome to an MCP client over standard input and output."""
    path = Path(tome or State.tome or configuration.load().tome).resolve()
    if config:
        _print_config(path, write, models)
        return
    import asyncio

    from tomewise.server.mcp_stdio import serve_stdio

    sys.stdout = find_raw(sys.stdout)  # it carries the protocol, also where a person tries it on a terminal
    with open_tome(str(path), create=write, models=models) as book:
        asyncio.run(serve_stdio(path.stem, book, write=write))


def _print_config(path: Path, write: bool, models: ModelOptions) -> None:
    """Print the entry of `mcpServers` for this tome. Keys are not in it: whoever pastes it adds them under `env`."""
    words = ["mcp", "--tome", str(path), *(["--write"] if write else [])]
    for name, value in models.list_options():
        words += [name, hide_credentials(value)]
    command = shutil.which("tome")
    start = [command] if command else [sys.executable, "-m", "tomewise"]
    entry = {"command": start[0], "args": [*start[1:], *words]}
    typer.echo(clean_json(json.dumps({"mcpServers": {path.stem: entry}}, indent=2, ensure_ascii=False)))
