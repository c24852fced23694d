"""The command `tome`, and of its commands those that build, ask, search and show."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from tomewise import settings as configuration
from tomewise.credentials import hide_credentials
from tomewise.errors import UnknownName, UsageError
from tomewise.terminal.completion import complete_documents, complete_layers
from tomewise.terminal.eval import app as evaluation
from tomewise.terminal.garbage import collect_as_usual
from tomewise.terminal.options import (
    MODEL,
    NOTHING,
    Current,
    Documents,
    Effort,
    Estimate,
    Json,
    Markdown,
    SessionName,
    SessionSystem,
    Stated,
    System,
    TomeFile,
    Where,
    Yes,
    load_settings,
    repeat_settings,
    take_settings,
)
from tomewise.terminal.screen import console, escape, print_json, print_message
from tomewise.terminal.state import INTERRUPTED_MESSAGE, State, promise_to_resume
from tomewise.terminal.work import Work, pause_work, show_work

if TYPE_CHECKING:
    from tomewise.store.address import DatabaseAddress, TomeAddress
    from tomewise.store.contract import Texts
    from tomewise.systems.registry import Variant
    from tomewise.tome.reports import Price
    from tomewise.tome.tome import OnProgress, Tome
    from tomewise.tome.view import TomeView
    from tomewise.types import Answer, Event, Question

_LONGEST = 1_000_000  # bytes of a question
_TOGETHER = 4  # passages in a call: the size that bench/RESULTS.md compares with one

app = typer.Typer(
    name="tome",
    help="Answers that need the whole of a long document or a large corpus.",
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


@app.command(epilog="Example: tome build --system comorag --estimate")
@take_settings("on", "workers", *MODEL)
def build(
    tome: TomeFile = None,
    system: System = None,
    estimate: Estimate = False,
    yes: Yes = False,
    layer: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Build this layer too, with all that it needs; give it again for each."),
    ] = None,
    extractions: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Take entities and facts from this file instead of asking for them."),
    ] = None,
    again: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LAYER|PASSAGE",
            help="Forget this layer, or all that rests on this passage (an id), and ask again.",
            autocompletion=complete_layers,
        ),
    ] = None,
    stated: Stated = NOTHING,
    as_json: Json = False,
) -> None:
    """Make or update the memory layers that a system needs. A stopped build continues where it was."""
    if estimate and (extractions or again):
        option = "--extractions" if extractions else "--again"
        raise UsageError(f"--estimate does not count what {option} changes: leave one of the two out")
    system = system or find_system()
    promise_to_resume()
    with show_work(f"{'estimating' if estimate else 'building'} {system}") as work:
        from tomewise.systems.registry import parse_variant
        from tomewise.terminal import render

        variant = parse_variant(system)
        with open_tome(tome, stated) as opened:
            if estimate:
                costs = _estimate_costs(opened, variant, work.report, layer or ())
            else:
                if not (yes or extractions or again):
                    confirm_price(opened, variant, layers=layer or ())
                collect_as_usual()
                report = opened.build(
                    variant,
                    layers=layer or (),
                    extractions=extractions,
                    again=again or (),
                    on_progress=work.report,
                )
    if estimate:
        print_json(costs) if as_json else render.print_price(costs, console())
    elif as_json:
        print_json(report)
    else:
        render.print_build(report, variant, repeat_options(tome, stated), console())


def _estimate_costs(tome: Tome, variant: Variant, report: OnProgress, layers: Sequence[str]) -> Price:
    """What a build would use: what `tome build --estimate --json` prints.

    `instead` is the same system with several passages in a call, or with one where it has several already. It is there
    if the system has the setting `together` and the calls are not free.
    """
    from tomewise.systems.recipe_settings import list_settings
    from tomewise.systems.registry import choose_variant

    costs = tome.memory.estimate(variant, layers=layers, on_progress=report)
    if "together" in list_settings(variant.declaration.recipe) and costs.total.calls and costs.total.dollars != 0:
        size = _TOGETHER if variant.settings.get("together", 1) == 1 else 1
        resized = choose_variant(variant, {"together": size})
        with suppress(UsageError):  # with other settings it may read one text at a time only, as relations are
            return replace(costs, instead=tome.memory.estimate(resized, layers=layers, on_progress=report))
    return costs


@app.command(epilog='Example: tome ask "Who forged the letter?" --option "the doctor" --option "the clerk"')
@take_settings("only_supported", *MODEL)
def ask(
    question: Annotated[
        list[str],
        typer.Argument(metavar="QUESTION...", help="What you want to know, or - to read it from standard input."),
    ],
    tome: TomeFile = None,
    system: SessionSystem = None,
    effort: Effort = None,
    session: SessionName = None,
    go_on: Annotated[bool, typer.Option("-c", "--continue", help="Go on with the last session, or begin one.")] = False,
    option: Annotated[
        list[str] | None, typer.Option(help="One option of a multiple-choice question; give it again for each.")
    ] = None,
    instructions: Annotated[str, typer.Option(help="How to answer; only the answering call sees it.")] = "",
    form: Annotated[
        str | None, typer.Option(help="What the answer shall look like: short, list, table, account or summary.")
    ] = None,
    document: Documents = None,
    where: Where = None,
    force: Annotated[
        bool, typer.Option("--force", help="Guess instead of declining where the memory lacks the answer.")
    ] = False,
    current: Current = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ask the model again instead of using its earlier replies.")
    ] = False,
    estimate: Estimate = False,
    yes: Yes = False,
    stated: Stated = NOTHING,
    trace: Annotated[bool, typer.Option("--trace", help="Show what the system retrieved and asked.")] = False,
    markdown: Markdown = False,
    as_json: Json = False,
) -> None:
    """Answer a question from the memory and cite passages, or say what the memory lacks."""
    text = read_question(" ".join(question))
    check_formats(as_json=as_json, markdown=markdown)
    if go_on and session:
        raise UsageError("-c goes on with the last session and --session names one: give one of the two")
    with show_work(" ".join(filter(None, ("asking", session or system or effort)))) as work:
        from tomewise.loops.answer_parts import answer_whole
        from tomewise.systems.efforts import EFFORTS, choose_by_effort
        from tomewise.systems.registry import SYSTEMS, parse_variant
        from tomewise.terminal import render
        from tomewise.types import Question

        if system in EFFORTS and system not in SYSTEMS:
            raise UnknownName(f"{system!r} is not a system: write --effort {system}")
        with open_tome(tome, stated) as opened:
            part = opened.within(*document or (), where=where or ())
            session = find_last_session(opened) if go_on else session
            begun = opened.sessions[session].read() if session else None
            before = begun.system if begun else ""
            system = choose_by_effort(system, effort, opened.kit, current=current, begun=before)
            variant = parse_variant(system or find_system())
            listener = choose_listener(work, opened.store if trace and not as_json else None)
            asked = Question(
                text=text,
                options=tuple(option or ()),
                instructions=instructions,
                form=form,  # type: ignore[arg-type]  # checked with the question
                force=force,
                current=current,
            )
            if estimate:
                price = part.estimate(asked, system=variant)
            else:
                if not yes:
                    confirm_price(part, variant, asked)
                with nullcontext() if work.is_shown else answer_whole():
                    if session is None:
                        answer = part.ask(asked, system=variant, fresh=fresh, on_event=listener)
                    else:
                        named, talk = variant if system else None, part.sessions[session]
                        answer = talk.ask(asked, system=named, fresh=fresh, on_event=listener)
    if estimate:
        print_json(price) if as_json else render.print_price(price, console())
        return
    print_answer(answer, as_json, as_markdown=markdown, with_trace=trace)
    if as_json or markdown:
        return
    if answer.only_quotes:
        console(stderr=True).print(f"[dim]{escape(render.note_extractive())}[/dim]")
    render.offer_build(answer.lagging, repeat_options(tome, stated), console(stderr=True))


@app.command(epilog='Example: tome search "the forged letter" --limit 5')
@take_settings(*MODEL)
def search(
    query: Annotated[list[str], typer.Argument(metavar="QUERY...", help="What to look for.")],
    tome: TomeFile = None,
    system: System = None,
    limit: Annotated[int, typer.Option(min=1, help="At most this many pieces of evidence.")] = 10,
    document: Documents = None,
    where: Where = None,
    current: Current = False,
    stated: Stated = NOTHING,
    as_json: Json = False,
) -> None:
    """Show the evidence that a system finds, without an answer. No model is asked to answer."""
    system = system or find_system()
    with show_work(f"searching with {system}"):
        from tomewise.systems.registry import parse_variant
        from tomewise.terminal import render
        from tomewise.types import Question

        variant = parse_variant(system)
        with open_tome(tome, stated) as opened:
            part = opened.within(*document or (), where=where or ())
            asked = Question(text=" ".join(query), current=current)
            found = part.search(asked, system=variant, limit=limit)
            lagging = part.lag(asked, system=variant)
    print_json(found) if as_json else render.print_evidence(found, console(), part.scope)
    render.print_lag(lagging, console(stderr=True))
    render.offer_build(lagging, repeat_options(tome, stated), console(stderr=True))


@app.command(epilog="Example: tome find 1,200 --kind value --document reports/")
def find(
    wanted: Annotated[list[str], typer.Argument(metavar="TEXT...", help="What to find: any of these texts.")],
    tome: TomeFile = None,
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="words; a value (in any spelling); a name (with its other names); or a pattern (RE2).",
        ),
    ] = "words",
    case: Annotated[bool, typer.Option("--case", help="Tell capitals from small letters.")] = False,
    document: Documents = None,
    where: Where = None,
    limit: Annotated[int, typer.Option(min=0, help="Show at most so many places. All are counted.")] = 20,
    skip: Annotated[int, typer.Option(min=0, help="Leave out so many from the start.")] = 0,
    as_json: Json = False,
) -> None:
    """Find every place that has a text, exactly, and count them. No model is asked."""
    with show_work(f"finding {wanted[0]}"):
        from tomewise.terminal import render

        with open_tome(tome) as opened:
            part = opened.within(*document or (), where=where or ())
            hits = part.find(*wanted, kind=kind, case=case, limit=limit, skip=skip)  # type: ignore[arg-type]  # checked
    print_json(hits) if as_json else render.print_hits(hits, skip, console(), part.scope)


@app.command(epilog='Example: tome collect "all tenders" --column name --column "paid:number" --figure "sum paid"')
@take_settings(*MODEL)
def collect(
    asked: Annotated[str, typer.Argument(help="What to collect: all things of one kind.")],
    tome: TomeFile = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:KIND]", help="A column; KIND: text, number, date. Without any, one call plans them."
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A column by which two rows are the same thing; without any, the first."),
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option(metavar="FIGURE", help='What to compute: "sum paid", "mean paid", "least paid", "last day".'),
    ] = None,
    document: Documents = None,
    where: Where = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ask the model again about every passage.")] = False,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the table to a .csv, .md, .json or .parquet file.")
    ] = None,
    stated: Stated = NOTHING,
    markdown: Markdown = False,
    as_json: Json = False,
) -> None:
    """Make a table of all things of one kind: every passage is read, each cell has its quotation, code computes."""
    check_formats(as_json=as_json, markdown=markdown)
    promise_to_resume()
    with show_work("collecting") as work:
        from tomewise.terminal import render
        from tomewise.tome.collected import check_table_file

        if output:
            check_table_file(output)

        with open_tome(tome, stated) as opened:
            part = opened.within(*document or (), where=where or ())
            table = part.collect(
                asked,
                columns=column or (),
                key=key or (),
                figures=figure or (),
                fresh=fresh,
                on_progress=work.report,
            )
    if output:
        table.save(output)
    if as_json:
        print_json(table)
    elif markdown:
        console().print(table.to_markdown(), markup=False, soft_wrap=True)
    else:
        render.print_table(table, console(), show_rows=output is None)


@app.command(epilog="Example: tome verify draft.md --document reports/")
@take_settings("only_supported", *MODEL)
def verify(
    file: Annotated[str, typer.Argument(help="A file that `tome add` can read, or - for standard input.")],
    tome: TomeFile = None,
    document: Documents = None,
    where: Where = None,
    judge: Annotated[
        bool, typer.Option("--judge", help="Ask the model about each statement that is inferred or unsupported.")
    ] = False,
    stated: Stated = NOTHING,
    markdown: Markdown = False,
    as_json: Json = False,
) -> None:
    """Say of each statement of a text whether documents state it. No model is asked without --judge."""
    check_formats(as_json=as_json, markdown=markdown)
    with show_work(f"verifying {file}"):
        from tomewise.reading.process import ReaderProcess
        from tomewise.reading.read import SourceReader

        with ReaderProcess() as process:
            documents = SourceReader(process).read(file).documents
            text = "\n\n".join(each.text[each.body :] for each in documents)
        with open_tome(tome, stated) as opened:
            answer = opened.within(*document or (), where=where or ()).verify(text, judge=judge)
    print_answer(answer, as_json=as_json, as_markdown=markdown)


@app.command()
def show(
    document: Annotated[
        str | None,
        typer.Argument(help="Show one document instead of the whole tome.", autocompletion=complete_documents),
    ] = None,
    tome: TomeFile = None,
    part: Annotated[
        str, typer.Option(help='Of the document only this: "page 3", "chapter NAME", "lines 1-20", "characters 0-500".')
    ] = "",
    outline: Annotated[bool, typer.Option("--outline", help="Of the document its headings, pages, speakers.")] = False,
    entity: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Show what the graphs hold on this person, place or thing instead."),
    ] = None,
    flags: Annotated[
        bool, typer.Option("--flags", help="Show instead what models wrote into memory that its texts do not support.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what a tome holds: its documents, its layers, its settings; or the text of one document, or an entity.

    Of a database without the name of a tome it lists the tomes.
    """
    from tomewise.terminal import render
    from tomewise.tome.holdings import list_losses, read_contents
    from tomewise.types import Document

    if sum((document is not None, entity is not None, flags)) > 1:
        raise UsageError("give a document, --entity or --flags: each is shown alone")
    if (part or outline) and (document is None or (part and outline)):
        raise UsageError("--part or --outline is of a document: name it, and give one of the two")
    if entity is not None:
        with open_tome(tome) as opened:
            found = opened.memory.entity(entity)
        print_json(found) if as_json else render.print_entity(found, console())
        return
    if document is None and (database := find_whole_database(tome)):
        show_tomes(database, as_json)
        return
    with open_tome(tome) as opened:
        if document is not None and outline:
            outlined = opened.documents.outline(document)
            print_json(outlined) if as_json else render.print_outline(outlined, console())
            return
        if document is not None:
            whole = opened.documents.read(document, part) if part else opened.documents[document]
            if isinstance(whole, Document) and (lost := list_losses(opened.store, [whole.id])):
                print_message(f"left out: {lost[whole.id]}")
            # Not through typer, which leaves out of a pipe what looks like a colour.
            print_json(whole) if as_json else print(whole.text)
            return
        contents = read_contents(opened.store, opened.model_name)
    print_all = render.print_flags if flags else render.print_contents
    print_json(contents) if as_json else print_all(contents, console())


