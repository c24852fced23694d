"""The commands `tome chat`, `tome sessions` and `tome log`: questions that follow one another, and those of before."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from tomewise.errors import BudgetExceeded, ModelError, ModelUnavailable, UnknownName, UsageError, suggest
from tomewise.terminal.commands import (
    app,
    choose_listener,
    find_free_name,
    open_tome,
    print_answer,
)
from tomewise.terminal.completion import complete_sessions
from tomewise.terminal.options import (
    MODEL,
    NOTHING,
    Current,
    Documents,
    Json,
    SessionSystem,
    Stated,
    TomeFile,
    Where,
    take_settings,
)
from tomewise.terminal.screen import console, escape, print_json, print_message
from tomewise.terminal.work import show_work

_HELP = (
    "One question a line; each may follow on those before it. The arrow keys bring back earlier ones, Ctrl-C stops an "
    "answer and the chat, Ctrl-D ends it. The session is kept: `tome chat --session NAME` goes on with it, `tome "
    "sessions NAME` shows it. Options such as --system hold for a whole session."
)

if TYPE_CHECKING:
    from tomewise.tome.session import Session
    from tomewise.tome.tome import Tome
    from tomewise.tome.traces import Trace


@app.command(epilog="Example: tome chat --session letters --system hgmem")
@take_settings(*MODEL)
def chat(
    tome: TomeFile = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Go on with this session, or begin it. Default: a new one.",
            autocompletion=complete_sessions,
        ),
    ] = None,
    system: SessionSystem = None,
    document: Documents = None,
    where: Where = None,
    current: Current = False,
    stated: Stated = NOTHING,
    as_json: Json = False,
) -> None:
    """Ask one question after another: a line each, until the end of the input (Ctrl-D)."""
    from tomewise.systems.registry import parse_variant
    from tomewise.terminal import render
    from tomewise.types import Question

    variant = parse_variant(system) if system else None
    with open_tome(tome, stated) as opened:
        part = opened.within(*document or (), where=where or ())
        chosen = part.sessions[session or find_free_name(opened)]
        _greet(chosen, opened)
        is_answered = True
        for question in _read_lines(chosen):
            try:
                with show_work(f"asking {chosen.name}") as work:
                    asked = Question(text=question, current=current)
                    answer = chosen.ask(asked, system=variant, on_event=choose_listener(work))
            except (ModelUnavailable, BudgetExceeded):
                raise
            except ModelError as error:  # the session is as it was before
                print_message(f"tome: {error}")
                is_answered = False
                continue
            is_answered = True
            print_answer(answer, as_json)
            if not as_json:
                render.offer_build(answer.lagging, f" --tome {quote(opened.store.address)}", console(stderr=True))
    if not is_answered:
        raise typer.Exit(ModelError.exit_code)


def _greet(chosen: Session, tome: Tome) -> None:
    """Say how a chat works, which session goes on in it, and how to set a model if none is set."""
    from tomewise.loops.citing import only_quotes
    from tomewise.terminal import render

    record = chosen.read()
    past = f" ({record.system}, goes on after question {record.count})" if record else ""
    lines = [f"session {chosen.name}{past}: one question a line, /help for more, Ctrl-D ends"]
    if only_quotes(tome.kit.model):
        lines.append(render.note_extractive())
    for line in lines:
        console(stderr=True).print(f"[dim]{escape(line)}[/dim]")


@app.command(epilog="Example: tome sessions letters --delete")
def sessions(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show this session.", autocompletion=complete_sessions)
    ] = None,
    tome: TomeFile = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete this session.")] = False,
    as_json: Json = False,
) -> None:
    """List the sessions; show or delete one of them."""
    from tomewise.terminal import render

    if delete and name is None:
        raise UsageError("--delete needs the name of a session: `tome sessions` lists them")
    with open_tome(tome) as opened:
        if name is None:
            found = list(opened.sessions)
            if as_json:
                print_json([{"name": record.name, "system": record.system, "count": record.count} for record in found])
            else:
                console().print(render.list_sessions(found))
        elif delete:
            del opened.sessions[name]
            line = f"[bold]deleted[/bold] session {escape(name)}"
            print_json({"deleted": name}) if as_json else console().print(line)
        else:
            from tomewise.store.records import SESSIONS
            from tomewise.tome.session_memory import list_notes

            record = opened.sessions[name].read()
            if record is None:
                known = suggest(name, opened.store.note_names(SESSIONS))
                raise UnknownName(
                    f"{opened.store.address} holds no session {name!a}: {known}`tome sessions` lists them"
                )
            notes = list_notes(record, opened.kit)
            print_json(replace(record, notes=notes)) if as_json else render.print_session(record, notes, console())


def _read_lines(chosen: Session) -> Iterator[str]:
    """The lines of the standard input that are not empty. On a terminal each can be edited, after a prompt, and the
    questions of the session are the history."""
    if sys.stdin.isatty():
        _fill_history(chosen)
    while True:
        try:
            line = input("? " if sys.stdin.isatty() else "")
        except EOFError:
            return
        if line.strip() in ("/help", "/?"):
            print_message(_HELP)
        elif line.strip():
            yield line.strip()


def _fill_history(chosen: Session) -> None:
    """Let `input` edit lines, with the earlier questions of a session to go back to, where this Python can."""
    try:
        import readline
    except ImportError:  # as on Windows, whose terminal edits lines itself
        return
    readline.clear_history()
    record = chosen.read()
    for turn in record.turns if record else ():
        readline.add_history(" ".join(turn.asked.split()))


@app.command(epilog="Example: tome log 3 --again")
@take_settings(*MODEL)
def log(
    number: Annotated[int | None, typer.Argument(min=1, help="Show how this question was answered.")] = None,
    tome: TomeFile = None,
    limit: Annotated[int, typer.Option(min=1, help="List this many questions.")] = 20,
    word: Annotated[
        str, typer.Option("-q", "--query", metavar="WORD", help="List only those with this in question or answer.")
    ] = "",
    delete: Annotated[bool, typer.Option("--delete", help="Delete the trace of this question.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Ask this question again, with the same system and settings.")
    ] = False,
    stated: Stated = NOTHING,
    as_json: Json = False,
) -> None:
    """List the questions that were asked, newest first; show, delete or ask one of them again."""
    from tomewise.terminal import render

    if delete and again:
        raise UsageError("--delete and --again exclude each other: give one of them")
    if number is None and (delete or again):
        raise UsageError(f"--{'delete' if delete else 'again'} needs the number of a question: `tome log` lists them")
    with open_tome(tome, stated) as opened:
        if number is None:
            traces = opened.traces.latest(limit, matching=word)
            if as_json:
                print_json(traces)
            elif not traces:
                nothing = f"with {word!a}" if word else 'yet: tome ask "your question"'
                console().print(f"[dim]no question is kept {escape(nothing)}[/dim]")
            else:
                console().print(render.list_traces(traces))
        elif delete:
            del opened.traces[number]
            print_json({"deleted": number}) if as_json else console().print(f"[bold]deleted[/bold] trace {number}")
        elif again:
            _ask_again(opened, opened.traces[number], as_json)
        else:
            trace = opened.traces[number]
            print_json(trace) if as_json else render.print_trace(trace, console(), opened.store)


def _ask_again(tome: Tome, trace: Trace, as_json: bool) -> None:
    from tomewise.systems.registry import parse_variant

    variant = parse_variant(trace.answer.system)
    with show_work(f"asking {variant.name}") as work:
        origin = trace.answer.session
        question = replace(trace.question, text=origin.question) if origin else trace.question
        answer = tome.ask(question, system=variant, fresh=True, on_event=choose_listener(work))
    print_answer(answer, as_json)
