"""The command `tome demo`: the main job on the bundled story, as a new user would do it on the command line."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from tomewise.errors import UsageError, count_noun
from tomewise.sample import STORY, SampleQuestion, read_questions
from tomewise.terminal.commands import app, choose_listener, repeat_options
from tomewise.terminal.completion import complete_systems
from tomewise.terminal.documents import print_add_report
from tomewise.terminal.options import MODEL, NOTHING, Stated, load_settings, take_settings
from tomewise.terminal.screen import console, escape
from tomewise.terminal.state import State
from tomewise.terminal.work import show_work

if TYPE_CHECKING:
    from tomewise.tome.tome import Tome
    from tomewise.types import Cost

SYSTEM = "read_agent"  # few calls build it, and it needs no extra
_SIMPLE, _WHOLE_STORY = "f6", "i6"  # questions of the sample


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

    parse_variant(system)
    asked = {question.id: question for question in read_questions()}
    kept = tome or State.tome
    with _open_demo_tome(kept, stated) as opened:
        _add_story(opened)
        spent = _ask(opened, asked[_SIMPLE], None, trace)
        spent += _build(opened, system)
        spent += _ask(opened, asked[_WHOLE_STORY], system, trace)
    _print_close(spent, kept, repeat_options(kept, stated), is_extractive="model" not in stated)


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


def _add_story(tome: Tome) -> None:
    _print_command("add", str(STORY))
    started = time.perf_counter()
    with show_work("adding the story") as work:
        report = tome.add(STORY, on_progress=work.report)
    print_add_report(report, 1, time.perf_counter() - started, console())


def _build(tome: Tome, system: str) -> Cost:
    from tomewise.systems.registry import parse_variant
    from tomewise.terminal import render

    variant = parse_variant(system)
    _print_command("build", "--system", system, "--estimate")
    render.print_price(tome.memory.estimate(variant), console())
    _print_command("build", "--system", system)
    with show_work(f"building {system}") as work:
        report = tome.build(variant, on_progress=work.report)
    render.print_build(report, variant, None, console())
    return report.cost


def _ask(tome: Tome, asked: SampleQuestion, system: str | None, trace: bool) -> Cost:
    """Ask, with the options of the question if a system is named: it is the harder one."""
    from tomewise.terminal import render

    options = asked.options if system else ()
    named = ("--system", system) if system else ()
    _print_command("ask", asked.question, *named, *(word for option in options for word in ("--option", option)))
    with show_work("asking") as work:
        on_event = choose_listener(work, tome.store if trace else None)
        answer = tome.ask(asked.question, options=options, system=system, on_event=on_event)
    render.print_answer(answer, console())
    return answer.cost


def _print_command(*words: str) -> None:
    console().print(f"\n[bold]$ tome {escape(' '.join(quote(word) for word in words))}[/bold]")


def _print_close(spent: Cost, kept: str | None, options: str, *, is_extractive: bool) -> None:
    """What the demo cost, and what to try next."""
    out = console()
    cost = "price unknown" if spent.dollars is None else f"${spent.dollars:.4f}"
    out.print(
        f"\n[bold]In all[/bold] {count_noun(spent.calls, 'call')} · {spent.input_tokens:,} tokens in, "
        f"{spent.output_tokens:,} out · {cost}"
    )
    if is_extractive:
        out.print(
            "No model is set: the story was searched, a memory of it built and a loop run, but nothing was answered, "
            "only quoted; nothing left this machine."
        )
    out.print("[bold]Next[/bold]")
    program = _name_program()
    again = [("demo --model openai:gpt-4o-mini", "the same with a language model (`tome models` lists them)")]
    story = [
        (f'ask{options} "Who pleaded guilty?"', "another question about the story"),
        (f"serve {quote(kept or '')} --open", "ask in a browser (needs tomewise[server])"),
    ]
    own = [
        ("add YOUR-FILES", "then ask about your own documents"),
        ("systems", "other ways to answer, and what each needs"),
    ]
    offered = [*(again if is_extractive else []), *(story if kept else []), *own]
    commands = [(f"{program} {words}", purpose) for words, purpose in offered]
    width = max(len(command) for command, _ in commands)
    for command, purpose in commands:
        out.print(escape(f"  {command:<{width}}  {purpose}"))


def _name_program() -> str:
    """The program as one types it here: in a checkout it is not on the path."""
    own = Path(sys.executable).with_name("tome")
    return "tome" if shutil.which("tome") or not own.exists() else os.path.relpath(own)
