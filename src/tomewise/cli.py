"""The command `tome`."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from tomewise import settings as configuration
from tomewise.credentials import hide_credentials
from tomewise.errors import TomewiseError, UsageError
from tomewise.evaluate.command import app as evaluation

if TYPE_CHECKING:
    from rich.console import Console

    from tomewise.settings import Settings
    from tomewise.tome import Tome
    from tomewise.types import Answer, Event, Passage, Progress

INTERRUPTED = 130
_WrongCall: Any = typer.BadParameter.__mro__[1]  # what typer raises for a wrong call; it has no public name
_WIDE = 2000  # characters
_GRACE = 1.5  # seconds that an interrupted command may take to tidy up
_KEPT = "tome: interrupted; what was finished is kept"

app = typer.Typer(
    name="tome",
    help="Answers that need the whole of a long document or a large corpus.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

TomeFile = Annotated[
    str | None, typer.Option("--tome", "-m", metavar="FILE", help="The memory to use. [dim]Default: memory.tome[/dim]")
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="NAME", help="extractive, openai:gpt-4o-mini, anthropic:…, ollama:… Default: extractive"
    ),
]
BaseUrl = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="Address of an OpenAI-compatible server for the model.")
]
MaxCalls = Annotated[int | None, typer.Option(min=0, help="Stop before more model calls than this.")]
MaxTokens = Annotated[int | None, typer.Option(min=0, help="Stop once this many tokens are used.")]
MaxCost = Annotated[float | None, typer.Option(min=0, help="Stop once this many dollars are spent.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
System = Annotated[
    str,
    typer.Option(
        "--system",
        "-s",
        metavar="NAME",
        help="How to answer; `tome systems` lists them. With settings: 'NAME key=value', with a part left out: "
        "'NAME:ABLATION'.",
    ),
]


class _State:
    tome: str | None = None
    kept = _KEPT  # what an interrupted command says


@app.callback(invoke_without_command=True)
def common(
    context: typer.Context,
    tome: TomeFile = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    """Answers that need the whole of a long document or a large corpus."""
    _State.tome = tome
    _State.kept = _KEPT
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
        int | None, typer.Option(min=8, help="Size of a passage (fixed by the first add).")
    ] = None,
    overlap: Annotated[
        int | None, typer.Option(min=0, help="Tokens that neighbours share (fixed by the first add).")
    ] = None,
    prefix: Annotated[str, typer.Option(metavar="NAME", help="Put NAME/ before the ids of rows.")] = "",
    follow: Annotated[
        bool, typer.Option("--follow", help="Read files outside of a folder to which links in it lead.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Read documents and remember them. What is there unchanged costs nothing; what changed is replaced."""
    _goes_on()
    started = time.perf_counter()
    with _opened(tome, embedder=embedder, passage_tokens=passage_tokens, overlap=overlap) as book, _progress() as show:
        report = book.add(*paths, prefix=prefix, follow=follow, on_progress=show)
    if as_json:
        _print_json(asdict(report))
        return
    out = _console()
    for word in ("added", "replaced", "unchanged", "removed"):
        if documents := getattr(report, word):
            names = ", ".join(_short(document) for document in documents[:3]) + (", …" if len(documents) > 3 else "")
            why = ", no longer in the file" if word == "removed" else ""
            out.print(f"[bold]{word}[/bold] {_count(len(documents), 'document')}{why}: {_safe(names)}")
    for path, reason in (report.skipped or {}).items():
        out.print(f"[yellow]passed over[/yellow] {_safe(_short(path))}: {_safe(reason)}")
    out.print(f"[dim]{_count(report.passages, 'new passage')} in {time.perf_counter() - started:.1f} s[/dim]")
    out.print(f'[dim]next: tome ask{_safe(_at(tome))} "your question"[/dim]')


@app.command()
def remove(
    document: Annotated[str, typer.Argument(help="Id, path or title, or a unique part of the id.")],
    tome: TomeFile = None,
    as_json: Json = False,
) -> None:
    """Forget a document and everything that rested on it alone."""
    with _opened(tome, create=False) as book:
        report = book.remove(document)
    if as_json:
        _print_json({"document": report.document, "passages": report.passages, "derived": report.derived})
        return
    derived = f" and {_count(report.derived, 'derived memory', 'derived memories')}" if report.derived else ""
    _console().print(f"[bold]removed[/bold] {_safe(report.document)}: {_count(report.passages, 'passage')}{derived}")


