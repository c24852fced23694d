"""The command `tome` in a process of its own, forked from one that has imported what it needs.

A process that begins from nothing spends more than a second on imports. Tests of what a running command does, and not
of how it starts, can have a process of their own for less.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from select import select
from threading import Lock
from typing import IO, Any

from tests.texts import REPOSITORY

REQUEST_BYTES = 1_000_000
STREAMS = 3  # standard input, output and error
NEEDED_BY_SERVERS = (
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
)

_lock = Lock()
_parent: tuple[subprocess.Popen[bytes], socket.socket] | None = None


class Forked:
    """A running command, as `subprocess.Popen` would give it."""

    def __init__(self, words: Sequence[str], cwd: Path, env: Mapping[str, str], stdout: int, stderr: int) -> None:
        reading, writing = os.pipe()
        request = json.dumps({"words": list(words), "cwd": str(cwd), "env": dict(env)}).encode()
        with open(os.devnull, "rb") as nothing, _lock:
            socket.send_fds(_reach_parent(), [request], [nothing.fileno(), stdout, stderr, writing])
        os.close(writing)
        self._reports: IO[bytes] = os.fdopen(reading, "rb")
        self.pid = int(self._reports.readline())
        self.returncode: int | None = None

    def send_signal(self, sign: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, sign)

    def kill(self) -> None:
        if self.returncode is None:
            self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select([self._reports], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("tome", timeout or 0.0)
            self.returncode = int(self._reports.readline())
            self._reports.close()
        return self.returncode


def _reach_parent() -> socket.socket:
    """The connection to the process that forks, which starts with the first command."""
    global _parent
    if _parent is None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "tests.forked", str(theirs.fileno())]
            process = subprocess.Popen(command, cwd=REPOSITORY, pass_fds=[theirs.fileno()])
        _parent = process, ours
    return _parent[1]


def end_parent() -> None:
    """End the process that forks, once no test needs it any more."""
    global _parent
    if _parent is not None:
        process, connection = _parent
        _parent = None
        connection.close()
        process.wait()


def _import_what_servers_need() -> None:
    for name in NEEDED_BY_SERVERS:
        import_module(name)
    gc.freeze()  # so that a collection in a forked process leaves the shared pages alone


def _fork_for_requests(connection: socket.socket) -> dict[str, Any]:
    """Returns in a forked process alone, with the command that it is for."""
    while True:
        request, descriptors, _, _ = socket.recv_fds(connection, REQUEST_BYTES, STREAMS + 1)
        if not request:  # the tests have ended
            with contextlib.suppress(ChildProcessError):
                while True:
                    os.wait()
            os._exit(0)
        if os.fork() == 0:
            connection.close()
            return _fork_once_more(json.loads(request), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass


def _fork_once_more(request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
    """Returns in the process of the command. The one between it and the first reports its number and its end."""
    *streams, reports = descriptors
    pid = os.fork()
    if pid:
        for descriptor in streams:
            os.close(descriptor)
        os.write(reports, f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(BrokenPipeError):
            os.write(reports, f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.close(reports)
    return request


def _become(request: dict[str, Any]) -> None:
    """Take over the folder, the environment, the streams and the words of a command."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    sys.path[0] = request["cwd"]  # as `python -m` has it
    sys.argv = ["tome", *request["words"]]


if __name__ == "__main__":
    _import_what_servers_need()
    _become(_fork_for_requests(socket.socket(fileno=int(sys.argv[1]))))
    from tomewise.terminal.program import main

    main()
