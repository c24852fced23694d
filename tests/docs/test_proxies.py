"""The blocks for nginx and Caddy on the page about serving, run before a server where these are installed."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx2 as httpx
import pytest
from tests.language.openai_server import OpenAIServer, reply_with
from tests.patience import wait_until
from tests.server.served import TOKEN, Served, serve
from tests.texts import REPOSITORY

from tomewise import Document, Tome

PAGE = (REPOSITORY / "docs" / "how-to" / "serve.md").read_text(encoding="utf-8")
NAME = "books.example.org"
PATIENCE = 60  # seconds
LARGE = 3_000_000  # bytes; nginx refuses more than a megabyte by default


def read_block(language: str) -> str:
    (block,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return block


def write_nginx(folder: Path, port: int, behind: int) -> list[str]:
    """The block, on a loopback port and without certificates, and the command that runs it."""
    block = re.sub(r"^ *ssl_.*\n", "", read_block("nginx"), flags=re.MULTILINE)
    block = block.replace("listen 443 ssl", f"listen 127.0.0.1:{port}").replace("127.0.0.1:8765", f"127.0.0.1:{behind}")
    own = "".join(
        f"{kind}_temp_path {folder / kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off;\nmaster_process off;\npid {folder / 'nginx.pid'};\nerror_log {folder / 'error.log'};\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{own}{block}}}\n"
    )
    return ["nginx", "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(config)]


def write_caddy(folder: Path, port: int, behind: int) -> list[str]:
    """The block, on a loopback port and without certificates, and the command that runs it."""
    block = read_block("caddy").replace("127.0.0.1:8765", f"127.0.0.1:{behind}")
    block = block.replace(f"{NAME} {{", f"http://{NAME}:{port} {{\n    bind 127.0.0.1", 1)
    config = folder / "Caddyfile"
    config.write_text(f"{{\n    admin off\n    storage file_system {folder / 'storage'}\n}}\n{block}")
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(config)]


WRITERS: dict[str, Callable[[Path, int, int], list[str]]] = {"nginx": write_nginx, "caddy": write_caddy}


@contextmanager
def stand_before(served: Served, proxy: str, folder: Path) -> Iterator[httpx.Client]:
    """A client of the proxy, which asks for the name that the page has."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = WRITERS[proxy](folder, port, served.port)
    with (folder / "proxy.log").open("w") as log:
        process = subprocess.Popen([str(find(proxy)), *command[1:]], stdout=log, stderr=log)
    headers = {"host": NAME, "authorization": f"Bearer {TOKEN}"}
    try:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=PATIENCE, trust_env=False
        ) as client:
            wait_until(lambda: process.poll() is not None or answers(client))
            assert process.poll() is None, (folder / "proxy.log").read_text()
            yield client
    finally:
        process.terminate()
        process.wait()


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/api/health").status_code == 200
    except httpx.TransportError:
        return False


def find(proxy: str) -> str | None:
    return shutil.which(proxy) or shutil.which(proxy, path="/usr/sbin:/usr/local/sbin")


@pytest.mark.parametrize("proxy", sorted(WRITERS))
def test_a_proxy_passes_on_what_a_client_needs(proxy: str, here: Path) -> None:
    if find(proxy) is None:
        pytest.skip(f"{proxy} is not installed")
    with Tome.open(here / "novel.tome", embedder="hash") as tome:
        tome.add(Document(id="log", text="The keeper, Ada Marsh, put out the light at nine."))
    seen = threading.Event()
    reply = reply_with(json.dumps({"answer": "Ada Marsh", "quotes": []}))
    waiting = replace(reply, delay=2 * PATIENCE, until=seen)  # no answer before an event of the stream was seen
    with ExitStack() as stack:
        model = stack.enter_context(OpenAIServer(lambda _: waiting))
        words = ("novel.tome", "--allow-host", NAME, "--model", "openai:test", "--base-url", model.url)
        served = stack.enter_context(serve(here, *words, OPENAI_API_KEY="a-key-for-this-test"))
        client = stack.enter_context(stand_before(served, proxy, here))
        asked, streamed = {"question": "Who put out the light?"}, {"accept": "text/event-stream"}
        with client.stream("POST", "/api/tomes/novel/ask", json=asked, headers=streamed) as stream:
            lines = stream.iter_lines()
            assert "event: retrieved" in lines
            seen.set()
            assert "Ada Marsh" in "".join(lines)

        large = {"files": ("large.txt", b"Ada kept the light. " * (LARGE // 20), "text/plain")}
        job = client.post("/api/tomes/novel/documents", files=large)
        assert job.status_code == 202, job.text
        served.wait_for_job(job.json()["id"], seconds=120)

        assert client.get("/api/tomes", headers={"authorization": "Bearer wrong"}).status_code == 401
        page = client.get("/", params={"token": TOKEN})
        assert "set-cookie" in page.headers
        assert served.http.get("/api/tomes", headers={"host": "other.example.org"}).status_code == 421
