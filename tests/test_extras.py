"""What `pip install tomewise` leaves out is not imported before it is needed, and is asked for by name then."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.texts import prose

from tomewise import extras
from tomewise.errors import MissingDependency
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Document

# A Python without the packages of all extras, as after `pip install tomewise`, in which one command follows another.
LIGHT = """
import json, sys

left_out = (
    "fastapi fastembed graspologic_native igraph llvmlite matplotlib mcp numba onnx openpyxl pandas pptx "
    "pyarrow pynndescent pypdfium2 ray rouge_score scipy sentence_transformers sklearn starlette threadpoolctl torch "
    "umap uvicorn"
)
sys.modules.update(dict.fromkeys(left_out.split()))  # an import of these fails, and `find_spec` finds none
from tomewise.terminal.program import run

for words in json.loads(sys.argv[1]):
    print(f"exit code {run(words)}", file=sys.stderr)
"""
SEARCHED = ("naive", "hybrid", "full_context", "hybrid+probe", "hybrid+evolve", "cosmir", "chain_of_agents", "auto")
WITH_EXTRA = ("hipporag2", "associative", "cogitorag", "raptor", "cam", "comorag", "graphrag")


def run_light(here: Path, *commands: list[str]) -> list[str]:
    """Run commands in such a Python; returns what each wrote to standard error, its exit code at the end."""
    ran = subprocess.run(
        [sys.executable, "-c", LIGHT, json.dumps(commands)],
        cwd=here,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    found = re.findall(r"(.*?exit code \d+)\n", ran.stderr, re.DOTALL)
    assert len(found) == len(commands), ran.stderr
    return [" ".join(text.split()) for text in found]


def test_flat_systems_and_loops_need_no_extra(here):
    (here / "novel.txt").write_text(prose(3) + " Ada Marsh put out the light.")
    commands = [
        *(["--help"], ["systems"], ["systems", "comorag"], ["add", "novel.txt", "--embedder", "hash"]),
        *(["ask", "Who put out the light?", "--system", system] for system in SEARCHED),
        *(["build", "--system", system] for system in ("hgmem", "read_agent")),
        *(["ask", "Who put out the light?", "--system", system] for system in ("hgmem", "read_agent")),
    ]
    for words, reply in zip(commands, run_light(here, *commands), strict=True):
        assert reply.endswith("exit code 0"), (words, reply)


def test_a_system_with_a_graph_or_a_tree_names_the_extra(here):
    (here / "novel.txt").write_text(prose(3))
    builds = [["build", "--system", system] for system in WITH_EXTRA]
    estimates = [[*words, "--estimate"] for words in builds]
    added, *refused = run_light(here, ["add", "novel.txt", "--embedder", "hash"], *builds, *estimates)
    assert added.endswith("exit code 0")
    packages = "graspologic_native, numba, scipy, threadpoolctl"
    remedy = f'needs {packages}, which the extra `graph` installs: run `pip install "tomewise[graph]"`'
    for words, reply in zip([*builds, *estimates], refused, strict=True):
        assert reply.endswith(f"{remedy} exit code {MissingDependency.exit_code}"), (words, reply)


def test_a_build_without_the_extra_asks_no_model(here, monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    model = ScriptedModel({})
    with Tome.open(here / "m.tome", model=model, embedder="hash") as tome:
        tome.add(Document(id="d", text="Ada kept the light."))
        with pytest.raises(MissingDependency, match=r'pip install "tomewise\[graph\]"'):
            tome.build("comorag")
        assert not tome.store.layers().keys() - {"passages"}
