"""The command `tome demo`: the main job on the bundled story, as a new user would do it on the command line."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from tomewise.errors import MissingDependency, UsageError, count_noun
from tomewise.sample import STORY, SampleQuestion, read_questions
from tomewise.terminal.commands import app, choose_listener, repeat_options
from tomewise.terminal.completion import complete_systems
from tomewise.terminal.options import MODEL, NOTHING, Stated, load_settings, take_settings
from tomewise.terminal.screen import console, escape, make_table
from tomewise.terminal.state import State
from tomewise.terminal.work import show_work

if TYPE_CHECKING:
    from tomewise.tome.tome import Tome
    from tomewise.types import Cost

SYSTEM = "read_agent"  # few calls build it, and it needs no extra
_SIMPLE, _WHOLE_STORY = "f6", "i8"  # questions of the sample


@app.command(epilog="Example: tome demo --model openai:gpt-4o-mini")
@take_settings(*MODEL)
def demo(
    tome: Annotated[
        str | None, typer.Option("--tome", "-m", metavar="FILE", help="Keep the memory in this file.")
    ] = None,
    system: Annotated[
        str,
        typer.Option("--system", "-s", metavar="NAME", help="The system to build.", autocompletion=complete_systems),
    ] = SYSTEM,
    trace: Annotated[bool, typer.Option("--trace", help="Show what the systems retrieved and asked.")] = False,
    stated: Stated = NOTHING,
) -> None:
    """Add the bundled story, build a system, ask two questions. It costs nothing unless you name a model."""
    from tomewise.systems.registry import parse_variant

    variant = parse_variant(system)
    _offer_weights()
    asked = {question.id: question for question in read_questions()}
    kept = tome or State.tome
    steps: list[tuple[str, str]] = []  # commands, and what each did
    with _open_demo_tome(kept, stated) as opened:
        with show_work("adding the story") as work:
            report = opened.add(STORY, on_progress=work.report)
        passages = count_noun(report.passages, "new passage")
        steps.append((f"add {STORY.name}", f"{passages}, to be found by words and by meaning"))
        spent = _ask(opened, asked[_SIMPLE], None, trace, steps)
        with show_work(f"building {system}") as work:
            built = opened.build(variant, on_progress=work.report)
        made = ", ".join(f"{layer.added:,} {layer.layer}" for layer in built.layers if layer.added)
        done = f"{made or 'nothing new'}, in {count_noun(built.cost.calls, 'call')}"
        steps.append((f"build --system {quote(system)}", done))
        spent = spent + built.cost + _ask(opened, asked[_WHOLE_STORY], system, trace, steps)
    _print_close(steps, spent, kept, repeat_options(kept, stated), is_extractive="model" not in stated)


def _offer_weights() -> None:
    """Fetch the weights of the embedder if they are missing and the user agrees. Raises MissingDependency."""
    from tomewise.embedding.weights import fetch_weights, find_weights

    try:
        find_weights()
    except MissingDependency:
        if not sys.stdin.isatty():
            raise
        typer.confirm("The weights of the embedder (84 MB) are not here. Fetch them once?", default=True, abort=True)
        with show_work("fetching the weights"):
            fetch_weights()


@contextmanager
def _open_demo_tome(kept: str | None, stated: Stated) -> Iterator[Tome]:
    """A tome for the story alone, in a folder that is deleted at the end unless a file is named.

    The tome of an earlier demo, perhaps interrupted, is used again. Raises UsageError for a tome with other documents.
    """
    from tomewise.tome.tome import Tome

    settings = replace(load_settings({"model": ["extractive"], **stated}), embedder=None, system="hybrid")
    with TemporaryDirectory() as folder:
        path = kept or str(Path(folder) / "demo.tome")
        with Tome.open(path, settings=settings) as tome:
            if any(record.source != str(STORY) for record in tome.documents()):
                raise UsageError(f"{path} holds other documents: name a new file for the demo, or leave --tome out")
            yield tome


def _ask(tome: Tome, asked: SampleQuestion, system: str | None, trace: bool, steps: list[tuple[str, str]]) -> Cost:
    """Ask, print the question and the answer, and add the command to `steps`."""
    from tomewise.events import shorten
    from tomewise.terminal import render

    out = console()
    out.print(f"[bold]{escape(asked.question)}[/bold]")
    with show_work("asking") as work:
        on_event = choose_listener(work, tome.store if trace else None)
        answer = tome.ask(asked.question, system=system, on_event=on_event)
    render.print_answer(answer, out)
    out.print(f"[dim]The story's own answer: {escape(asked.answers[0])}[/dim]\n")
    named = f"--system {quote(system)} " if system else ""
    done = f"{answer.system} read {answer.coverage} in {count_noun(answer.cost.calls, 'call')}"
    steps.append((f"ask {named}{quote(shorten(asked.question, 30))}", done))
    return answer.cost


def _print_close(
    steps: list[tuple[str, str]], spent: Cost, kept: str | None, options: str, *, is_extractive: bool
) -> None:
    """How the answers were found, what that cost, and what to try next."""
    program = _name_program()
    again = [("demo --model openai:gpt-4o-mini", "the same with a language model (`tome models` lists them)")]
    story = [
        (f'ask{options} "Who pleaded guilty?"', "another question about the story"),
        (f"serve {quote(kept or '')} --open", "ask in a browser (needs tomewise[server])"),
    ]
    own = [("add YOUR-FILES", "then ask about your own documents"), ("help", "what else there is, and how")]
    _print_commands("How it was found", "tome", steps)
    out = console()
    cost = "price unknown" if spent.dollars is None else f"${spent.dollars:.4f}"
    out.print(
        f"[bold]In all[/bold] {count_noun(spent.calls, 'call')} · {spent.input_tokens:,} tokens in, "
        f"{spent.output_tokens:,} out · {cost}"
    )
    if is_extractive:
        out.print("No model is set: nothing was answered, only quoted, and nothing left this machine.")
    _print_commands("\nNext", program, [*(again if is_extractive else []), *(story if kept else []), *own])


def _print_commands(title: str, program: str, purposes: list[tuple[str, str]]) -> None:
    console().print(f"[bold]{title}[/bold]")
    table = make_table()
    for words, purpose in purposes:
        table.add_row(escape(f"  {program} {words}"), escape(purpose))
    console().print(table)


def _name_program() -> str:
    """The program as one types it here: in a checkout it is not on the path, nor after `uvx`, which keeps it apart."""
    own = Path(sys.executable).with_name("tome")
    if "UV" in os.environ and "archive-v0" in own.parts:
        return "uvx --from tomewise tome"
    return "tome" if shutil.which("tome") or not own.exists() else os.path.relpath(own)
