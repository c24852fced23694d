"""The doors of the tree that is on the path, for tools that compare two trees: the command, HTTP and MCP as processes.

Nothing here imports tomewise, so a tool that uses it runs on any tree whose doors it knows.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FOLDER = Path(tempfile.gettempdir()) / "tomewise-compare"  # equal for every tree, since ids derive from paths
_FENCED = re.compile(r"<(\w+)[^>]*>([^<]{20,})</\1>")
_LABEL = re.compile(r"\b[A-Z]\d{1,3}\b")


def make_environment() -> dict[str, str]:
    """The environment of every process: settings of this user and proxies are left out."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TOMEWISE_", "OPENAI_"))}
    own = {
        "XDG_CONFIG_HOME": str(FOLDER / "config"),
        "OPENAI_API_KEY": "none",
        "NO_PROXY": "127.0.0.1",
        "COLUMNS": "120",
    }
    return kept | own


def run_tome(*words: object) -> str:
    """What the command prints to its output, whatever its exit status."""
    command = [sys.executable, "-m", "tomewise", *map(str, words)]
    return subprocess.run(
        command, cwd=FOLDER, env=make_environment(), stdout=subprocess.PIPE, text=True, check=False
    ).stdout


def read_sample() -> tuple[str, list[str]]:
    """The bundled story of this repository, and its questions."""
    sample = Path(__file__).resolve().parents[1] / "src" / "tomewise" / "sample"
    lines = (sample / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return (sample / "story.md").read_text(encoding="utf-8"), [json.loads(line)["question"] for line in lines]


@contextmanager
def serve_tomes(*words: object) -> Iterator[HttpDoor]:
    """`tome serve` with these words at a free port."""
    command = [sys.executable, "-m", "tomewise", "serve", *map(str, words), "--port", "0", "--no-token"]
    with subprocess.Popen(command, cwd=FOLDER, env=make_environment(), stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield HttpDoor(server.stdout.readline().strip())
        finally:
            server.terminate()


class HttpDoor:
    """The HTTP API below an address."""

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")

    def send(self, method: str, path: str, body: Any = None, accept: str = "application/json") -> Any:
        """The reply to a request below /api, as JSON or, where it is a stream, as text; also that of an error."""
        headers = {"content-type": "application/json", "accept": accept}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._address}/api/{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request) as reply:
                content = reply.read().decode()
        except urllib.error.HTTPError as error:
            content = error.read().decode()
        return json.loads(content) if accept == "application/json" and content else content


class McpDoor:
    """`tome mcp` with these words, as a client over standard input and output uses it."""

    def __init__(self, *words: object) -> None:
        command = [sys.executable, "-m", "tomewise", "mcp", *map(str, words)]
        pipe = subprocess.PIPE
        self._server = subprocess.Popen(command, cwd=FOLDER, env=make_environment(), stdin=pipe, stdout=pipe, text=True)
        self._number = 0

    def __enter__(self) -> McpDoor:
        client = {"name": "compare", "version": "1"}
        self._ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self._write({"method": "notifications/initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        self._server.terminate()
        self._server.wait()

    def call(self, tool: str, **arguments: Any) -> Any:
        """What a tool replies."""
        return self._ask("tools/call", {"name": tool, "arguments": arguments})

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        self._write({"id": self._number, "method": method, "params": params})
        assert self._server.stdout is not None
        for line in self._server.stdout:
            message = json.loads(line)
            if message.get("id") == self._number and "method" not in message:
                return message.get("result", message.get("error"))
        raise EOFError(f"the server of MCP ended at {method!r}")

    def _write(self, message: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._server.stdin.flush()


class PlayedModel:
    """A server of OpenAI's protocol on loopback, which fills the schema of each reply with words of the prompt.

    Equal requests have equal replies. Ask it as a model of Ollama, since those get the schema. `requests` holds a
    digest of the messages and the schema of each request.
    """

    def __init__(self) -> None:
        self.requests: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> PlayedModel:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take_requests(self) -> list[str]:
        """The digests since the last time, in order."""
        taken = sorted(self.requests)
        self.requests.clear()
        return taken

    def _reply(self, request: dict[str, Any]) -> str:
        form = request.get("response_format", {})
        self.requests.add(digest([request["messages"], form]))
        schema = form.get("json_schema", {}).get("schema", {})
        prompt = request["messages"][-1]["content"]
        return json.dumps(_Filler(schema, prompt).fill(schema))

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        reply = self._reply

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if not self.path.endswith("/chat/completions"):
                    self.send_error(404)
                    return
                content = reply(request)
                usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
                message = {"role": "assistant", "content": content}
                body = {"id": "reply", "object": "chat.completion", "created": 1, "model": "played", "usage": usage}
                if request.get("stream"):
                    choice = {"index": 0, "finish_reason": "stop", "delta": message}
                    chunk = {**body, "object": "chat.completion.chunk", "choices": [choice]}
                    self._send("text/event-stream", f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n")
                else:
                    choice = {"index": 0, "finish_reason": "stop", "message": message}
                    self._send("application/json", json.dumps({**body, "choices": [choice]}))

            def _send(self, kind: str, text: str) -> None:
                data = text.encode()
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Say nothing of requests."""

        return Handler


class _Filler:
    """Fills a schema: texts and labels are those of the prompt, in an order that depends on the prompt."""

    def __init__(self, schema: dict[str, Any], prompt: str) -> None:
        self._named = schema.get("$defs", {})
        self._texts = [text.strip() for _, text in _FENCED.findall(prompt)] or [prompt[:80]]
        self._labels = sorted(set(_LABEL.findall(prompt))) or ["E1"]
        self._next = int(digest(prompt), 16)

    def fill(self, schema: dict[str, Any], name: str = "") -> Any:
        """A value of the schema; `name` is that of its field."""
        if "$ref" in schema:
            return self.fill(self._named[schema["$ref"].rpartition("/")[2]], name)
        if "enum" in schema:
            return self._choose(schema["enum"])
        if kinds := schema.get("anyOf"):
            return self.fill(kinds[0], name)
        match schema.get("type"):
            case "object":
                return {key: self.fill(part, key) for key, part in schema.get("properties", {}).items()}
            case "array":
                items = schema.get("prefixItems") or [schema.get("items", {})] * max(2, schema.get("minItems", 0))
                return [self.fill(item, name) for item in items]
            case "boolean":
                return self._choose([True, False, False])
            case "integer" | "number":
                return self._choose([1, 2, 3])
            case "null":
                return None
        return self._write(name)

    def _write(self, name: str) -> str:
        if name in ("label", "labels", "points", "point", "evidence", "records", "rests_on", "answered"):
            return str(self._choose(self._labels))
        words = str(self._choose(self._texts)).split()
        start = self._choose(range(max(1, len(words) - 8)))
        return " ".join(words[start : start + 8])

    def _choose(self, values: Sequence[Any]) -> Any:
        self._next = (self._next * 6364136223846793005 + 1442695040888963407) % 2**64
        return values[(self._next >> 33) % len(values)]


def digest(value: object) -> str:
    """Sixteen hexadecimal digits for the JSON of a value, or for a text."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
