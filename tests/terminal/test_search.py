"""The command `tome search`."""

from __future__ import annotations

import json

import pytest
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
