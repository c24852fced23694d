"""A short command imports no more than it needs: who looks at a tome does not wait for what asks and builds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tomewise import Tome

RUN = """
import json, sys
from pathlib import Path
from tomewise.terminal.program import run
code = run(sys.argv[2:])
Path(sys.argv[1]).write_text(json.dumps(sorted(sys.modules)))
sys.exit(code)
"""
# Rooms and files, with all that is in them.
HELP = {
    *("tomewise.terminal", "tomewise.settings", "tomewise.setting_files", "tomewise.trust", "tomewise.credentials"),
    *("tomewise.errors", "tomewise.plugins", "tomewise.place", "tomewise.brief", "tomewise.sample", "tomewise.calls"),
}
LOOK = HELP | {
    *("tomewise.store", "tomewise.outgoing", "tomewise.types", "tomewise.events", "tomewise.pictures", "tomewise.run"),
    *("tomewise.meter", "tomewise.beside", "tomewise.addresses", "tomewise.extras", "tomewise.notebook_display"),
    "tomewise.concurrency",
    *("tomewise.tome.tome", "tomewise.tome.arguments", "tomewise.tome.damaged", "tomewise.tome.document_names"),
    *("tomewise.tome.embedder_address", "tomewise.tome.fixed_settings", "tomewise.tome.holdings"),
    *("tomewise.tome.inputs", "tomewise.tome.open_store", "tomewise.tome.scope_words", "tomewise.tome.session_record"),
    *("tomewise.tome.sync", "tomewise.tome.traces", "tomewise.systems.advice", "tomewise.systems.defaults"),
    *("tomewise.embedding.bundled", "tomewise.embedding.cached_embedder", "tomewise.embedding.choose_embedder"),
    *("tomewise.embedding.hash", "tomewise.embedding.unit_rows", "tomewise.embedding.weights"),
    *("tomewise.language.choose_model", "tomewise.language.fences", "tomewise.language.prompts"),
    *("tomewise.language.spec", "tomewise.language.usage", "tomewise.memory.grounds"),
    *("tomewise.memory.schemata.network", "tomewise.memory.schemata.schemata_names"),
}
ROOMS = {"tomewise"} | {f"tomewise.{name}" for name in ("tome", "systems", "embedding", "language", "memory")}
ROOMS |= {"tomewise.memory.schemata", "tomewise.language.extractive"}  # the folders themselves, not what is in them
PACKAGES = {"numpy", "sqlalchemy", "tokenizers", "onnxruntime", "scipy", "jinja2", "yaml", "pydantic_ai"}


@pytest.fixture(scope="module")
def tome(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tome with a document, a trace and a session."""
    folder = tmp_path_factory.mktemp("startup")
    (folder / "tide.md").write_text("The tide turned at noon.\n\nThe keeper saw it.", encoding="utf-8")
    with Tome.open(folder / "a.tome", embedder="hash") as opened:
        opened.add(folder / "tide.md")
        opened.session("first").ask("When did the tide turn?")
    return folder / "a.tome"


def list_modules(file: Path, *words: str) -> set[str]:
    """The modules that a process has after a command."""
    subprocess.run([sys.executable, "-c", RUN, str(file), *words], stdout=subprocess.DEVNULL, check=True)
    return set(json.loads(file.read_text()))


def find_others(modules: set[str], allowed: set[str]) -> list[str]:
    """Our modules that are neither allowed nor in a room that is."""
    ours = {name for name in modules if name.partition(".")[0] == "tomewise"} - ROOMS
    return sorted(name for name in ours if name not in allowed and not any(name.startswith(f"{a}.") for a in allowed))


@pytest.mark.parametrize("words", [("--help",), ("ask", "--help")], ids=" ".join)
def test_help_imports_neither_nouns_nor_libraries(words: tuple[str, ...], tmp_path: Path) -> None:
    modules = list_modules(tmp_path / "modules", *words)
    assert find_others(modules, HELP) == []
    assert not modules & PACKAGES


@pytest.mark.parametrize("words", [("show",), ("log", "1"), ("log", "1", "--json"), ("sessions",)], ids=" ".join)
def test_who_looks_at_a_tome_imports_nothing_that_asks_or_builds(
    words: tuple[str, ...], tome: Path, tmp_path: Path
) -> None:
    modules = list_modules(tmp_path / "modules", "-m", str(tome), *words)
    assert find_others(modules, LOOK) == []
    assert not modules & (PACKAGES - {"numpy", "sqlalchemy"})


def test_a_question_imports_the_family_of_its_system_alone(tome: Path, tmp_path: Path) -> None:
    modules = list_modules(tmp_path / "modules", "-m", str(tome), "ask", "When?", "--system", "naive")
    assert "tomewise.systems.from_passages" in modules
    families = ("auto", "cam", "comorag", "cosmir", "graph_walk", "hgmem", "raptor", "readers")
    assert not modules & {f"tomewise.systems.{name}" for name in families}
