"""Check that a change keeps the keys and the values of what the command, HTTP and MCP reply.

PYTHONPATH=OLD/src python tools/compare_replies.py write old.json
PYTHONPATH=src     python tools/compare_replies.py write new.json
python tools/compare_replies.py compare old.json new.json

Written are the replies to ten questions about the sample in several systems through each of the three doors, and to
the other commands, endpoints and tools that reply with JSON. New keys are listed; a key that is gone, and a value that
differs, make the comparison fail. Times are left out.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from tomewise import Tome, sample

FOLDER = Path(tempfile.gettempdir()) / "tomewise-replies"  # equal for every source tree, since ids derive from paths
SYSTEMS = ("naive", "hybrid", "comorag", "hipporag2", "hgmem")
QUESTIONS = [item.question for item in sample.read_questions()[:9]] + ["What did Napoleon eat at Waterloo?"]
ENTITY = "Slack Water Book"
_TIMES = re.compile(r"(.*_)?seconds|depth|asked|created|started|ended|digest|bytes|cache_bytes")


def write() -> dict[str, Any]:
    """Each reply by the name of what was asked."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    os.environ |= {"XDG_CONFIG_HOME": str(FOLDER / "config"), "TOMEWISE_EMBEDDER": "hash"}
    os.chdir(FOLDER)
    (FOLDER / "story.md").write_bytes(sample.STORY.read_bytes())
    (FOLDER / "letter.txt").write_text("The clerk forged the letter in May. The doctor was away.\n")
    return {name: reply for door in (command_replies, http_replies, mcp_replies) for name, reply in door()}


def command_replies() -> Iterator[tuple[str, Any]]:
    """What `--json` prints."""

    def run(*words: str) -> tuple[str, Any]:
        from tomewise.terminal import program

        with redirect_stdout(io.StringIO()) as out:
            program.run([*words, "--json"])
        lines = [json.loads(line) for line in out.getvalue().splitlines()]
        return f"command {' '.join(words)}", lines[0] if len(lines) == 1 else lines

    yield run("add", "story.md", "letter.txt")
    for system in SYSTEMS[2:]:
        yield run("build", "--system", system, "--estimate")
        yield run("build", "--system", system)
    yield run("show")
    yield run("show", "letter.txt")
    yield run("show", "--entity", ENTITY)
    for question in QUESTIONS:
        for system in SYSTEMS:
            yield run("ask", question, "--system", system, "--trace")
        yield run("search", question)
    yield run(
        "ask", "Who forged the letter?", "--option", "the clerk", "--option", "the doctor", "--document", "letter"
    )
    yield run("ask", QUESTIONS[0], "--session", "talk")
    yield run("ask", "Who wrote it?", "--session", "talk")
    yield run("sessions")
    yield run("sessions", "talk")
    yield run("log", "--limit", "3")
    yield run("log", "2")
    shutil.copy("memory.tome", "other.tome")
    yield run("remove", "letter.txt", "--yes", "--tome", "other.tome")


