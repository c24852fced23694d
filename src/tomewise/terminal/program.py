"""The program `tome`: runs one command, prints an error as one line, and ends at an interrupt."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any, NoReturn

import typer
from typer.main import get_command
from typer.models import CommandInfo, TyperInfo

from tomewise.credentials import hide_credentials
from tomewise.errors import OTHER_PYTHON, BudgetExceeded, MissingDependency, TomewiseError, UsageError
from tomewise.plugins import find_fault
from tomewise.terminal import (  # noqa: F401 - they add their commands to the app
    available,
    config,
    demo,
    documents,
    history,
    manual,
    moving,
    serve,
)
from tomewise.terminal.cleaning import clean_streams
from tomewise.terminal.commands import app
from tomewise.terminal.garbage import collect_rarely
from tomewise.terminal.screen import print_message
from tomewise.terminal.state import KEPT_MESSAGE, State
from tomewise.terminal.work import clear_screen

# The groups of the help, in its order; a new user begins with `add` and `ask`.
_PANELS = {
    "Ask": ("add", "ask", "chat", "search", "find", "collect", "verify", "demo"),
    "Memory": ("show", "build", "remove", "export", "import", "copy", "drop", "reembed", "clean"),
    "What was asked": ("log", "sessions", "eval"),
    "Models, systems and settings": ("models", "systems", "config", "weights", "plugins", "help"),
    "Serve": ("serve", "mcp"),
}
_PLACES = {name: (panel, place) for panel, names in _PANELS.items() for place, name in enumerate(names)}


def _arrange_help() -> None:
    """Put each command into its group, and sort the groups."""
    order = list(_PANELS)

    def place(command: CommandInfo | TyperInfo, name: object) -> tuple[int, int]:
        panel, number = _PLACES[str(name)]
        command.rich_help_panel = panel
        return order.index(panel), number

    app.registered_commands.sort(key=lambda each: place(each, each.name or getattr(each.callback, "__name__", "")))
    infos = {id(each): each.typer_instance.info for each in app.registered_groups if each.typer_instance}
    app.registered_groups.sort(key=lambda each: place(each, infos[id(each)].name))


_arrange_help()
INTERRUPTED = 130
_WrongCall: Any = typer.BadParameter.__mro__[1]  # what typer raises for a wrong call; it has no public name
_LIBRARIES = {"_ssl": "SSL", "_sqlite3": "SQLite"}  # what some builds of Python lack, by the module that needs it
_GRACE = 1.4  # seconds that an interrupted command may take to tidy up
_CLEARING = 0.2  # seconds to clear the screen of one that takes longer


def main() -> NoReturn:
    """Run the command line of this process, see `run`. An interrupt ends it within two seconds."""
    collect_rarely()
    signal.signal(signal.SIGINT, _interrupt)
    _fill_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # do not fail where a terminal cannot show a letter
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = code or 1
    except OSError as error:
        code = _report_error(error, f"standard output cannot be written: {error.strerror}", code or 1)
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(code)  # threads of a library may still be computing: do not wait for them


def _fill_streams() -> None:
    """Open the standard streams that are closed, or the next open file, a tome, would get their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            place = os.open(os.devnull, os.O_RDWR)
            if place != number:
                os.dup2(place, number)
                os.close(place)
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. An error prints one line on standard error.

    Whatever it prints, nothing in it is obeyed by a terminal (see `cleaning`).
    """
    with clean_streams():
        return _run(arguments)


@cache
def _build_commands() -> Any:
    """The commands of the app. Typer reads the signatures of all of them, which takes longer than many a command."""
    return get_command(app)


def _run(arguments: Sequence[str]) -> int:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _warn
            words = [word for word in arguments if word != "--debug"]
            code = _build_commands()(words, prog_name="tome", standalone_mode=False)
    except SystemExit:  # typer exits so where a pipe is closed
        return 1
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:  # noqa: BLE001 - also a bug of ours, printed without the keys that it may hold
        return _report_error(error, *_describe_error(error), debug="--debug" in arguments)
    if code == INTERRUPTED:
        print_message(State.interrupted)
    return code or 0


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    print_message(f"tome: {hide_credentials(str(message))}")


def _describe_error(error: Any) -> tuple[str, int]:
    """What to say of an error, and the exit code."""
    if isinstance(error, BudgetExceeded):
        return f"{error}. {KEPT_MESSAGE}", error.exit_code
    if isinstance(error, TomewiseError):
        return str(error), error.exit_code
    if isinstance(error, _WrongCall):  # typer raised it
        name = error.ctx.command_path if error.ctx else "tome"
        return f"{error.format_message()} (see `{name} --help`)", UsageError.exit_code
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        place = error.filename or "standard output, or a file,"
        return f"{place} cannot be written ({error.strerror}): make space there, or write elsewhere", 1
    if isinstance(error, ModuleNotFoundError) and (lacks := _LIBRARIES.get(error.name or "")):
        return f"this Python was built without {lacks}: {OTHER_PYTHON}", MissingDependency.exit_code
    if fault := find_fault(error):
        return str(fault), fault.exit_code
    return f"an error of Tomewise itself, {type(error).__name__}: {error}; --debug says where", 1


def _report_error(error: Exception, message: str, code: int, *, debug: bool = False) -> int:
    if debug:
        print(hide_credentials("".join(traceback.format_exception(error))), file=sys.stderr)
    print_message(f"tome: {hide_credentials(' '.join(line.strip() for line in message.splitlines()))}")
    return code


def _interrupt(*_: object) -> None:
    # Threads may not notice for a while. Ending the process under them loses nothing: a tome survives a kill.
    watchdog = threading.Timer(_GRACE, _give_up)
    watchdog.daemon = True
    watchdog.start()
    raise KeyboardInterrupt


def _give_up() -> None:
    # In a thread: the interrupted one may hold the lock of the screen.
    clearing = threading.Thread(target=clear_screen, daemon=True)
    clearing.start()
    clearing.join(_CLEARING)
    print_message(State.interrupted)
    os._exit(INTERRUPTED)
