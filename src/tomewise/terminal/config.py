"""The command `tome config`."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tomewise.credentials import hide_credentials
from tomewise.errors import UsageError
from tomewise.plugins import list_names
from tomewise.setting_files import SettingOrigin, find_origins, parse_setting, put_setting, remove_setting
from tomewise.settings import SETTINGS, Settings, find_file, load
from tomewise.terminal.commands import app
from tomewise.terminal.completion import complete_settings, complete_values
from tomewise.terminal.options import Json, TomeFile
from tomewise.terminal.screen import console, escape, make_table, print_json
from tomewise.terminal.state import State
from tomewise.terminal.work import show_work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tomewise.language.trial import Trial

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A setting, such as model or system; models.ROLE for the model of one role.",
        autocompletion=complete_settings,
    ),
]
Here = Annotated[
    bool, typer.Option("--here", help="Change the tomewise.toml of the current folder instead of your own.")
]
config = typer.Typer(name="config", invoke_without_command=True)
app.add_typer(config)


@config.callback(epilog="Example: tome config set model openai:gpt-4o-mini")
def list_settings(context: typer.Context, tome: TomeFile = None, as_json: Json = False) -> None:
    """List every setting with its value and where that comes from; `set` and `unset` change one."""
    if context.invoked_subcommand is not None:
        return
    rows, refused = find_origins(tome or State.tome)
    if as_json:
        print_json({"settings": rows, "refused": refused})
        return
    _print_rows(rows)
    for reason in refused:
        console().print(f"[yellow]not used:[/yellow] {escape(reason)}")


@config.command(name="set", epilog="Example: tome config set models.answer openai:gpt-4o")
def set_setting(
    name: Name,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Its value.", autocompletion=complete_values)],
    here: Here = False,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="With model: the address of its server, which is set too.")
    ] = None,
    test: Annotated[
        bool, typer.Option("--test/--no-test", help="Ask a model that is set one small question. Default: --test.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Give a setting a value, in your own settings file or in that of the current folder.

    A model is asked one small question, which says what it can do.
    """
    parsed = parse_setting(name, value)
    if name == "prompts":
        parsed = str(Path(parsed).expanduser().resolve())  # the user's file counts in every folder
    check_meaning(name, parsed)
    if base_url is not None:
        if name != "model":
            raise UsageError(f"--base-url is the address of a model: `tome config set model NAME`, not {name}")
        check_meaning("base_url", base_url)
        put_setting("base_url", base_url, here=here)
    put_setting(name, parsed, here=here)
    trial = try_model(parsed) if test and name == "model" else None
    _report(name, parsed, here, as_json, trial)


@config.command(name="unset", epilog="Example: tome config unset model")
def unset_setting(name: Name, here: Here = False, as_json: Json = False) -> None:
    """Delete a setting from your own settings file, or from that of the current folder."""
    remove_setting(name, here=here)
    _report(name, None, here, as_json)


def _print_rows(rows: Sequence[SettingOrigin]) -> None:
    table = make_table("setting", "value", "from")
    for row in rows:
        origin = escape(row.origin) if row.origin != "default" else "[dim]default[/dim]"
        unset = f"[dim]{SETTINGS[row.name].unset}[/dim]" if row.value is None else ""
        value = unset or escape(_write_value(row.value))
        table.add_row(f"[bold]{row.name}[/bold]", value, origin)
    console().print(table)


def _write_value(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{role}={model}" for role, model in value.items())
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str) else f"{value:,g}" if isinstance(value, float) else f"{value:,}"


def try_model(model: str, base_url: str | None = None) -> Trial | None:
    """What came of a test call; None for a model that is not asked over a network."""
    from tomewise.language import trial

    if _is_without_provider(model):
        return None
    kept = load()
    with show_work(f"asking {model}"):
        asking = trial.try_model(
            model, base_url=base_url or kept.base_url, timeout=kept.timeout, window=kept.window, server=kept.server
        )
        found = asyncio.run(asking)
    return replace(found, problem=hide_credentials(found.problem))


def print_trial(trial: Trial) -> None:
    """Say what a test call found out."""
    out = console()
    if trial.problem:
        out.print(f"[yellow]the test call failed:[/yellow] {escape(trial.problem)}")
        return
    streams = "yes" if trial.streams else "no, an answer comes whole"
    able = (
        f"structured replies: {trial.structured} · streaming: {streams} · {trial.window:,} tokens ({trial.window_from})"
    )
    out.print(f"[green]it answers[/green], after {trial.seconds:.1f} s · {able}")
    if trial.learnt:
        out.print(f"[dim]learnt of its server:[/dim] {escape(trial.learnt)}")
    if trial.structured == "no":
        out.print("[yellow]its reply did not fit the form that was asked for: take a more capable model[/yellow]")


def _report(name: str, value: Any, here: bool, as_json: bool, trial: Trial | None = None) -> None:
    """Say what was changed, and what has an effect that the user may not expect."""
    path = find_file(here=here)
    value = hide_credentials(value) if isinstance(value, str) else value
    if as_json:
        print_json({"setting": name, "value": value, "file": str(path), **({"test": trial} if trial else {})})
        return
    verb, change = ("unset", name) if value is None else ("set", f"{name} = {_write_value(value)}")
    console().print(f"[bold]{verb}[/bold] {escape(change)} [dim]in {escape(str(path))}[/dim]")
    for row in find_origins()[0]:
        if row.name == name and row.origin not in (str(path), "default"):
            line = f"{row.origin} comes first and says {_write_value(row.value)}"
            console().print(f"[yellow]{escape(line)}[/yellow]")
    if trial:
        print_trial(trial)


def check_meaning(name: str, value: Any) -> None:
    """Raise UsageError, which names what is nearest, for a value that no command could use. Nothing is asked."""
    from tomewise.embedding.choose_embedder import choose_embedder
    from tomewise.tome.arguments import check_settings

    table, dot, role = name.partition(".")
    stated: dict[str, Any] = {table: {role: value} if dot else value}
    settings = Settings(**stated)
    check_settings(settings)
    for model in (settings.model, *settings.models.values()):
        if not _is_without_provider(model):
            from tomewise.language.connect_model import find_provider_class

            with suppress(ImportError):  # a package that is missing now may be installed later
                find_provider_class(model.partition(":")[0].lower())
    if settings.embedder:
        choose_embedder(settings.embedder)


def _is_without_provider(model: str) -> bool:
    """Whether a model is ours, or that of a plugin."""
    from tomewise.language.choose_model import EXTRACTIVE

    return model.partition(":")[0] in (EXTRACTIVE, *list_names("models"))
