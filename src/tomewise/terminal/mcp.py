"""The command `tome mcp`."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tomewise import settings as configuration
from tomewise.credentials import hide_credentials
from tomewise.terminal.commands import app, open_tome
from tomewise.terminal.options import BaseUrl, MaxCalls, MaxCost, MaxTokens, Model, TomeFile
from tomewise.terminal.state import State


@app.command(epilog="Example: tome mcp -m novel.tome --config")
def mcp(
    tome: TomeFile = None,
    write: Annotated[bool, typer.Option("--write", help="Offer tools that add, remove and build.")] = False,
    config: Annotated[bool, typer.Option("--config", help="Print what to paste into a client's settings.")] = False,
    model: Model = None,
    base_url: BaseUrl = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
) -> None:
    """Offer a tome to an MCP client over standard input and output."""
    path = Path(tome or State.tome or configuration.load().tome).resolve()
    bounds = {"max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost}
    if config:
        options = [
            ("--base-url", base_url),
            *((f"--{name.replace('_', '-')}", bound) for name, bound in bounds.items()),
        ]
        _print_config(path, write, model or (), options)
        return
    import asyncio

    from tomewise.server.mcp_stdio import serve_stdio

    with open_tome(str(path), create=write, model=model, base_url=base_url, **bounds) as book:
        asyncio.run(serve_stdio(path.stem, book, write=write))


def _print_config(
    path: Path, write: bool, models: Sequence[str], options: Sequence[tuple[str, str | int | float | None]]
) -> None:
    """Print the entry of `mcpServers` for this tome. Keys are not in it: whoever pastes it adds them under `env`."""
    words = ["mcp", "--tome", str(path), *(["--write"] if write else [])]
    for model in models:
        words += ["--model", model]
    for name, value in options:
        words += [name, hide_credentials(str(value))] if value is not None else []
    command = shutil.which("tome")
    start = [command] if command else [sys.executable, "-m", "tomewise"]
    entry = {"command": start[0], "args": [*start[1:], *words]}
    typer.echo(json.dumps({"mcpServers": {path.stem: entry}}, indent=2, ensure_ascii=False))
