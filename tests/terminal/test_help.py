"""Every command and option has help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from tomewise.terminal import commands, program

COMMANDS = typer.main.get_command(commands.app).commands


def list_commands(command: Any) -> Iterator[Any]:
    """A command, and those of its group."""
    yield command
    for child in getattr(command, "commands", {}).values():
        yield from list_commands(child)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_and_option_has_help(name: str) -> None:
    for command in list_commands(COMMANDS[name]):
        assert command.help.strip().endswith((".", ")"))
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"tome {name}: {parameter.name} has no help"
    assert program.run([name, "--help"]) == 0
