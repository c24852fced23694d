"""The examples do what they say: each runs in an empty folder, without a network."""

from __future__ import annotations

import json
import os
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.language.openai_server import OpenAIServer, stream_with
from tests.texts import REPOSITORY

from tomewise.embedding.hash import HashEmbedder

EXAMPLES = REPOSITORY / "examples"
MOST_LINES = 60
Run = Callable[..., str]
WITHOUT_WEIGHTS = """
from tomewise.embedding import bundled
from tomewise.embedding.hash import HashEmbedder
bundled.BundledMiniLM = lambda: HashEmbedder(384)
"""


@pytest.fixture
def run(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run an example, with an embedder without weights in it and in processes that it starts; give what it prints."""
    monkeypatch.setattr("tomewise.embedding.bundled.BundledMiniLM", lambda: HashEmbedder(384))
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_WEIGHTS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))

    def start(name: str, *words: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *words])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capfd.readouterr().out

    return start


def test_a_story_is_quoted_and_a_letter_is_forgotten(run: Run, here: Path) -> None:
    (here / "mine.txt").write_text("Ada Marsh kept the clock of the Tide House. Tom Reed rowed the boat.")
    printed = run("novel.py", "mine.txt")
    assert "\n[1] “Ada Marsh kept the clock of the Tide House.” (mine.txt, part 1)\n" in printed
    assert int(re.search(r"^(\d+) lines of memory came", printed, re.MULTILINE)[1]) > 5
    assert printed.endswith("forgotten to the last line\n")

    printed = run("agent.py")
    assert re.search(r"^tools: list_documents, read, outline, .*\bfind, collect, verify$", printed, re.MULTILINE)
    assert "found: p-" in printed
    assert printed.count("is the quotation: True") == 2
    assert "is the quotation: False" not in printed


def test_a_local_server_streams_the_answer(run: Run) -> None:
    reply = json.dumps({"answer": "It was set an hour wrong.", "quotes": ["in the hall was the clock"]})
    with OpenAIServer(lambda _: stream_with(reply[:25], reply[25:])) as server:
        printed = run("local_model.py", "qwen3", server.url, "--window", "16000")
        asked = server.requests[-1]
    assert "It was set an hour wrong.\n4 quotations stand in the text, support: inferred" in printed
    assert asked["model"] == "qwen3"
    assert asked["stream"]


def test_an_archive_is_filtered_and_follows_its_folder(run: Run) -> None:
    printed = run("archive.py")
    assert "added=12" in printed
    everywhere, minutes, mail = re.findall(r"^the repair of the ferry, .*:\n((?:  .*\n)+)", printed, re.MULTILINE)
    assert "the ferry" in everywhere.splitlines()[0]
    assert set(minutes.splitlines()) == {
        "  -: To repair the ferry, 3000 crowns.",
        "  -: To repair the market hall, 4000 crowns.",
    }
    assert all("The builder of" in line for line in mail.splitlines())
    assert re.search(r"unchanged=10, removed=1, moved=1", printed)


def test_a_cap_holds_and_a_killed_build_repeats_no_call(run: Run) -> None:
    printed = run("budget.py")
    estimates = {
        name: int(calls) for name, calls in re.findall(r"^(\w+) +(\d+) calls +[\d,]+ tokens$", printed, re.MULTILINE)
    }
    assert len(estimates) == 9
    assert estimates["hybrid"] == 0
    assert "capped: the limit of 20 calls" in printed
    assert "killed with signal 9" in printed
    made, kept = map(int, re.search(r"the last build made (\d+) calls, and found (\d+) replies", printed).groups())
    assert kept
    assert made < estimates["comorag"] - 20, "what the killed build asked is asked again"


def test_an_experiment_has_a_metric_of_ones_own_and_a_plot(run: Run, here: Path) -> None:
    printed = run("compare.py")
    rows = re.findall(
        r"^(\w+(?: limit=5)?) +span-recall@5 (\d+)%(.*), aim (\d+)%(.*) - 1.0 calls", printed, re.MULTILINE
    )
    assert [row[0] for row in rows] == ["naive", "hybrid", "hybrid limit=5"]
    assert int(rows[1][1]) > int(rows[0][1])
    assert "against naive" in rows[1][2]
    assert (here / "compare" / "scores.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("run")
def test_every_cell_of_the_notebook_runs(here: Path) -> None:
    """As plain Python; tests/newcomer runs it in Jupyter's kernel."""
    cells = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in cells), "keep the notebook without outputs"
    names: dict[str, Any] = {}
    exec("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"), names)
    assert names["answer"].quotes
    assert (here / "memory.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert len(names["experiment"].to_frame()) == 12


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.py")), ids=lambda path: path.name)
def test_an_example_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < MOST_LINES
