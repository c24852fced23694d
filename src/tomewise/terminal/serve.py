"""The command `tome serve`."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Annotated

import typer

from tomewise import settings as configuration
from tomewise.credentials import hide_credentials, remember_credentials
from tomewise.errors import MissingDependency, UsageError
from tomewise.terminal.cleaning import clean_json, find_raw
from tomewise.terminal.commands import app, find_tome, open_tome
from tomewise.terminal.garbage import collect_as_usual
from tomewise.terminal.options import (
    MODEL,
    NOTHING,
    Stated,
    TomeFile,
    load_settings,
    repeat_settings,
    take_settings,
)

if TYPE_CHECKING:
    from tomewise.store.address import TomeAddress


@app.command(epilog="Example: tome serve novel.tome --root library/")
@take_settings("limit", *MODEL)
def serve(
    tomes: Annotated[
        list[Path] | None, typer.Argument(metavar="TOME", help="The memories to serve, each by its name.")
    ] = None,
    root: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Serve all of this folder, or of postgresql://host/database, and make new ones there.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Listen at this address.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Listen at this port; 0 takes a free one.")] = 8765,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the address in a browser.")] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Answer questions, and change nothing.")] = False,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let every program of this machine ask, without the token.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name under which a proxy reaches this server; give it again for more."),
    ] = None,
    root_path: Annotated[str, typer.Option(metavar="PATH", help="The path at which a proxy serves this.")] = "",
    questions: Annotated[
        int, typer.Option(min=1, max=1000, help="Answer so many questions at once; --limit bounds the calls of all.")
    ] = 8,
    max_upload: Annotated[int, typer.Option(min=1, help="Megabytes of one upload.")] = 100,
    evaluations: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Show the experiments that this folder holds.")
    ] = None,
    offer: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another model that clients may choose; give it again for more."),
    ] = None,
    stated: Stated = NOTHING,
) -> None:
    """Serve tomes over HTTP: for programs, for chat clients of OpenAI's protocol, for agents.

    The bounds --budget and --max-failures hold for each question and for each build.
    """
    chosen = load_settings(stated, offer=" ".join(offer or ()) or None)
    files: Sequence[TomeAddress] = tomes or ([] if root else [find_tome(None)])
    _check_files(files)
    with _name_extra():
        from tomewise.server.library import Library
        from tomewise.server.listening import serve as run_server
        from tomewise.server.serve_options import ServerOptions
    token = None if no_token else configuration.read_variable("TOMEWISE_TOKEN") or token_urlsafe(24)
    remember_credentials(token)
    options = ServerOptions(
        host=host,
        port=port,
        token=token,
        allow_hosts=tuple(allow_host or ()),
        root_path=root_path,
        read_only=read_only,
        questions=questions,
        waiting=4 * questions,
        max_upload=max_upload * 1_000_000,
        evaluations=evaluations,
    )
    collect_as_usual()
    run_server(Library(chosen, files, find_root(root), read_only=read_only), options, typer.echo, browse=open_browser)


def find_root(root: str | None) -> TomeAddress | None:
    """The folder, or the database, whose tomes are served. Raises UsageError for one tome of a database."""
    if root is None:
        return None
    from tomewise.store.address import find_database

    database = find_database(root)
    if database is not None and database.tome:
        raise UsageError(f"--root {database} names one tome: name the database alone, without #{database.tome}")
    return Path(root) if database is None else database


def _check_files(files: Sequence[TomeAddress]) -> None:
    for file in files:
        if isinstance(file, Path) and not file.is_file():
            raise UsageError(f"found no tome at {file}: add something first, with `tome -m {file} add PATH`")


@contextmanager
def _name_extra() -> Iterator[None]:
    """Let an import inside that fails name the extra `server`."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("tomewise"):
            raise
        raise MissingDependency(f"serving needs {error.name}: pip install 'tomewise[server]'") from error


def name_tome(place: TomeAddress) -> str:
    """What a client calls the tome."""
    return place.stem if isinstance(place, Path) else place.tome


@app.command(epilog="Example: tome mcp -m novel.tome --config")
@take_settings(*MODEL)
def mcp(
    tome: TomeFile = None,
    write: Annotated[bool, typer.Option("--write", help="Offer tools that add, remove and build.")] = False,
    config: Annotated[bool, typer.Option("--config", help="Print what to paste into a client's settings.")] = False,
    stated: Stated = NOTHING,
) -> None:
    """Offer a tome to an MCP client over standard input and output."""
    place = find_tome(tome)
    place = place.resolve() if isinstance(place, Path) else place
    if config:
        _print_config(place, write, stated)
        return
    import asyncio

    with _name_extra():
        from tomewise.server.mcp_app import serve_stdio

    sys.stdout = find_raw(sys.stdout)  # it carries the protocol, also where a person tries it on a terminal
    with open_tome(str(place) if isinstance(place, Path) else tome, stated, create=write) as opened:
        collect_as_usual()
        asyncio.run(serve_stdio(name_tome(place), opened, write=write))


def _print_config(place: TomeAddress, write: bool, stated: Stated) -> None:
    """Print the entry of `mcpServers` for this tome. Keys are not in it: whoever pastes it adds them under `env`."""
    words = ["mcp", "--tome", str(place), *(["--write"] if write else [])]
    for name, value in repeat_settings(stated, *MODEL):
        words += [name, hide_credentials(value)]
    command = shutil.which("tome")
    start = [command] if command else [sys.executable, "-m", "tomewise"]
    entry = {"command": start[0], "args": [*start[1:], *words]}
    typer.echo(clean_json(json.dumps({"mcpServers": {name_tome(place): entry}}, indent=2, ensure_ascii=False)))
