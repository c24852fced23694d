"""A server in a process of its own, as `tome serve` starts it, and a client for it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
from tests.forked import Forked
from tests.patience import SOON

TOKEN = "a-token-for-the-tests-0123456789"


@dataclass
class Served:
    """A running server. `http` sends its token."""

    process: subprocess.Popen[bytes] | Forked
    url: str
    http: httpx.Client

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def post(self, path: str, body: Any) -> httpx.Response:
        return self.http.post(path, json=body)

    def wait_for_job(self, id: str, *states: str, seconds: float = SOON) -> dict[str, Any]:
        """The job, once it is in one of the states, or has ended."""
        wanted = states or ("done", "failed", "cancelled", "interrupted")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            job = self.http.get(f"/api/jobs/{id}").json()
            if job["state"] in wanted:
                return job
            time.sleep(0.05)
        raise AssertionError(f"the job is still {job}")

    def send_raw(self, data: bytes, seconds: float = SOON) -> bytes:
        """What the server replies to these bytes on a connection of their own."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            connection.sendall(data)
            received = b""
            while piece := connection.recv(65536):
                received += piece
        return received

    def end(self, sign: int = signal.SIGTERM) -> None:
        """Send a signal, and wait for the end of the process."""
        self.process.send_signal(sign)
        self.process.wait(SOON)


@contextmanager
def serve(folder: Path, *words: str, token: str | None = TOKEN, **environment: str) -> Iterator[Served]:
    """Start `tome serve` in a folder and stop it afterwards."""
    env = {**os.environ, "XDG_CONFIG_HOME": str(folder / "config"), "NO_PROXY": "127.0.0.1"}
    env |= {"TOMEWISE_EMBEDDER": "hash", **({"TOMEWISE_TOKEN": token} if token else {}), **environment}
    reading, writing = os.pipe()
    with (folder / "server.log").open("w") as log:
        process = _start(["serve", "--port", "0", *words], folder, env, writing, log.fileno())
    os.close(writing)
    output = os.fdopen(reading)
    try:
        address = output.readline().strip()
        assert address, (folder / "server.log").read_text()
        url = address.split("/?")[0].rstrip("/")
        headers = {"authorization": f"Bearer {token}"} if token else {}
        with httpx.Client(base_url=url, headers=headers, timeout=SOON, trust_env=False) as client:
            yield Served(process, url, client)
    finally:
        process.kill()
        process.wait()
        output.close()


def _start(
    words: list[str], folder: Path, env: dict[str, str], stdout: int, stderr: int
) -> subprocess.Popen[bytes] | Forked:
    if env.get("PYTHONPATH") != os.environ.get("PYTHONPATH"):  # packages that the forking process did not find
        command = [sys.executable, "-m", "tomewise", *words]
        return subprocess.Popen(command, cwd=folder, env=env, stdout=stdout, stderr=stderr)
    return Forked(words, folder, env, stdout, stderr)
