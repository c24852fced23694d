"""A package with one part of each kind, installed and used from the command, from `Tome` and from `Experiment`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.installed_plugin import SOURCES, forget_parts, install_plugin
from tests.reading.documents import draw_pdf

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import ReadingError, UnknownName
from tomewise.language.cached import Cache
from tomewise.language.choose_model import check_models
from tomewise.language.prompts import Prompts
from tomewise.language.roles import find_outside_roles
from tomewise.language.wrapped import Wrapped
from tomewise.systems.kit import Kit
from tomewise.systems.layers import make_layers
from tomewise.systems.registry import find_declaration
from tomewise.testing import check_language_model, check_loop, check_mapped_layer, check_retriever
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.open_store import open_store
from tomewise.tome.tome import Tome
from tomewise.types import Document, Question

LOG = "# kept by Ada Marsh\n1911-05-02 | Ada Marsh put out the light at nine.\n1911-05-03 | Tom Hale rowed in.\n"
SCANNED = "q 9 0 0 9 72 600 cm BI /W 1 /H 1 /BPC 8 /CS /G ID x EI Q"  # a page with a picture alone


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The plugin, installed for this process and for those that it starts."""
    folder = tmp_path / "site"
    install_plugin(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.syspath_prepend(SOURCES)
    forget_parts(monkeypatch, "tomewise_harbour")
    return folder


@pytest.fixture
def run(command: Callable[..., Any]) -> Callable[..., Any]:
    """Run the command. Returns what it wrote as JSON."""

    def run(*words: object) -> Any:
        ran = command(*words, "--json")
        assert ran.code == 0, ran.err
        return json.loads(ran.out)

    return run


@pytest.fixture
def logbook(here: Path) -> Path:
    path = here / "may.logbook"
    path.write_text(LOG, encoding="utf-8")
    return path


def test_the_command_uses_the_package(site, logbook, here, run, command):
    path = os.pathsep.join([str(site), *(each for each in sys.path if each)])
    words = [sys.executable, "-m", "tomewise", "add", str(here), "--embedder", "hash", "--json"]
    added = subprocess.run(words, env={**os.environ, "PYTHONPATH": path}, capture_output=True, timeout=120, check=True)
    assert json.loads(added.stdout)["added"] == [str(logbook.resolve())], "in a process of its own"
    built = run("build", "--system", "harbour")
    assert [layer["layer"] for layer in built["layers"]] == ["graph:passages-triples", "retold"]
    again = run("build", "--layer", "retold", "--again", "retold")
    assert [layer["added"] for layer in again["layers"]] == [0, built["layers"][1]["added"]]
    assert run("ask", "Who put out the light?", "--system", "harbour limit=3")["system"] == "harbour limit=3"
    shown = run("systems", "harbour:briefly")
    assert (shown["kind"], shown["ablations"]) == ("one search", {"briefly": {"words": 5}})
    assert [setting["help"] for setting in shown["settings"]][1] == "words of a passage that count"
    (here / "corpus.jsonl").write_text('{"id": "a", "text": "Ada put out the light at nine."}\n')
    (here / "questions.jsonl").write_text('{"id": "q", "question": "When?", "answers": ["at nine"]}\n')
    systems = ("harbour", "opening+doubted first=1")
    table = command("eval", "run", *systems, "--data", here, "--metric", "brevity", "--embedder", "hash").out
    assert "opening+doubted first=1" in table
    assert "brevity" in table


def test_a_logbook_is_read_in_the_reader_process(site, logbook, here):
    (here / "broken.logbook").write_text("no date", encoding="utf-8")
    with Tome.open(here / "m.tome", embedder="hash") as tome:
        report = tome.add(here)
        document = tome.documents["may.logbook"]
    assert document.text == "Ada Marsh put out the light at nine. (1911-05-02)\nTom Hale rowed in. (1911-05-03)"
    assert (document.metadata, document.source) == ({"begins": "1911-05-02"}, str(logbook.resolve()))
    assert "is not a logbook" in report.skipped[str(here / "broken.logbook")]


def test_a_scan_is_read_by_the_package(site, here):
    (here / "a.pdf").write_bytes(draw_pdf(SCANNED, SCANNED))
    with Tome.open(here / "m.tome", embedder="hash") as tome:
        with pytest.raises(ReadingError, match=r"put its text beside it, as a\.pdf\.txt"):
            tome.add(here / "a.pdf")
        (here / "a.pdf.txt").write_text("Ada put out the light.\fTom rowed in.", encoding="utf-8")
        tome.add(here / "a.pdf")
        (found,) = tome.search("Tom rowed in", limit=1)
    assert found.place.page == 1
    assert found.text == "Ada put out the light.\n\nTom rowed in."


async def test_its_parts_pass_the_contracts(site, here):
    from tomewise_harbour.role import FactIn

    (role,) = find_outside_roles()
    reply = {"sentence": "Ada kept the light."}
    model = ScriptedModel({role.name: lambda _: reply, "answer": lambda _: {"answer": "Ada"}})
    await check_language_model(model, role, FactIn(fact="ada keep light"))
    async with Tome.open(here / "m.tome", model=model, embedder="hash") as tome:
        await tome.aadd(*(Document(id=f"d{n}", text=f"Ada kept light number {n}.") for n in range(7)))
        system = find_declaration("opening+doubted").recipe(tome.kit)
        await check_retriever(system.retriever, "Who kept light number 3?")
        answer = await check_loop(system.loop, Question(text="Who kept it?"))
        assert len(answer.evidence) == 1
        answer = await tome.aask("Who kept it?", system="opening+doubted first=2 limit=3")
        assert len(answer.evidence) == 2


REPLIES = {
    "extract_facts": lambda given: {"triples": [[given.text.split()[0], "kept", given.text.split()[-1]]]},
    "retell_fact": lambda given: {"sentence": f"Retold: {given.fact}."},
    "answer": lambda _: {"answer": "Ada"},
}


async def test_its_layer_passes_the_contract(site, tmp_path):
    numbers = count()

    def make(store):
        model = Wrapped(ScriptedModel(REPLIES), Cache(Prompts(), store.calls))
        return make_layers(Kit(store, model, HashEmbedder(32)), "retold")

    await check_mapped_layer(make, lambda: open_store(tmp_path / f"{next(numbers)}.tome"), HashEmbedder(32))


def test_its_role_may_have_a_model_of_its_own(site):
    check_models("extractive", {"retell_fact": "extractive"}, None)
    with pytest.raises(UnknownName, match="did you mean 'retell_fact'"):
        check_models("extractive", {"retell_facts": "extractive"}, None)


def test_its_files_import_what_is_promised():
    text = "".join(path.read_text("utf-8") for path in SOURCES.rglob("*.py"))
    rooms = set(re.findall(r"(?:from|import) (tomewise[.\w]*)", text))
    assert {room for room in rooms if not room.startswith("tomewise_harbour")} == {"tomewise.parts"}
