"""Files of every kind, made by the libraries that usually make them, are read (`bench/formats.py --make`)."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from tests.newcomer.conftest import REPOSITORY, Installed, everything

# What the citation of a word in chapter 7 names, by file: where its passage begins, and on pages also where it ends.
PLACES = {
    "a.pdf": r"p\. [1-7]–(7|8)",
    "a.docx": "ch. 7",
    "a.pptx": "slide [4-7]",
    "a.xlsx": r"row \d+–\d+",
    "a.epub": "ch. 7",
    "a.html": "ch. 7",
    "a.md": "ch. 7",
    "a.srt": "(18|24|25):00, (Anna|Bob)",
    "a.vtt": "(18|24|25):00, (Anna|Bob)",
    "a.csv": r"row \d+–\d+",
    "a.tsv": r"row \d+–\d+",
    "a.ipynb": "ch. 7",
    "a.eml": "2024-05-01",
    "a.mbox": "2024-05-01",
}
PLAIN = {"a.txt", "a.rst", "a.org", "a.tex", "a.log", "a.json", "a.yaml", "a.py", "a.jsonl"}
ASK = """
import json, sys
from tomewise import Tome
from tomewise.place import describe_place

with Tome.open() as tome:
    found = {}
    for record in tome.documents():
        answer = tome.ask("What did the keeper see in w7a1x?", documents=[record.id])
        cited = [[c.quote, describe_place(c.place)] for c in answer.citations]
        found.setdefault(record.source.rsplit("/", 1)[-1], []).extend(cited)
print(json.dumps(found))
"""


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "files"
    maker = Installed(Path(os.environ["TOMEWISE_MAKERS"]), folder.parent)
    ran = maker.call(maker.python, REPOSITORY / "bench" / "formats.py", folder, "--make")
    assert ran.returncode == 0, ran.stderr
    return folder


@everything
def test_each_kind_is_read_and_cited_with_its_place(machine: Installed, files: Path):
    names = {path.name for path in files.iterdir()}
    assert set(PLACES) | PLAIN <= names
    ran = machine.run("add", files, "--json", "--embedder", "hash")
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert set(report["skipped"]) == {str(files / name) for name in names - set(PLACES) - PLAIN}
    asked = machine.call(machine.python, "-c", ASK)
    assert asked.returncode == 0, asked.stderr
    found = json.loads(asked.stdout)
    assert {name for name in PLACES if not any("w7a1x" in quote for quote, _ in found[name])} == set()
    places = {name: " / ".join(place for _, place in found[name]) for name in PLACES}
    assert {name: places[name] for name in PLACES if not re.search(PLACES[name], places[name])} == {}


@everything
def test_files_that_cannot_be_read_are_named(machine: Installed, files: Path):
    ran = machine.run("add", files / "locked.pdf", files / "scanned.pdf", files / "a.txt", files / "old.docx")
    assert ran.returncode == 3
    assert "a.txt" in machine.run("show").stdout
    for name, reason in (
        ("locked.pdf", "encrypted"),
        ("scanned.pdf", "scanned"),
        ("old.docx", "old version of Office"),
    ):
        assert re.search(rf"{name}.*{reason}", ran.stdout + ran.stderr), name