app.add_typer(evaluation)


def confirm_price(
    part: TomeView, variant: Variant, question: Question | None = None, layers: Sequence[str] = ()
) -> None:
    """Show the price if it is high, and ask on a terminal whether to pay it: a no ends the command."""
    price = part.price_above(configuration.load().ask_above, question, system=variant, layers=layers)
    if price:
        with pause_work():
            print_message(f"this takes {price.text}")
            if sys.stdin.isatty():
                typer.confirm("Go on?", abort=True, err=True)


def repeat_options(tome: str | None, stated: Stated = NOTHING) -> str:
    """The options by which the next command names the same memory and models."""
    options = [("--tome", tome or State.tome), *repeat_settings(stated, "model", "base_url")]
    return "".join(f" {option} {quote(hide_credentials(value))}" for option, value in options if value)


def find_system() -> str:
    """The system that the environment or a configuration file names, or the default."""
    return configuration.load().system


def find_tome(tome: str | None) -> TomeAddress:
    """Where the tome is that an option, the environment or a configuration file names. Raises UsageError."""
    from tomewise.store.address import find_tome_address

    return find_tome_address(tome or State.tome or configuration.load().tome)


def find_whole_database(tome: str | None) -> DatabaseAddress | None:
    """The database that is named without a tome in it; None where a tome is named. Raises UsageError."""
    from tomewise.store.address import find_database

    database = find_database(tome or State.tome or configuration.load().tome)
    return database if database is not None and not database.tome else None


