"""A short command imports no more than it needs: who looks at a tome does not wait for what asks and builds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tomewise import Tome

RUN = """
import json, sys
from pathlib import Path
from tomewise.terminal.program import run
codes = [run(line.split()) for line in sys.argv[2:]]
Path(sys.argv[1]).write_text(json.dumps(sorted(sys.modules)))
sys.exit(max(codes))
"""
# Modules that help needs, with all that are in them.
HELP = (
    *("terminal", "settings", "setting_files", "credentials"),
    *("errors", "plugins", "place", "sample", "calls", "systems", "systems.efforts"),
)
# Those that ask, build and read, and that a look at a tome does without.
WORK = (
    *("adapters", "cluster", "drawing", "evaluate", "loops", "reading", "recall", "server", "working"),
    *("language.chat", "memory.building", "memory.graph", "systems.registry", "tome.questions"),
)
PACKAGES = {"numpy", "sqlalchemy", "tokenizers", "onnxruntime", "scipy", "jinja2", "yaml", "pydantic_ai"}


def list_modules(file: Path, *lines: str) -> set[str]:
    """The modules that a process has after these commands."""
    subprocess.run([sys.executable, "-c", RUN, str(file), *lines], stdout=subprocess.DEVNULL, check=True)
    return set(json.loads(file.read_text()))


def find_in(modules: set[str], names: tuple[str, ...]) -> set[str]:
    """Those of these modules of ours that have such a name or are in a room of that name."""
    return {name for name in modules if f"{name}.".startswith(tuple(f"tomewise.{each}." for each in names))}


def test_help_imports_neither_nouns_nor_libraries(tmp_path: Path) -> None:
    modules = list_modules(tmp_path / "modules", "--help", "ask --help")
    assert {name for name in modules if name.startswith("tomewise.")} == find_in(modules, HELP)
    assert not modules & PACKAGES


def test_who_looks_at_a_tome_imports_nothing_that_asks_or_builds(tmp_path: Path) -> None:
    (tmp_path / "tide.md").write_text("The tide turned at noon.\n\nThe keeper saw it.", encoding="utf-8")
    with Tome.open(tmp_path / "a.tome", embedder="hash") as tome:
        tome.add(tmp_path / "tide.md")
        tome.sessions["first"].ask("When did the tide turn?")
    looks = (f"-m {tmp_path}/a.tome {words}" for words in ("show", "log 1", "log 1 --json", "sessions"))
    modules = list_modules(tmp_path / "modules", *looks)
    assert find_in(modules, WORK) == set()
    assert not modules & (PACKAGES - {"numpy", "sqlalchemy"})
