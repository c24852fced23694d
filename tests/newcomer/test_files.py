"""Files of every kind, made by the libraries that usually make them, are read (`bench/formats.py --make`)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.newcomer.conftest import REPOSITORY, Installed, everything

# Where a quotation from chapter 7 stands, by file.
PLACES = {
    "a.pdf": "p. 7",
    "a.docx": "ch. 7",
    "a.pptx": "ch. 7, slide 7",
    "a.xlsx": "“Sheet”, row 27",
    "a.epub": "ch. 7",
    "a.html": "ch. 7",
    "a.md": "ch. 7",
    "a.srt": "25:00, Bob",
    "a.vtt": "25:00, Bob",
    "a.csv": "row 27",
    "a.tsv": "row 27",
    "a.ipynb": "ch. 7, cell 13",
    "a.eml": "2024-05-01 12:04, Anna Poe",
    "a.mbox": "2024-05-01 12:04, Anna Poe",
}
PLAIN = {"a.txt", "a.rst", "a.org", "a.tex", "a.log", "a.json", "a.yaml", "a.py", "a.jsonl"}
ASK = """
import json, sys
from tomewise import Tome
from tomewise.types.place import describe_place

with Tome.open() as tome:
    found = {}
    for record in tome.documents():
        answer = tome.within(record.id).ask("What did the keeper see in w7a1x?")
        cited = [[c.text, describe_place(c.place)] for c in answer.quotes]
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
    assert {name: {place for quote, place in found[name] if "w7a1x" in quote} for name in PLACES} == {
        name: {place} for name, place in PLACES.items()
    }
