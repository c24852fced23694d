"""A server in a process of its own, as `tome serve` starts it, a client for it, and the tome that it serves."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2 as httpx
from tests.forked import Forked
from tests.patience import SOON, wait_until

from tomewise.tome.tome import Tome
from tomewise.types import Document

if TYPE_CHECKING:
    from starlette.testclient import TestClient
    from tests.language.openai_server import OpenAIServer

TOKEN = "a-token-for-the-tests-0123456789"
ENDED = ("done", "failed", "cancelled", "interrupted")
TEXTS = {
    "light": "Ada Marsh put out the light at nine. The keeper had gone to the harbour.",
    "letter": "The clerk forged the letter in May. The doctor was away and knew nothing of it.",
}
NOVEL = "/api/tomes/novel"
ASK, UPLOAD = f"{NOVEL}/ask", f"{NOVEL}/documents"
QUESTION = "Who put out the light?"
STREAM = {"accept": "text/event-stream"}
OWN_SITE = "http://127.0.0.1:8765"


def make_tome(path: Path) -> None:
    with Tome.open(path, embedder="hash") as tome:
        tome.add(*(Document(id=id, text=text) for id, text in TEXTS.items()))


def read_code(reply: httpx.Response) -> tuple[int, str]:
    """The status and the code of a refusal."""
    return reply.status_code, reply.json()["error"]["code"]


def read_events(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The events of a stream, each with its name."""
    return [(name, json.loads(data)) for name, data in re.findall(r"event: (.*)\ndata: (.*)\n", text)]


@dataclass
class Served:
    """A running server. `http` sends its token."""

    process: Forked
    url: str
    http: httpx.Client

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def post(self, path: str, body: Any) -> httpx.Response:
        return self.http.post(path, json=body)

    def stream(self, body: Any, path: str = ASK) -> list[tuple[str, dict[str, Any]]]:
        """The events of a streamed answer."""
        return read_events(self.http.post(path, json=body, headers=STREAM).text)

    def wait_for_job(self, id: str, *states: str, seconds: float = SOON) -> dict[str, Any]:
        """The job, once it is in one of the states, or has ended."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            job = self.http.get(f"/api/jobs/{id}").json()
            if job["state"] in (states or ENDED):
                return job
            time.sleep(0.05)
        raise AssertionError(f"the job is still {job}")

    def add(self, path: str = UPLOAD, **body: Any) -> dict[str, Any]:
        """The job that added a text, or several, once it has ended."""
        return self.wait_for_job(self.post(path, body).json()["id"])

    def send_raw(self, data: bytes, seconds: float = SOON) -> bytes:
        """What the server replies to these bytes on a connection of their own."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            connection.sendall(data)
            received = b""
            while piece := connection.recv(65536):
                received += piece
        return received

    def send_and_leave(self, path: str, body: Any, event: threading.Event, **headers: str) -> None:
        """Send a request on a connection of its own, and hang up after this event."""
        sent = json.dumps(body).encode()
        given = {"host": f"127.0.0.1:{self.port}", "authorization": f"Bearer {TOKEN}", "content-length": len(sent)}
        given |= {"content-type": "application/json", **headers}
        lines = [f"{name}: {value}" for name, value in given.items()]
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall("\r\n".join([f"POST {path} HTTP/1.1", *lines, "", ""]).encode() + sent)
            assert event.wait(SOON)

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
        process = Forked(["serve", "--port", "0", *words], folder, env, writing, log.fileno())
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


@contextmanager
def serve_novel(
    folder: Path,
    *words: str,
    model: OpenAIServer | None = None,
    make: Callable[[Path], None] = make_tome,
    **environment: str,
) -> Iterator[Served]:
    """Serve `novel.tome`, which is made first where it is not there, with a model at this server."""
    path = folder / "novel.tome"
    if not path.exists():
        make(path)
    if model is not None:
        words = ("--model", "openai:test", "--base-url", model.url, *words)
        environment = {"OPENAI_API_KEY": "k", **environment}
    with serve(folder, "novel.tome", *words, **environment) as served:
        yield served


def make_client(root: Path | None = None, files: Sequence[Path] = (), **settings: Any) -> TestClient:
    """A client in the same process as a server of this library; `options` are those of the server."""
    from starlette.testclient import TestClient

    from tomewise.server.app import make_app
    from tomewise.server.library import Library
    from tomewise.server.serve_options import ServerOptions
    from tomewise.settings import Settings

    options = settings.pop("options", ServerOptions())
    library = Library(Settings(**settings), files, root, read_only=options.read_only)
    return TestClient(make_app(library, options), base_url=OWN_SITE)


def finish_job(client: TestClient, path: str, body: Any) -> Any:
    """The job that a request to such a client began, once it has ended."""
    url = f"/api/jobs/{client.post(path, json=body).json()['id']}"
    wait_until(lambda: client.get(url).json()["state"] in ENDED)
    return client.get(url).json()
