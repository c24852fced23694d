"""`tome show --entity NAME`."""

from __future__ import annotations

import json

import pytest

TEXT = (
    "Ada Marsh kept the light on Gull Rock. Ada Marsh wrote a letter to Doctor Finch. Doctor Finch burned the letter."
)


@pytest.fixture
def story(command, here):
    (here / "log.txt").write_text(TEXT)
    command("add", "log.txt")
    command("build", "--system", "cogitorag")
    command("build", "--system", "associative")


def test_facts_passages_and_gists_of_an_entity(command, story):
    found = json.loads(command("show", "--entity", "ADA marsh", "--json").out)
    assert found["name"] == "ada marsh"
    assert {fact["graph"] for fact in found["facts"]} == {"gists-triples", "passages-triples"}
    assert any("letter" in fact["text"] for fact in found["facts"])
    (passage,) = found["passages"]
    assert passage["text"] == TEXT
    assert "Ada Marsh" in passage["gist"]
    shown = command("show", "--entity", "Ada Marsh").out
    assert "graph:passages-triples" in shown
    assert "log.txt, part 1" in shown
    assert "gist" in shown


def test_names_that_are_near_are_offered(command, story):
    ran = command("show", "--entity", "Finch")
    assert (ran.code, ran.out) == (2, "")
    assert "no entity is called just 'Finch': did you mean 'doctor finch'?" in ran.err
    assert "did you mean 'ada marsh'?" in command("show", "--entity", "Ada Mrash").err
    assert "search finds words in texts" in command("show", "--entity", "xyzzy").err


def test_an_entity_needs_a_graph_and_stands_alone(command, here):
    (here / "log.txt").write_text(TEXT)
    command("add", "log.txt")
    assert "no graph is built in this tome" in command("show", "--entity", "Ada Marsh").err
    assert command("show", "log.txt", "--entity", "Ada Marsh").code == 2
