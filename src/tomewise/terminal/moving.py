"""The commands for whole tomes: `tome export`, `tome import`, `tome copy`, `tome drop` and `tome reembed`."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from tomewise import settings as configuration
from tomewise.errors import UsageError
from tomewise.terminal.cleaning import clean_json
from tomewise.terminal.commands import app, find_tome, open_tome, repeat_options
from tomewise.terminal.options import TomeFile, Yes
from tomewise.terminal.screen import console, escape
from tomewise.terminal.work import show_work

if TYPE_CHECKING:
    from tomewise.tome.reembedding import Reembedding


@app.command(epilog="Example: tome export --all > memory.jsonl")
def export(
    tome: TomeFile = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All that the file holds, also replies and traces, for `tome import`.")
    ] = False,
) -> None:
    """Print the whole memory as JSON lines in one order: equal memories print equal lines."""
    if everything:
        from tomewise.tome.open_store import export_all

        for line in export_all(find_tome(tome)):
            typer.echo(clean_json(line))
        return
    with open_tome(tome) as opened:
        for line in opened.memory.export():
            typer.echo(clean_json(line))


@app.command(name="import", epilog="Example: tome import memory.jsonl -m copy.tome")
def import_(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What `tome export --all` wrote, or - for standard input.")
    ],
    tome: TomeFile = None,
) -> None:
    """Make a new tome of an export: its memory, sessions, replies and traces. Stopped on the way, it leaves none."""
    from tomewise.tome.open_store import import_all

    path = find_tome(tome)
    with show_work(f"importing {path.name}"):
        if file == "-":
            import_all(path, "standard input", sys.stdin.buffer)
        else:
            try:
                with open(file, "rb") as stream:
                    import_all(path, file, stream)
            except OSError as error:
                raise UsageError(f"{file!r} cannot be read ({error.strerror}): check the path") from None
    console().print(f"[bold]imported[/bold] {escape(str(path))}")
    console().print(f"[dim]next: tome show{escape(repeat_options(tome))}[/dim]")


@app.command(epilog="Example: tome copy memory.tome postgresql://host/database#novels")
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="A tome: a file, or one in a database.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Where the copy is made; nothing may be there.")],
) -> None:
    """Copy a whole tome, replies and traces too, to a new file or into a database.

    Stopped on the way, it leaves none.
    """
    from tomewise.store.address import find_tome_address
    from tomewise.tome.open_store import copy_tome

    places = find_tome_address(source), find_tome_address(target)
    with show_work(f"copying {places[0].name}"):
        copy_tome(*places)
    console().print(f"[bold]copied[/bold] {escape(str(places[0]))} to {escape(str(places[1]))}")


@app.command(epilog="Example: tome drop -m postgresql://host/database#novels")
def drop(tome: TomeFile = None, yes: Yes = False) -> None:
    """Delete a tome with all that it holds, replies and traces too. It asks first."""
    from tomewise.tome.open_store import delete_tome, open_store

    place = find_tome(tome)
    with closing(open_store(place, create=False)) as store:
        words = f"{place} with {len(store.documents()):,} documents, and all that was made of them"
    if not yes:
        _confirm(f"Delete {words}?", f"this would delete {words}: give --yes if all of this is meant")
    delete_tome(place)
    console().print(f"[bold]deleted[/bold] {escape(str(place))}")


@app.command(name="reembed", epilog="Example: tome reembed --embedder openai:text-embedding-3-small")
def change_embedder(
    embedder: Annotated[str, typer.Option(metavar="NAME", help="The embedder that the tome gets.")],
    tome: TomeFile = None,
    yes: Yes = False,
) -> None:
    """Give a tome another embedder. All that a model wrote stays. It says before what that takes, and asks."""
    from tomewise.embedding.choose_embedder import choose_embedder
    from tomewise.store.lookups import read_setting
    from tomewise.tome.open_store import open_store
    from tomewise.tome.reembedding import foresee_reembedding, replace_embedder

    settings = configuration.load()
    chosen = choose_embedder(embedder, base_url=settings.embedder_base_url)
    path = find_tome(tome)
    with closing(open_store(path, create=False)) as store:
        if read_setting(store, "embedder") == chosen.name:
            raise UsageError(f"{path} was made with {chosen.name} already: name another embedder")
        with show_work("counting texts"):
            foreseen = foresee_reembedding(store, chosen)
        _print_foreseen(foreseen)
        if not yes:
            refusal = "a tome gets another embedder only where you can be asked: give --yes if all this is meant"
            _confirm("Embed them?", refusal)
        with show_work(f"embedding with {chosen.name}") as work:
            replace_embedder(store, chosen, work.report)
    console().print(f"[bold]{escape(path.name)}[/bold] has the embedder {escape(chosen.name)} now")


def _confirm(question: str, refusal: str) -> None:
    """Ask on the terminal, and end the command after a no. Raises UsageError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise UsageError(refusal)
    typer.confirm(question, abort=True, err=True)


def _print_foreseen(foreseen: Reembedding) -> None:
    err = console(stderr=True)
    counts = ", ".join(f"{count:,} of {space}" for space, count in foreseen.texts.items())
    total = sum(foreseen.texts.values())
    err.print(escape(f"{foreseen.embedder} embeds {total:,} texts ({counts or 'none'}), {foreseen.tokens:,} tokens."))
    if foreseen.cut:
        err.print(f"Of {foreseen.cut:,} passages it sees the beginning alone.")
    if foreseen.sizes:
        sizes = ", ".join(f"{name.replace('_', ' ')} {size:,}" for name, size in foreseen.sizes.items())
        err.print(f"Of passages to come: {sizes}.")
    if foreseen.grouped:
        names = ", ".join(foreseen.grouped)
        again = " ".join(f"--again {name}" for name in foreseen.grouped)
        words = (
            f"The clusters of {names} stay as the vectors of before formed them; `tome build {again}` forms new ones"
        )
        err.print(escape(f"{words}, and asks the model."))
