"""Check that a change of the code's shape changes nothing that a user has.

PYTHONPATH=OLD/src python -m tools.compare_behaviour write old.json
PYTHONPATH=src     python -m tools.compare_behaviour write new.json
python -m tools.compare_behaviour compare old.json new.json

Both trees are used through their doors alone. Written are digests of: the export of the sample with every layer; the
answers with their events to ten questions in every system, and in a session, times aside; and every request that a
model gets for the layers and for three questions in every system.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.doors import FOLDER, HttpDoor, PlayedModel, digest, read_sample, run_tome, serve_tomes

SESSIONS = ("comorag", "hgmem", "hybrid")
_TIME = re.compile(r'"([a-z_]*seconds|depth|asked|created)": [^,}]+')  # the depth of calls is read from their times


def write() -> Iterator[tuple[str, str]]:
    """Each name of something that a user has, and its digest."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    story, questions = read_sample()
    (FOLDER / "story.md").write_text(story, encoding="utf-8")
    systems = [system["name"] for system in json.loads(run_tome("systems", "--json"))]
    build("quoted", systems)
    for line in run_tome("export", "--tome", "quoted.tome").splitlines():
        yield f"export {digest(line)}", ""
    with serve_tomes("quoted.tome") as door:
        for system in systems:
            for question in questions[:10]:
                yield f"answer {system} {question}", ask(door, "quoted", question=question, system=system)
        for system in SESSIONS:
            for question in questions[:3]:
                answer = ask(door, "quoted", question=question, system=system, session=system)
                yield f"session {system} {question}", answer
    with PlayedModel() as model:
        options = ("--model", "ollama:llama3.2", "--base-url", model.address)
        for system in systems:
            build("played", [system], *options)
            yield from ((f"request build {system} {request}", "") for request in model.take_requests())
        with serve_tomes("played.tome", *options) as door:
            for system in systems:
                for question in questions[:3]:
                    yield f"played {system} {question}", ask(door, "played", question=question, system=system)
                yield from ((f"request {system} {request}", "") for request in model.take_requests())


def build(name: str, systems: list[str], *options: str) -> None:
    """Build what the systems need over the story, in the tome of this name."""
    if not (FOLDER / f"{name}.tome").exists():
        run_tome("add", "story.md", "--tome", f"{name}.tome")
    for system in systems:
        run_tome("build", "--system", system, "--tome", f"{name}.tome", *options)


def ask(door: HttpDoor, tome: str, **asked: str) -> str:
    """The digest of an answer, its events and what was found."""
    answer: dict[str, Any] = door.send("POST", f"tomes/{tome}/ask", asked)
    trace = door.send("GET", f"tomes/{tome}/traces/{answer['trace']}")
    return digest(_TIME.sub("", json.dumps([answer, trace], sort_keys=True)))


def compare(old: dict[str, str], new: dict[str, str]) -> int:
    """Print each difference; 1 if there is any."""
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            print(f"gone: {name}")
        elif name not in old:
            print(f"new: {name}")
        elif old[name] != new[name]:
            print(f"differs: {name}")
    print(f"{len(old)} and {len(new)} digests compared")
    return int(old != new)


def main() -> int:
    """Write or compare."""
    match sys.argv[1:]:
        case ["write", path]:
            Path(path).write_text(json.dumps(dict(write()), indent=1), encoding="utf-8")
            return 0
        case ["compare", old, new]:
            return compare(*(json.loads(Path(path).read_text(encoding="utf-8")) for path in (old, new)))
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
