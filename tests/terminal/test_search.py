"""The command `tome search`."""

from __future__ import annotations

import json

import pytest
from tests.bridges import DOCUMENTS, QUESTION, REWRITE, find_rewrite

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
    assert [set(piece) for piece in pieces] == [
        {"id", "kind", "layer", "score", "title", "place", "text", "metadata", "sources", "rewrite"}
    ] * 2
    assert pieces[0]["text"] == LOG
    assert pieces[0]["score"] > pieces[1]["score"]
    source = {"document": str(log_in_tome.resolve()), "passage": pieces[0]["id"], "position": 0}
    assert pieces[0]["sources"] == [source]
    assert pieces[0]["rewrite"] is None


def test_a_piece_that_a_rewritten_question_brought_says_so(command, here):
    rows = [json.dumps({"id": each.id, "title": each.title, "text": each.text}) for each in DOCUMENTS]
    (here / "rows.jsonl").write_text("\n".join(rows))
    assert command("add", here / "rows.jsonl").code == 0
    pieces = json.loads(command("search", QUESTION, "--json").out)
    assert find_rewrite(pieces) == {"text": REWRITE, "name": "finland", "source": "Signmark"}
    lines = command("search", QUESTION).out.splitlines()
    giver = 1 + [piece["title"] for piece in pieces].index("Signmark")
    shown_after = " ".join(line.strip() for line in lines).partition("asked again: ")[2]
    assert shown_after.startswith(f"“{REWRITE}”, “finland” from {giver}")
    assert "asked again" not in command("search", QUESTION, "-s", "hybrid:without rewriting").out
    for shown in (command("ask", QUESTION, "--trace"), command("log", "1")):
        assert f"asked again: “{REWRITE}”" in " ".join(shown.out.split())


def test_evidence_from_derived_layers_names_its_passages(command, log_in_tome):
    assert command("search", "light", "-s", "raptor").code == 4
    assert command("build", "-s", "raptor").code == 0
    pieces = json.loads(command("search", "light", "-s", "raptor", "--json").out)
    assert {piece["layer"] for piece in pieces} <= {"passages", "tree"}
    assert all(piece["sources"] for piece in pieces)


def test_it_refuses_a_query_without_words_and_a_limit_of_nothing(command, log_in_tome):
    assert command("search", " ").code == 2
    assert command("search", "light", "--limit", "0").code == 2


def test_a_system_that_cannot_search_says_so_before_it_is_built(command, log_in_tome):
    ran = command("search", "light", "--system", "comorag")
    assert (ran.code, ran.out) == (2, "")
    assert "comorag has no retriever of its own" in ran.err


def test_it_looks_into_one_document(command, log_in_tome):
    ran = command("search", "put out the light", "--document", "more.txt")
    assert ran.out.splitlines()[0] == "within more.txt"
    assert LOG not in ran.out
    ran = command("search", "light", "--document", "mroe.txt")
    assert ran.code != 0
    assert "did you mean 'more.txt'" in ran.err


def test_a_question_is_narrowed_by_metadata(command, here):
    rows = [{"id": "a", "text": LOG, "year": 1911}, {"id": "b", "text": "Tom Hale put out the light.", "year": 1950}]
    (here / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert command("add", here / "rows.jsonl").code == 0
    asked = command("ask", "Who put out the light?", "--where", "year<1950", "--where", "year!=1900")
    assert "within year<1950, year!=1900" in asked.out
    assert "Ada Marsh" in asked.out
    answer = json.loads(command("ask", "Who put out the light?", "--where", "year>=1950", "--json").out)
    assert answer["within"]["where"] == [{"field": "year", "operator": ">=", "value": 1950}]
    assert [citation["document"] for citation in answer["citations"]] == ["b"]
    assert "within year<1950" in command("log", "1").out
    empty = command("ask", "Who?", "--where", "year>2000")
    assert "no passage is within the scope (year>2000)" in empty.err