def show_tomes(database: DatabaseAddress, as_json: bool) -> None:
    """What `tome show` prints of a database: its tomes."""
    from tomewise.tome.open_store import list_tomes

    tomes = list_tomes(database)
    if as_json:
        print_json({"tomes": [{"tome": name, "bytes": size} for name, size in tomes.items()]})
        return
    for name, size in tomes.items():
        console().print(f"[bold]{escape(name)}[/bold]  {size / 1e6:,.1f} MB")
    if not tomes:
        console().print(f"[dim]no tome yet: tome add -m {escape(str(database))}#NAME PATH makes one[/dim]")


@contextmanager
def open_tome(tome: str | None, stated: Stated = NOTHING, *, create: bool = False) -> Iterator[Tome]:
    """Open the tome that options, environment and configuration files name."""
    settings = load_settings(stated, tome=tome or State.tome or None)
    from tomewise.tome.tome import Tome

    with Tome.open(settings=settings, create=create) as opened:
        yield opened


def check_formats(*, as_json: bool, markdown: bool) -> None:
    """Raise UsageError where an answer should be printed in two formats."""
    if markdown and as_json:
        raise UsageError("--markdown and --json print the same answer: give one of the two")


def print_answer(answer: Answer, as_json: bool, *, as_markdown: bool = False, with_trace: bool = False) -> None:
    """Print an answer for people or for programs; for these `with_trace` prints its events too."""
    from tomewise.terminal import render

    if as_markdown:
        console().print(answer.to_markdown(), markup=False)
    elif as_json:
        print_json(answer.to_dict() | ({"events": answer.events} if with_trace else {}))
    else:
        render.print_answer(answer, console())