@app.command(epilog="Example: tome build --system comorag --estimate")
def build(
    tome: TomeFile = None,
    system: System = "hybrid",
    estimate: Annotated[bool, typer.Option("--estimate", help="Say what it would cost, and spend nothing.")] = False,
    extractions: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Take entities and facts from this file instead of asking for them."),
    ] = None,
    again: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LAYER|PASSAGE", help="Forget this layer, or all that rests on a passage (by its id); ask anew."
        ),
    ] = None,
    model: Model = None,
    base_url: BaseUrl = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    as_json: Json = False,
) -> None:
    """Make or update the memory layers that a system needs. A build that was stopped goes on where it was."""
    from tomewise import showing
    from tomewise.variants import variant_named

    variant = variant_named(system)
    _goes_on()
    bounds = {"max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost}
    with _opened(tome, create=False, model=model, base_url=base_url, **bounds) as book:
        if estimate:
            costs = showing.costs(book, variant)
            _print_json(costs) if as_json else showing.print_costs(costs, _console())
            return
        with _progress() as show:
            report = book.build(
                variant.system, extractions=extractions, again=again or (), on_progress=show, **variant.settings
            )
    if as_json:
        _print_json(showing.build_json(report))
    else:
        showing.print_build(report, variant, _at(tome, model, base_url), _console())


@app.command(epilog='Example: tome ask "Who forged the letter?" --option "the doctor" --option "the clerk"')
def ask(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    tome: TomeFile = None,
    system: System = "hybrid",
    option: Annotated[
        list[str] | None, typer.Option(help="One option of a multiple-choice question; give it again for each.")
    ] = None,
    instructions: Annotated[str, typer.Option(help="How to answer, for the answering role alone.")] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Guess where the memory does not hold the answer, and do not decline.")
    ] = False,
    model: Model = None,
    base_url: BaseUrl = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show what was retrieved and asked on the way.")] = False,
    as_json: Json = False,
) -> None:
    """Answer a question from the memory, with the passages the answer rests on, or say what the memory lacks."""
    from tomewise import showing
    from tomewise.variants import variant_named

    variant = variant_named(system)
    bounds = {"max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost}
    with _opened(tome, create=False, model=model, base_url=base_url, **bounds) as book:
        show = None if as_json or not trace else _show_event
        with _waiting(f"asking {variant.name}"):
            answer = book.ask(
                question,
                options=option or (),
                instructions=instructions,
                force=force,
                system=variant.system,
                on_event=show,
                **variant.settings,
            )
        nearest = showing.nearest(answer, book.store)
    if as_json:
        _print_answer_json(answer, nearest, trace)
        return
    showing.print_answer(answer, nearest, _console())
    if answer.model == "extractive":
        _console(stderr=True).print(f"[dim]{showing.EXTRACTIVE_NOTE}[/dim]")


@app.command()
def show(
    document: Annotated[str | None, typer.Argument(help="Show one document instead of the whole tome.")] = None,
    tome: TomeFile = None,
    traces: Annotated[int, typer.Option(min=0, help="Show how the latest N questions were answered.")] = 0,
    as_json: Json = False,
) -> None:
    """Show what a tome holds: its documents, its layers, its settings; or the text of one document."""
    from tomewise import showing

    with _opened(tome, create=False) as book:
        if document is not None:
            found = book.document(document)
            text = {"id": found.id, "title": found.title, "source": found.source, "text": found.text}
            _print_json(text) if as_json else typer.echo(found.text)
            return
        if traces:
            kept = book.store.traces(traces)
            _print_json(kept) if as_json else _console().print(showing.traces_table(kept))
            return
        contents = showing.contents(book)
    _print_json(contents) if as_json else showing.print_contents(contents, _console())


@app.command()
def export(tome: TomeFile = None) -> None:
    """Print the whole memory as JSON lines in one canonical order: equal memories export equally."""
    with _opened(tome, create=False) as book:
        for line in book.export():
            typer.echo(line)


@app.command()
def systems(as_json: Json = False) -> None:
    """List the ways of answering, their ablations, and where they deviate from their papers."""
    from rich.table import Table

    from tomewise.systems import DEFAULT, RECIPES, describe, deviations
    from tomewise.variants import ablations

    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "description": describe(name),
            "default": name == DEFAULT,
            "ablations": list(ablations(name)),
            "deviations": deviations(name),
        }
        for name in RECIPES
    ]
    if as_json:
        _print_json(rows)
        return
    table = Table("system", "what it does", box=None, pad_edge=False)
    for row in rows:
        more = [f"\n  [dim]:{ablation}[/dim]" for ablation in row["ablations"]]
        if row["deviations"]:
            more.append(f"\n  [dim]Deviations: {row['deviations']}[/dim]")
        name = f"[bold]{row['name']}[/bold]" + (" [dim](default)[/dim]" if row["default"] else "")
        table.add_row(name, row["description"] + "".join(more))
    _console().print(table)


@app.command(epilog="Example: tome trust .")
def trust(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder that holds the file.")] = Path(),
    listed: Annotated[bool, typer.Option("--list", help="List the folders that are trusted.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Trust the folder no longer.")] = False,
) -> None:
    """Let a folder's tomewise.toml choose the tome, the model, the embedder and the prompts, until it is changed."""
    if listed and forget:
        raise UsageError("--list and --forget exclude each other: give one of them")
    folder = folder.resolve()
    if listed:
        for name in configuration.trusted_folders().all():
            typer.echo(name)
    elif forget:
        configuration.trusted_folders().forget(folder)
        _console().print(f"[bold]forgotten[/bold] {_safe(str(folder))}")
    else:
        found = configuration.trust(folder)
        _console().print(f"[bold]trusted[/bold] {_safe(str(folder))}")
        for name, value in found.items():
            _console().print(f"  {name} = {_safe(repr(value))}")


