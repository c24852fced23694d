"""The system of `Tome.open(system=...)`, which counts where a method names none."""

from __future__ import annotations

import pytest

from tomewise.errors import UnknownName
from tomewise.settings import Settings
from tomewise.systems.registry import DEFAULT
from tomewise.tome.tome import Tome
from tomewise.types import Document

LOG = Document(id="log", text="The keeper, Ada Marsh, put out the light at nine. Nobody asked her why.")
QUESTION = "Who put out the light?"


def test_every_method_uses_it_unless_a_system_is_named(here):
    with Tome.open(here / "a.tome", embedder="hash", system="associative limit=1") as tome:
        tome.add(LOG)
        (estimate,) = tome.estimate()
        assert estimate.layer == "graph:passages-triples"
        assert [report.layer for report in tome.build().layers] == ["graph:passages-triples"]
        answers = [tome.ask(QUESTION), *tome.ask_many([QUESTION]), tome.session("s").ask(QUESTION)]
        assert {answer.system for answer in answers} == {"associative limit=1"}
        assert tome.search(QUESTION)
        assert tome.ask(QUESTION, system="naive").system == "naive"


async def test_streams_use_it_too(here):
    async with Tome.open(here / "a.tome", embedder="hash", system="naive") as tome:
        await tome.aadd(LOG)
        items = [item async for item in tome.astream(QUESTION)]
        assert items[-1].system == "naive"


def test_a_misspelt_one_is_refused_before_a_file_is_made(here):
    with pytest.raises(UnknownName, match="did you mean 'naive'"):
        Tome.open(here / "a.tome", embedder="hash", system="niave")
    assert list(here.iterdir()) == []


def test_the_settings_hold_the_same_default():
    assert Settings().system == DEFAULT


def test_a_tome_from_settings_has_the_system_of_the_settings(here, monkeypatch):
    monkeypatch.setenv("TOMEWISE_SYSTEM", "naive")
    monkeypatch.setenv("TOMEWISE_EMBEDDER", "hash")
    with Tome.from_settings() as tome:
        tome.add(LOG)
        assert tome.ask(QUESTION).system == "naive"
