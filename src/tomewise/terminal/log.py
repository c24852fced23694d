"""The command `tome log`: how questions were answered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from tomewise.errors import UsageError
from tomewise.terminal.commands import check_picture_file, choose_listener, open_tome, print_answer, save_picture
from tomewise.terminal.model_options import UNSTATED, ModelOptions, take_model_options
from tomewise.terminal.options import Json, PictureFile, TomeFile
from tomewise.terminal.screen import console, escape, print_json, print_model
from tomewise.terminal.work import show_work

if TYPE_CHECKING:
    from tomewise.tome.tome import Tome
    from tomewise.tome.traces import Trace


@take_model_options
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
    picture: PictureFile = None,
    models: ModelOptions = UNSTATED,
    as_json: Json = False,
) -> None:
    """List the questions that were asked, newest first; show, delete or ask one of them again."""
    from tomewise.terminal import render

    if delete and again:
        raise UsageError("--delete and --again exclude each other: give one of them")
    if picture and (number is None or delete or again):
        raise UsageError("--picture draws one stored trace: give its number, without --delete and --again")
    if number is None and (delete or again):
        raise UsageError(f"--{'delete' if delete else 'again'} needs the number of a question: `tome log` lists them")
    with open_tome(tome, create=False, models=models) as book:
        if number is None:
            traces = book.traces(limit, matching=word)
            if as_json:
                print_json([trace.describe().write() for trace in traces])
            elif not traces:
                nothing = f"with {word!a}" if word else 'yet: tome ask "your question"'
                console().print(f"[dim]no question is kept {escape(nothing)}[/dim]")
            else:
                console().print(render.list_traces(traces))
        elif delete:
            book.delete_trace(number)
            print_json({"deleted": number}) if as_json else console().print(f"[bold]deleted[/bold] trace {number}")
        elif picture:
            check_picture_file(picture)
            save_picture(book.draw_trace(number), picture)
        elif again:
            _ask_again(book, book.trace(number), as_json)
        else:
            trace = book.trace(number)
            print_model(trace.describe()) if as_json else render.print_trace(trace, console(), book.store)


def _ask_again(book: Tome, trace: Trace, as_json: bool) -> None:
    from tomewise.systems.registry import parse_variant
    from tomewise.tome.reports import find_nearest

    variant = parse_variant(trace.answer.system)
    with show_work(f"asking {variant.name}") as work:
        origin = trace.answer.session
        question = replace(trace.question, text=origin.question) if origin else trace.question
        answer = book.ask(question, system=variant, fresh=True, on_event=choose_listener(work))
    print_answer(answer, find_nearest(answer, book.store), trace.question.within, as_json)
