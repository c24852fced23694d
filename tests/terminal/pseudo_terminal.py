"""The command `tome` on a pseudo terminal, and what a person sees of it.

with on_terminal("ask", "Who?") as run:
    run.wait_for("asking")
    assert run.end() == 0
run.lines                     # what stands on the screen in the end, scrolled lines included
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

COLUMNS = 80
_CONTROL = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")


class Screen:
    """What a terminal without a lower edge shows after the signs that rich writes. Colours are left out."""

    def __init__(self) -> None:
        self._rows: list[list[str]] = [[]]
        self._row = self._column = 0
        self._rest = ""
        self.has_cursor = True

    @property
    def lines(self) -> list[str]:
        return "\n".join("".join(row).rstrip() for row in self._rows).rstrip().split("\n")

    def feed(self, text: str) -> None:
        text = self._rest + text
        position = 0
        while position < len(text):
            if text[position] == "\x1b":
                control = _CONTROL.match(text, position)
                if control is None:
                    break
                self._obey(*control.groups())
                position = control.end()
            else:
                self._write(text[position])
                position += 1
        self._rest = text[position:]

    def _obey(self, number: str, letter: str) -> None:
        if letter == "A":
            self._row = max(0, self._row - int(number or 1))
        elif letter == "K":
            assert number == "2", number
            self._rows[self._row] = []
        elif letter in "lh" and number == "?25":
            self.has_cursor = letter == "h"
        else:
            assert letter in "m", (number, letter)

    def _write(self, sign: str) -> None:
        if sign == "\r":
            self._column = 0
        elif sign == "\n":
            self._row += 1
        else:
            assert sign.isprintable() or sign == "\t", sign
            if self._column == COLUMNS:
                self._column, self._row = 0, self._row + 1
            self._fill()
            row = self._rows[self._row]
            row[self._column : self._column + 1] = [sign]
            self._column += 1
        self._fill()

    def _fill(self) -> None:
        while len(self._rows) <= self._row:
            self._rows.append([])
        row = self._rows[self._row]
        row += " " * (self._column - len(row))


class Run:
    """One call of the command."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self.raw = ""
        self._terminal = terminal
        self._screen = Screen()

    @property
    def lines(self) -> list[str]:
        return self._screen.lines

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def has_cursor(self) -> bool:
        return self._screen.has_cursor

    def wait_for(self, part: str, seconds: float = 60.0) -> None:
        """Read until this stands on the screen."""
        until = time.monotonic() + seconds
        while part not in self.text:
            assert time.monotonic() < until, f"{part!r} did not come:\n{self.text}"
            assert self._read(0.1), f"it ended without {part!r}:\n{self.text}"

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def end(self, seconds: float = 60.0) -> int:
        """Read to the end, and return the exit code."""
        until = time.monotonic() + seconds
        while self._read(0.1):
            assert time.monotonic() < until, self.text
        return self.process.wait(seconds)

    def _read(self, seconds: float) -> bool:
        """Read what comes within some seconds. False after the end."""
        if not select.select([self._terminal], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self._terminal, 65536)
        except OSError:  # Linux says so where the other side is closed
            return False
        text = piece.decode("utf-8", "replace")
        self.raw += text
        self._screen.feed(text)
        return bool(piece)


@contextmanager
def on_terminal(*words: str, **environment: str) -> Iterator[Run]:
    """Start the command with a terminal of 80 columns and 24 lines as all its streams."""
    terminal, own = pty.openpty()
    fcntl.ioctl(own, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    names = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "tomewise", *words],
        stdin=own,
        stdout=own,
        stderr=own,
        env={**names, "TERM": "xterm-256color", **environment},
    )
    os.close(own)
    try:
        yield Run(process, terminal)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