app.add_typer(evaluation)


def main() -> NoReturn:
    """The command: as `run` on the arguments it was called with; an interrupt ends it within two seconds."""
    signal.signal(signal.SIGINT, _interrupt)
    _fill_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a letter is no reason to fail
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = code or 1
    except OSError as error:
        code = _failed(error, f"standard output cannot be written: {error.strerror}", code or 1, False)
    sys.stderr.flush()
    os._exit(code)  # threads of a library may still be computing: do not wait for them


def _fill_streams() -> None:
    """Put something in place of standard streams that are closed: the next file opened, a tome, would take theirs."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            place = os.open(os.devnull, os.O_RDWR)
            if place != number:
                os.dup2(place, number)
                os.close(place)
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))


def run(arguments: Sequence[str]) -> int:
    """Run one command. Errors become one line on standard error, and the exit code that is returned."""
    debug = "--debug" in arguments
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _warn
            code = app([word for word in arguments if word != "--debug"], prog_name="tome", standalone_mode=False)
    except TomewiseError as error:
        return _failed(error, str(error), error.exit_code, debug)
    except _WrongCall as error:  # typer's own
        name = error.ctx.command_path if error.ctx else "tome"
        return _failed(error, f"{error.format_message()} (`{name} --help` tells more)", UsageError.exit_code, debug)
    except SystemExit:  # typer's answer to a pipe that was closed
        return 1
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:  # noqa: BLE001 - a mistake of ours, told without the keys that it may hold
        message = f"an error of Tomewise itself, {type(error).__name__}: {error}; --debug says where"
        return _failed(error, message, 1, debug)
    if code == INTERRUPTED:
        print(_State.kept, file=sys.stderr)
    return code or 0


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    print(f"tome: {hide_credentials(str(message))}", file=sys.stderr)


def _failed(error: Exception, message: str, code: int, debug: bool) -> int:
    if debug:
        print(hide_credentials("".join(traceback.format_exception(error))), file=sys.stderr)
    print(f"tome: {hide_credentials(' '.join(line.strip() for line in message.splitlines()))}", file=sys.stderr)
    return code


def _interrupt(*_: object) -> None:
    # Work in threads may not notice for a while; nothing is lost by ending under it, for a tome survives a kill.
    watchdog = threading.Timer(_GRACE, _give_up)
    watchdog.daemon = True
    watchdog.start()
    raise KeyboardInterrupt


def _at(tome: str | None, model: str | None = None, base_url: str | None = None) -> str:
    """How the next command names the same memory and model: as this one did."""
    given = {"--tome": tome or _State.tome, "--model": model, "--base-url": base_url}
    return "".join(f" {option} {quote(hide_credentials(value))}" for option, value in given.items() if value)


def _goes_on() -> None:
    """For commands that begin where an interrupted one ended."""
    _State.kept = f"{_KEPT}, the same command goes on from there"


def _give_up() -> None:
    show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""
    print(f"{show_cursor}{_State.kept}", file=sys.stderr, flush=True)
    os._exit(INTERRUPTED)


@contextmanager
def _opened(tome: str | None, *, create: bool = True, **given: str | int | float | None) -> Iterator[Tome]:
    """The tome that options, environment and configuration files name."""
    stated: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    chosen: Settings = replace(configuration.load(), **stated)
    from tomewise.tome import Tome

    book = Tome.open(
        tome or _State.tome or chosen.tome,
        model=chosen.model,
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
    )
    with book:
        yield book


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDE  # programs and files get whole lines
    return Console(stderr=stderr, soft_wrap=True, highlight=False, emoji=False, width=width)


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None]]:
    """A bar on the terminal for whatever reports progress."""
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    console = _console(stderr=True)
    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: dict[str, Any] = {}

        def report(progress: Progress) -> None:
            if progress.label not in tasks:
                tasks[progress.label] = bars.add_task(progress.label)
            bars.update(tasks[progress.label], completed=progress.done, total=progress.total or None)

        yield report


@contextmanager
def _waiting(what: str) -> Iterator[None]:
    with _console(stderr=True).status(what) if sys.stderr.isatty() else _nothing():
        yield


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def _print_json(data: object) -> None:
    typer.echo(json.dumps(data, ensure_ascii=False))


def _print_answer_json(answer: Answer, nearest: Sequence[Passage], trace: bool) -> None:
    from tomewise.reports import as_json, nearest_json

    events = {"trace": [asdict(event) for event in answer.events]} if trace else {}
    _print_json({**as_json(answer), "nearest": nearest_json(nearest), **events})


def _show_event(event: Event) -> None:
    from tomewise import showing

    showing.print_event(event, _console())


def _short(document: str) -> str:
    return document.rsplit("/", 1)[-1]


def _safe(text: str) -> str:
    from tomewise.showing import escape

    return escape(text)


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


if __name__ == "__main__":
    main()
