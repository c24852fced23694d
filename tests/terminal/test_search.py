"""The command `tome search`."""

from __future__ import annotations

import json

import pytest

LOG = "The keeper, Ada Marsh, put out the light at nine. Nobody asked her why."


@pytest.fixture
def log_in_tome(command, here):
    path = here / "log.txt"
    path.write_text(LOG)
    (here / "more.txt").write_text("Tom Hale rowed to the island in May.")
    assert command("add", path, here / "more.txt").code == 0
    return path


def test_it_prints_evidence_for_people(command, log_in_tome):
    ran = command("search", "put out the light")
    assert (ran.code, ran.err) == (0, "")
    assert "passages log.txt, part 1" in ran.out.splitlines()[0]
    assert LOG in ran.out
    assert "more.txt" in ran.out
    assert "more.txt" not in command("search", "put out the light", "--limit", "1").out


def test_it_prints_json_for_programs(command, log_in_tome):
    pieces = json.loads(command("search", "put out the light", "-s", "naive", "--json").out)
    assert [set(piece) for piece in pieces] == [{"node", "layer", "score", "title", "place", "text", "sources"}] * 2
    assert pieces[0]["text"] == LOG
    assert pieces[0]["score"] > pieces[1]["score"]
    source = {"document": str(log_in_tome.resolve()), "passage": pieces[0]["node"], "position": 0}
    assert pieces[0]["sources"] == [source]


def test_evidence_from_derived_layers_names_its_passages(command, log_in_tome):
    assert command("search", "light", "-s", "raptor").code == 4
    assert command("build", "-s", "raptor").code == 0
    pieces = json.loads(command("search", "light", "-s", "raptor", "--json").out)
    assert {piece["layer"] for piece in pieces} <= {"passages", "tree"}
    assert all(piece["sources"] for piece in pieces)


def test_it_refuses_a_query_without_words_and_a_limit_of_nothing(command, log_in_tome):
    assert command("search", " ").code == 2
    assert command("search", "light", "--limit", "0").code == 2
