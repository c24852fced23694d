"""Measure how much one must hold in one's head to follow the code: run it before and after a clean-up.

python tools/measure_house.py             # a table
python tools/measure_house.py --json      # the same as JSON, to compare two trees

A question and an `add` are followed with a profile function: which functions of the package run, in how many files,
and how often a call leads from one room into another (each pair of caller and called function counts once, so that
the length of the text does not matter). The rest is read from the source.
"""

from __future__ import annotations

import ast
import asyncio
import json
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from statistics import median
from types import CodeType, FrameType
from typing import Any

from check_rooms import find_circles, read_imports

import tomewise
from tomewise import Document, Tome
from tomewise.testing import HashEmbedder

ROOT = Path(tomewise.__file__).parent
TEXT = "Ada keeps the lighthouse at Skagen.\nHer brother Ole mends nets.\nIn winter Ole rows to the lighthouse."
LONG = 40  # lines of a function


def main() -> None:
    """Print the measures."""
    measures = {**follow_work(), **read_source()}
    if "--json" in sys.argv[1:]:
        print(json.dumps(measures, indent=2))
        return
    for name, value in measures.items():
        if isinstance(value, dict):
            print(f"{name}:")
            for key, each in value.items():
                print(f"    {key:<14} {each}")
        else:
            print(f"{name:<44} {value}")


def follow_work() -> dict[str, int]:
    """What one `add` and one plain question enter. Each runs twice; the second run counts, without first imports."""
    measures: dict[str, int] = {}
    for attempt in range(2):
        with tempfile.TemporaryDirectory() as folder:
            tome = Tome.open(Path(folder) / "house.tome", embedder=HashEmbedder())
            steps: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
                "add": lambda tome=tome: tome.aadd(Document(id="house.txt", text=TEXT)),
                "question": lambda tome=tome: tome.aask("Who keeps the lighthouse?", system="naive"),
            }
            for name, step in steps.items():
                trail = Trail()
                with trail:  # only threads that start inside are followed, so the event loop is a new one
                    asyncio.run(step())
                if attempt:
                    measures |= trail.count(name)
            tome.close()
    return measures


class Trail:
    """The functions of the package that run inside this context, in any thread, and who called them."""

    def __init__(self) -> None:
        self._calls: set[tuple[CodeType | None, CodeType]] = set()

    def __enter__(self) -> None:
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    def count(self, name: str) -> dict[str, int]:
        functions = {called for _, called in self._calls}
        changes = [
            called
            for caller, called in self._calls
            if caller is not None and find_room(caller.co_filename) != find_room(called.co_filename)
        ]
        return {
            f"{name}: functions": len(functions),
            f"{name}: files": len({code.co_filename for code in functions}),
            f"{name}: calls into another room": len(changes),
        }

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and is_ours(frame.f_code) and not frame.f_code.co_name.startswith("<"):
            caller = frame.f_back
            while caller is not None and not is_ours(caller.f_code):
                caller = caller.f_back
            self._calls.add((caller.f_code if caller else None, frame.f_code))


def is_ours(code: CodeType) -> bool:
    """Whether it is code of the package."""
    return code.co_filename.startswith(str(ROOT))


def find_room(filename: str) -> str:
    """The folder or file directly below the package."""
    return Path(filename).relative_to(ROOT).parts[0].removesuffix(".py")


def read_source() -> dict[str, Any]:
    """What the source says of itself."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    parameters = sorted(count_parameters(node) for node in functions if node.name == "__init__")
    variables = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "ContextVar"]
    lines: dict[str, list[int]] = {}
    for path in trees:
        lines.setdefault(find_room(str(path)), []).append(len(path.read_text(encoding="utf-8").splitlines()))
    circles = find_circles(read_imports(trees, ROOT))
    return {
        "context variables": len(variables),
        "constructor parameters, median": median(parameters),
        "constructor parameters, most": parameters[-1],
        "circles of files": len(circles),
        "files in circles": sum(map(len, circles)),
        f"functions over {LONG} lines": sum((node.end_lineno or 0) - node.lineno + 1 > LONG for node in functions),
        "files": len(trees),
        "lines": sum(map(sum, lines.values())),
        "lines and files by room": {room: f"{sum(each)} in {len(each)}" for room, each in sorted(lines.items())},
        "the circles": {str(number): ", ".join(circle) for number, circle in enumerate(circles, start=1)},
    }


def count_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The parameters beside `self`."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return sum(each is not None for each in every) - 1


if __name__ == "__main__":
    main()
