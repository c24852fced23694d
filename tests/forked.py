"""The command `tome` in a process of its own, forked from one that has imported what it needs.

A process that begins from nothing spends more than a second on imports. Tests of what a running command does, and not
of how it starts, can have a process of their own for less.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

NEEDED_BY_SERVERS = [
    "fastapi.exception_handlers",
    "jinja2",
    "pydantic_ai.models.openai",
    "pydantic_ai.providers.openai",
    "rich.console",
    "typer.rich_utils",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.h11_impl",
    "tomewise.embedding.hash",
    "tomewise.language.chat",
    "tomewise.language.client",
    "tomewise.server.app",
    "tomewise.server.listening",
    "tomewise.server.mcp_app",
    "tomewise.tome.tome",
]
_context = get_context("forkserver")
_context.set_forkserver_preload(NEEDED_BY_SERVERS)


class Forked:
    """A running command, as `subprocess.Popen` would give it."""

    def __init__(self, words: Sequence[str], cwd: Path, env: Mapping[str, str], stdout: int, stderr: int) -> None:
        streams = [Connection(os.dup(stream)) for stream in (stdout, stderr)]  # what a new process can be given
        self._process = _context.Process(target=_run, args=(list(words), str(cwd), dict(env), streams))
        self._process.start()
        for stream in streams:
            stream.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, sign: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, sign)

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("tome", timeout or 0.0)
        return self._process.exitcode


def _run(words: Sequence[str], cwd: str, env: Mapping[str, str], streams: Sequence[Connection]) -> None:
    """Take over the folder, the environment and the streams of a command, and run it."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    for number, stream in enumerate(streams, start=1):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    sys.path.insert(0, cwd)  # as `python -m` has it
    sys.argv = ["tome", *words]
    from tomewise.terminal.program import main

    main()
