"""The command `tome`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tomewise import settings as configuration
from tomewise.credentials import hide_credentials
from tomewise.errors import UsageError
from tomewise.terminal.eval import app as evaluation
from tomewise.terminal.options import (
    BaseUrl,
    Documents,
    Json,
    MaxCalls,
    MaxCost,
    MaxTokens,
    Model,
    System,
    TomeFile,
    Where,
)
from tomewise.terminal.screen import console, print_json, show_progress, show_status
from tomewise.terminal.state import INTERRUPTED_MESSAGE, State, promise_to_resume

if TYPE_CHECKING:
    from tomewise.settings import Settings
    from tomewise.tome.tome import Tome
    from tomewise.types import Answer, Event, Passage, Scope


app = typer.Typer(
    name="tome",
    help="Answers that need the whole of a long document or a large corpus.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def common(
    context: typer.Context,
    tome: TomeFile = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    """Answers that need the whole of a long document or a large corpus."""
    State.tome = tome
    State.interrupted = INTERRUPTED_MESSAGE
    if version:
        from tomewise import __version__

        typer.echo(f"tome {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(epilog="Example: tome add novel.txt notes/ corpus.jsonl")
def add(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Files, folders, .jsonl corpora, or - for standard input.")
    ],
    tome: TomeFile = None,
    embedder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="bundled, fastembed:…, sentence-transformers:…, openai:… (fixed by the first add)"
        ),
    ] = None,
    passage_tokens: Annotated[
        int | None, typer.Option(min=8, help="Tokens of a passage (fixed by the first add).")
    ] = None,
    overlap: Annotated[
        int | None, typer.Option(min=0, help="Tokens that neighbouring passages share (fixed by the first add).")
    ] = None,
    prefix: Annotated[str, typer.Option(metavar="NAME", help="Put NAME/ before the ids of rows.")] = "",
    follow: Annotated[bool, typer.Option("--follow", help="Follow links in a folder to files outside of it.")] = False,
    as_json: Json = False,
) -> None:
    """Read documents and remember them. An unchanged document costs nothing, a changed one is replaced."""
    promise_to_resume()
    started = time.perf_counter()
    made_with: dict[str, Any] = {"embedder": embedder, "passage_tokens": passage_tokens, "overlap": overlap}
    with open_tome(tome, **made_with) as book, show_progress() as report_progress:
        report = book.add(*paths, prefix=prefix, follow=follow, on_progress=report_progress)
    if as_json:
        print_json(asdict(report))
        return
    out = console()
    for word in ("added", "replaced", "unchanged", "removed"):
        if documents := getattr(report, word):
            names = ", ".join(_short(document) for document in documents[:3]) + (", …" if len(documents) > 3 else "")
            why = ", no longer in the file" if word == "removed" else ""
            out.print(f"[bold]{word}[/bold] {_count(len(documents), 'document')}{why}: {_safe(names)}")
    for path, reason in (report.skipped or {}).items():
        out.print(f"[yellow]passed over[/yellow] {_safe(_short(path))}: {_safe(reason)}")
    out.print(f"[dim]{_count(report.passages, 'new passage')} in {time.perf_counter() - started:.1f} s[/dim]")
    out.print(f'[dim]next: tome ask{_safe(_same_options(tome))} "your question"[/dim]')


@app.command()
def remove(
    document: Annotated[str, typer.Argument(help="Id, path or title, or a unique part of the id.")],
    tome: TomeFile = None,
    as_json: Json = False,
) -> None:
    """Forget a document and everything that rests on it alone."""
    with open_tome(tome, create=False) as book:
        report = book.remove(document)
    if as_json:
        print_json(asdict(report))
        return
    derived = f" and {_count(report.derived, 'derived memory', 'derived memories')}" if report.derived else ""
    console().print(f"[bold]removed[/bold] {_safe(report.document)}: {_count(report.passages, 'passage')}{derived}")


@app.command(epilog="Example: tome build --system comorag --estimate")
def build(
    tome: TomeFile = None,
    system: System = "hybrid",
    estimate: Annotated[bool, typer.Option("--estimate", help="Print what it would cost, and spend nothing.")] = False,
    extractions: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Take entities and facts from this file instead of asking for them."),
    ] = None,
    again: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LAYER|PASSAGE", help="Forget this layer, or all that rests on this passage (an id), and ask again."
        ),
    ] = None,
    model: Model = None,
    base_url: BaseUrl = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    as_json: Json = False,
) -> None:
    """Make or update the memory layers that a system needs. A stopped build continues where it was."""
    from tomewise.systems.spec import parse_variant
    from tomewise.terminal import render
    from tomewise.tome import reports

    variant = parse_variant(system)
    promise_to_resume()
    bounds = {"max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost}
    with open_tome(tome, create=False, model=model, base_url=base_url, **bounds) as book:
        if estimate:
            costs = reports.costs_json(book.estimate(variant), variant, book.kit.model.name)
            print_json(costs) if as_json else render.print_costs(costs, console())
            return
        with show_progress() as report_progress:
            report = book.build(variant, extractions=extractions, again=again or (), on_progress=report_progress)
    if as_json:
        print_json(reports.build_json(report))
    else:
        render.print_build(report, variant, _same_options(tome, model, base_url), console())


@app.command(epilog='Example: tome ask "Who forged the letter?" --option "the doctor" --option "the clerk"')
def ask(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    tome: TomeFile = None,
    system: System = "hybrid",
    option: Annotated[
        list[str] | None, typer.Option(help="One option of a multiple-choice question; give it again for each.")
    ] = None,
    instructions: Annotated[str, typer.Option(help="How to answer; only the answering call sees it.")] = "",
    document: Documents = None,
    where: Where = None,
    force: Annotated[
        bool, typer.Option("--force", help="Guess instead of declining where the memory lacks the answer.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ask the model again instead of using its earlier replies.")
    ] = False,
    model: Model = None,
    base_url: BaseUrl = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show what the system retrieved and asked.")] = False,
    as_json: Json = False,
) -> None:
    """Answer a question from the memory and cite passages, or say what the memory lacks."""
    from tomewise.systems.spec import parse_variant
    from tomewise.terminal import render
    from tomewise.tome import reports, scopes

    variant = parse_variant(system)
    bounds = {"max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost}
    with open_tome(tome, create=False, model=model, base_url=base_url, **bounds) as book:
        scope = scopes.find_scope(book.store, documents=document or (), where=where or ())
        on_event = None if as_json or not trace else _show_event
        with show_status(f"asking {variant.name}"):
            answer = book.ask(
                question,
                options=option or (),
                instructions=instructions,
                force=force,
                fresh=fresh,
                system=variant,
                on_event=on_event,
                within=scope,
            )
        nearest = reports.find_nearest(answer, book.store)
    if as_json:
        _print_answer_json(answer, nearest, scope, trace=trace)
        return
    render.print_answer(answer, nearest, console(), scope)
    if answer.model == "extractive":
        console(stderr=True).print(f"[dim]{render.EXTRACTIVE_NOTE}[/dim]")


@app.command()
def show(
    document: Annotated[str | None, typer.Argument(help="Show one document instead of the whole tome.")] = None,
    tome: TomeFile = None,
    as_json: Json = False,
) -> None:
    """Show what a tome holds: its documents, its layers, its settings; or the text of one document."""
    from tomewise.terminal import render
    from tomewise.tome import reports

    with open_tome(tome, create=False) as book:
        if document is not None:
            whole = book.document(document)
            print_json(asdict(whole)) if as_json else typer.echo(whole.text)
            return
        contents = reports.contents_json(book)
    print_json(contents) if as_json else render.print_contents(contents, console())


@app.command()
def export(tome: TomeFile = None) -> None:
    """Print the whole memory as JSON lines in one order: equal memories print equal lines."""
    with open_tome(tome, create=False) as book:
        for line in book.export():
            typer.echo(line)


@app.command(epilog="Example: tome trust .")
def trust(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder that holds the file.")] = Path(),
    list_all: Annotated[bool, typer.Option("--list", help="List the folders that are trusted.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Trust the folder no longer.")] = False,
) -> None:
    """Let the tomewise.toml of a folder choose tome, model, embedder and prompts, until that file changes."""
    if list_all and forget:
        raise UsageError("--list and --forget exclude each other: give one of them")
    folder = folder.resolve()
    if list_all:
        for name in configuration.load_trusted_folders().all():
            typer.echo(name)
    elif forget:
        configuration.load_trusted_folders().forget(folder)
        console().print(f"[bold]forgotten[/bold] {_safe(str(folder))}")
    else:
        settings = configuration.trust(folder)
        console().print(f"[bold]trusted[/bold] {_safe(str(folder))}")
        for name, value in settings.items():
            console().print(f"  {name} = {_safe(repr(value))}")


app.add_typer(evaluation)


def _same_options(tome: str | None, models: Sequence[str] | None = None, base_url: str | None = None) -> str:
    """The options by which the next command names the same memory and models."""
    options = [
        ("--tome", tome or State.tome),
        *(("--model", model) for model in models or ()),
        ("--base-url", base_url),
    ]
    return "".join(f" {option} {quote(hide_credentials(value))}" for option, value in options if value)


@contextmanager
def open_tome(
    tome: str | None, *, create: bool = True, model: Sequence[str] | None = None, **options: str | int | float | None
) -> Iterator[Tome]:
    """Open the tome that options, environment and configuration files name."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    chosen: Settings = replace(configuration.with_models(configuration.load(), model or ()), **given)
    from tomewise.tome.tome import Tome

    book = Tome.open(
        tome or State.tome or chosen.tome,
        model=chosen.model,
        models=chosen.models,
        embedder=chosen.embedder,
        passage_tokens=chosen.passage_tokens,
        overlap=chosen.overlap,
        create=create,
        embedder_base_url=chosen.embedder_base_url,
        prompts=chosen.prompts,
        base_url=chosen.base_url,
        limit=chosen.limit,
        timeout=chosen.timeout,
        window=chosen.window,
        max_calls=chosen.max_calls,
        max_tokens=chosen.max_tokens,
        max_cost=chosen.max_cost,
        read_seconds=chosen.read_seconds,
        read_memory=chosen.read_memory,
        read_characters=chosen.read_characters,
        trace_bytes=chosen.trace_bytes,
    )
    with book:
        yield book


def _print_answer_json(answer: Answer, nearest: Sequence[Passage], scope: Scope | None, *, trace: bool) -> None:
    from tomewise.tome.reports import as_json, nearest_json
    from tomewise.tome.scopes import scope_json

    events = {"trace": [asdict(event) for event in answer.events]} if trace else {}
    print_json({**as_json(answer), "within": scope_json(scope), "nearest": nearest_json(nearest), **events})


def _show_event(event: Event) -> None:
    from tomewise.terminal import render

    render.print_event(event, console())


def _short(document: str) -> str:
    return document.rsplit("/", 1)[-1]


def _safe(text: str) -> str:
    from tomewise.terminal.render import escape

    return escape(text)


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
