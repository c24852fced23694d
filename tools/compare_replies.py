"""Check that a change keeps the keys and the values of what the command, HTTP and MCP reply.

PYTHONPATH=OLD/src python -m tools.compare_replies write old.json
PYTHONPATH=src     python -m tools.compare_replies write new.json
python -m tools.compare_replies compare old.json new.json

Both trees are used through their doors alone. Written are the replies to ten questions about the sample in several
systems through HTTP and MCP, to some of them through the command, and to the other commands, endpoints and tools that
reply with JSON. New keys are listed; a key that is gone, and a value that differs, make the comparison fail. Times are
left out.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.doors import FOLDER, McpDoor, read_sample, run_tome, serve_tomes

SYSTEMS = ("naive", "hybrid", "comorag", "hipporag2", "hgmem")
ENTITY = "Slack Water Book"
_TIMES = re.compile(r"(.*_)?seconds|depth|asked|created|started|ended|digest|bytes|cache_bytes")


def write() -> dict[str, Any]:
    """Each reply by the name of what was asked."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    story, questions = read_sample()
    questions = [*questions[:9], "What did Napoleon eat at Waterloo?"]
    (FOLDER / "story.md").write_text(story, encoding="utf-8")
    (FOLDER / "letter.txt").write_text("The clerk forged the letter in May. The doctor was away.\n", encoding="utf-8")
    doors = (command_replies, http_replies, mcp_replies)
    return {name: reply for door in doors for name, reply in door(questions)}


def command_replies(questions: list[str]) -> Iterator[tuple[str, Any]]:
    """What `--json` prints."""

    def run(*words: str) -> tuple[str, Any]:
        lines = [json.loads(line) for line in run_tome(*words, "--json").splitlines()]
        return f"command {' '.join(words)}", lines[0] if len(lines) == 1 else lines

    yield run("add", "story.md", "letter.txt", "--embedder", "hash")
    for system in SYSTEMS[2:]:
        yield run("build", "--system", system, "--estimate")
        yield run("build", "--system", system)
    yield run("show")
    yield run("show", "letter.txt")
    yield run("show", "--entity", ENTITY)
    yield run("systems")
    for question in questions[::3]:
        for system in SYSTEMS:
            yield run("ask", question, "--system", system, "--trace")
        yield run("search", question)
    choice = ("--option", "the clerk", "--option", "the doctor", "--document", "letter")
    yield run("ask", "Who forged the letter?", *choice)
    yield run("ask", questions[0], "--session", "talk")
    yield run("ask", "Who wrote it?", "--session", "talk")
    yield run("sessions")
    yield run("sessions", "talk")
    yield run("log", "--limit", "3")
    yield run("log", "2")
    shutil.copy(FOLDER / "memory.tome", FOLDER / "other.tome")
    yield run("remove", "letter.txt", "--yes", "--tome", "other.tome")


def http_replies(questions: list[str]) -> Iterator[tuple[str, Any]]:
    """What the server replies below /api."""
    with serve_tomes("memory.tome", "--root", FOLDER) as door:

        def send(method: str, path: str, body: Any = None) -> tuple[str, Any]:
            return f"http {method} {path} {json.dumps(body or '')}", door.send(method, path, body)

        def finish(job: dict[str, Any]) -> tuple[str, Any]:
            while (found := door.send("GET", f"jobs/{job['id']}"))["state"] in ("queued", "waiting", "running"):
                time.sleep(0.1)
            return f"http job {job['kind']}", {**found, "id": ""}

        for question in questions:
            for system in SYSTEMS:
                yield send("POST", "tomes/memory/ask", {"question": question, "system": system})
            yield send("POST", "tomes/memory/search", {"query": question})
        asked = {"question": questions[0], "system": "hybrid"}
        stream = door.send("POST", "tomes/memory/ask", asked, accept="text/event-stream")
        data = [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: ")]
        yield "http stream", [json.loads(each) for each in data]
        for path in ("tomes", "tomes/memory", "tomes/memory/documents", "tomes/memory/traces", "tomes/memory/traces/2"):
            yield send("GET", path)
        for path in ("traces/2/evidence", "sessions", "sessions/talk", "pictures", "pictures/tree"):
            yield send("GET", f"tomes/memory/{path}")
        for path in ("sample", "info", "health", "evaluations"):
            yield send("GET", path)
        for path in ("document", "text", "removal"):
            yield send("GET", f"tomes/memory/{path}?document=letter.txt")
        yield send("POST", "tomes/memory/estimate", {"system": "raptor"})
        yield send("POST", "tomes", {"name": "fresh"})
        text = {"id": "note", "text": "Ada Marsh put out the light at nine."}
        yield finish(door.send("POST", "tomes/fresh/documents", text))
        yield finish(door.send("POST", "tomes/fresh/builds", {"system": "comorag", "accept": "100 calls"}))
        yield send("DELETE", "tomes/fresh/document?document=note")


def mcp_replies(questions: list[str]) -> Iterator[tuple[str, Any]]:
    """The structured content of what the tools reply."""
    with McpDoor("--write", "--tome", "memory.tome") as door:

        def call(tool: str, **arguments: Any) -> tuple[str, Any]:
            return f"mcp {tool} {json.dumps(arguments)}", door.call(tool, **arguments).get("structuredContent")

        for question in questions:
            for system in SYSTEMS:
                yield call("ask", question=question, system=system)
            yield call("search", query=question)
        yield call("read", document="letter.txt")
        yield call("list_documents")
        yield call("overview")
        yield call("entity", name=ENTITY)
        yield call("entity", name="water")
        yield call("build", system="raptor")
        yield call("add_text", document="note", text="Ada Marsh put out the light at nine.")
        yield call("build", system="comorag", accept="1000 calls")
        yield call("remove_document", document="note")


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