def http_replies() -> Iterator[tuple[str, Any]]:
    """What the server replies below /api."""
    from starlette.testclient import TestClient

    from tomewise.server.app import make_app
    from tomewise.server.library import Library
    from tomewise.server.serve_options import ServerOptions
    from tomewise.settings import Settings

    app = make_app(Library(Settings(), (FOLDER / "memory.tome",), FOLDER), ServerOptions())
    with TestClient(app, base_url="http://127.0.0.1:8765") as client:

        def send(method: str, path: str, **more: Any) -> tuple[str, Any]:
            words = json.dumps(more.get("json") or more.get("params") or "")
            reply = client.request(method, f"/api/{path}", **more)
            return f"http {method} {path} {words}", reply.json()

        def finish(job: dict[str, Any]) -> tuple[str, Any]:
            path = f"jobs/{job['id']}"
            while (found := client.get(f"/api/{path}").json())["state"] in ("queued", "waiting", "running"):
                time.sleep(0.1)
            return f"http job {job['kind']}", {**found, "id": ""}

        for question in QUESTIONS:
            for system in SYSTEMS:
                yield send("POST", "tomes/memory/ask", json={"question": question, "system": system})
            yield send("POST", "tomes/memory/search", json={"query": question})
        body = {"question": QUESTIONS[0], "system": "hybrid"}
        stream = client.post("/api/tomes/memory/ask", json=body, headers={"accept": "text/event-stream"}).text
        data = [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: ")]
        yield "http stream", [json.loads(each) for each in data]
        for path in ("tomes", "tomes/memory", "tomes/memory/documents", "tomes/memory/traces", "tomes/memory/traces/2"):
            yield send("GET", path)
        for path in ("traces/2/evidence", "sessions", "sessions/talk", "pictures", "pictures/tree", "traces/3/picture"):
            yield send("GET", f"tomes/memory/{path}")
        for path in ("sample", "info", "health", "evaluations"):
            yield send("GET", path)
        for path in ("document", "text", "removal"):
            yield send("GET", f"tomes/memory/{path}", params={"document": str(FOLDER / "letter.txt")})
        yield send("POST", "tomes/memory/estimate", json={"system": "raptor"})
        yield send("POST", "tomes", json={"name": "fresh"})
        text = {"id": "note", "text": "Ada Marsh put out the light at nine."}
        yield finish(client.post("/api/tomes/fresh/documents", json=text).json())
        body = {"system": "comorag", "accept": {"calls": 100}}
        yield finish(client.post("/api/tomes/fresh/builds", json=body).json())
        yield send("DELETE", "tomes/fresh/document", params={"id": "note"})


def mcp_replies() -> Iterator[tuple[str, Any]]:
    """The structured content of what the tools reply."""
    yield from asyncio.run(call_tools())


async def call_tools() -> list[tuple[str, Any]]:
    """Call each tool."""
    from mcp import Client

    from tomewise.server.mcp_server import make_server
    from tomewise.server.named_documents import FixedLibrary

    replies: list[tuple[str, Any]] = []
    with Tome.open(FOLDER / "memory.tome") as tome:
        async with Client(make_server(FixedLibrary({"memory": tome}), write=True)) as client:

            async def call(tool: str, **arguments: Any) -> None:
                result = await client.call_tool(tool, arguments)
                replies.append((f"mcp {tool} {json.dumps(arguments)}", result.structured_content))

            for question in QUESTIONS:
                for system in SYSTEMS:
                    await call("ask", question=question, system=system)
                await call("search", query=question)
            letter = str(FOLDER / "letter.txt")
            await call("read", document=letter)
            await call("list_documents")
            await call("overview")
            await call("entity", name=ENTITY)
            await call("entity", name="water")
            await call("build", system="raptor")
            await call("add_text", document="note", text="Ada Marsh put out the light at nine.")
            await call("build", system="comorag", accept_calls=1000)
            await call("remove_document", document="note")
    return replies


def compare(old: Any, new: Any, place: str, found: Counter[tuple[str, str]]) -> None:
    """Count what differs, by the kind of the difference and the keys that lead to it."""
    if isinstance(old, dict) and isinstance(new, dict):
        found.update(("gone", f"{place}.{key}") for key in old.keys() - new.keys())
        found.update(("new", f"{place}.{key}") for key in new.keys() - old.keys())
        for key in old.keys() & new.keys():
            if not _TIMES.fullmatch(key):
                compare(old[key], new[key], f"{place}.{key}", found)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for first, second in zip(old, new, strict=True):
            compare(first, second, f"{place}[]", found)
    elif old != new:
        found["differs", f"{place}: {old!a:.60} {new!a:.60}"] += 1


def main() -> int:
    """Write or compare."""
    match sys.argv[1:]:
        case ["write", path]:
            file = Path(path).absolute()
            file.write_text(json.dumps(write(), indent=1), encoding="utf-8")
            return 0
        case ["compare", *paths] if len(paths) == 2:
            old, new = (json.loads(Path(path).read_text(encoding="utf-8")) for path in paths)
            found: Counter[tuple[str, str]] = Counter()
            for name in old.keys() | new.keys():
                door = " ".join(re.split(r" [{\"]|\?", name)[0].split()[:3])
                compare(old.get(name), new.get(name), door, found)
            for (kind, place), count in sorted(found.items()):
                print(f"{kind} ({count}): {place}")
            print(f"{len(old)} and {len(new)} replies compared")
            return int(any(kind != "new" for kind, _ in found))
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