def find_last_session(tome: Tome) -> str:
    """The session that was answered last, else a name that is free."""
    from tomewise.store.records import SESSIONS

    kept = set(tome.store.note_names(SESSIONS))
    before: int | None = None
    while kept and (page := tome.traces.latest(before=before)):
        for trace in page:
            if trace.answer.session and trace.answer.session.name in kept:
                return trace.answer.session.name
        before = page[-1].number
    return find_free_name(tome)


def find_free_name(tome: Tome) -> str:
    """A name for a new session."""
    from tomewise.store.records import SESSIONS

    taken = set(tome.store.note_names(SESSIONS))
    return next(name for number in range(1, len(taken) + 2) if (name := f"chat-{number}") not in taken)


def choose_listener(work: Work, store: Texts | None = None) -> Callable[[Event], None] | None:
    """Who hears the events of a question: the screen, and with a `store` the trace, which is printed; or nobody."""

    def hear(event: Event) -> None:
        from tomewise.events import is_event
        from tomewise.terminal import render

        work.hear(event)
        if store and not is_event(event, "answer_part"):
            render.print_event(event, work.console(), store)

    return hear if store or work.is_shown else None


def read_question(question: str) -> str:
    """The question; for `-`, the text of standard input. Raises UsageError for a text that no question can be."""
    if question != "-":
        return question
    if sys.stdin is None:
        raise UsageError("standard input is closed: pipe the question into the command, or write it as an argument")
    raw = sys.stdin.buffer.read(_LONGEST + 1)
    if len(raw) > _LONGEST:
        raise UsageError(f"standard input has more than {_LONGEST:,} bytes: a question is shorter")
    return raw.decode("utf-8", errors="surrogateescape").strip()
