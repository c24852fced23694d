"""One page for each command of `tome`, from the Typer application itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from rich.text import Text
from tools.docs.markdown import escape_html, write_table

from tomewise.terminal import program  # noqa: F401 - it adds all commands to the application
from tomewise.terminal.commands import app

_LEFT_OUT = ("install_completion", "show_completion", "help")


def write_command_pages() -> dict[str, str]:
    """The pages by their paths below `reference/`."""
    root = typer.main.get_command(app)
    commands: dict[str, Any] = root.commands  # type: ignore[attr-defined]
    pages = {f"commands/{name}.md": _write_page(f"tome {name}", command) for name, command in commands.items()}
    rows = [(f"[`tome {name}`]({name}.md)", _read_help(command.help)) for name, command in commands.items()]
    lines = ["# The command `tome`", "", _read_help(root.help), "", "`python -m tomewise` is the same program.", ""]
    lines += write_table(["command", "what"], rows)
    lines += ["## Options before a command", "", *write_table(["option", "what"], _list_options(root))]
    return {**pages, "commands/index.md": "\n".join(lines)}


def _write_page(name: str, command: Any, depth: int = 1) -> str:
    lines = [f"{'#' * depth} `{name}`", "", _read_help(command.help), ""]
    lines += write_table(["option", "what"], _list_options(command))
    if command.epilog:
        _, _, examples = Text.from_markup(command.epilog).plain.partition(": ")
        lines += ["```console", *(f"$ {line.strip()}" for line in examples.splitlines()), "```", ""]
    for child, subcommand in sorted(getattr(command, "commands", {}).items()):
        lines.append(_write_page(f"{name} {child}", subcommand, depth + 1))
    return "\n".join(lines)


def _list_options(command: Any) -> Iterator[tuple[str, str]]:
    for parameter in command.params:
        if getattr(parameter, "hidden", False) or parameter.name in _LEFT_OUT:
            continue
        if parameter.param_type_name == "argument":
            names = f"`{parameter.metavar or parameter.name.upper()}`"
        else:
            value = "" if parameter.is_flag else f" {_name_value(parameter)}"
            names = ", ".join(f"`{option}{value}`" for option in parameter.opts)
        yield names, _read_help(parameter.help)


def _name_value(parameter: Any) -> str:
    return str(parameter.metavar or parameter.type_descriptor.annotation.__name__.upper())


def _read_help(text: str | None) -> str:
    return escape_html(Text.from_markup(" ".join((text or "").split())).plain)
