"""The command `tome search`."""

from __future__ import annotations

import json

import pytest
from tests.bridges import DOCUMENTS, QUESTION, REWRITE, find_rewrite
from tests.terminal.conftest import LOG


@pytest.fixture
def log_in_tome(command, log, here):
    (here / "more.txt").write_text("Tom Hale rowed to the island in May.")
    assert command("add", log, here / "more.txt").code == 0
    return log


def test_it_prints_evidence_for_people_and_json_for_programs(command, log_in_tome):
    ran = command("search", "put out the light")
    assert (ran.code, ran.err) == (0, "")
    assert "passages log.txt, part 1" in ran.out.splitlines()[0]
    assert [part for part in (LOG, "more.txt") if part not in ran.out] == []
    assert "more.txt" not in command("search", "put out the light", "--limit", "1").out
    pieces = json.loads(command("search", "put out the light", "-s", "naive", "--json").out)
    names = {"id", "kind", "layer", "score", "title", "place", "text", "metadata", "sources", "rewrite"}
    assert [set(piece) for piece in pieces] == [names] * 2
    assert (pieces[0]["text"], pieces[0]["rewrite"]) == (LOG, None)
    assert pieces[0]["score"] > pieces[1]["score"]
    source = {"document": str(log_in_tome.resolve()), "passage": pieces[0]["id"], "position": 0}
    assert pieces[0]["sources"] == [source]


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
    for shown in (command("ask", QUESTION, "--trace"), command("log", "1")):
        assert f"asked again: “{REWRITE}”" in " ".join(shown.out.split())
