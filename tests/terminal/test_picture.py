"""`--picture`: a page for an answer and for a stored trace, and what is refused before anything is spent."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.drawn import read_picture

from tomewise.drawing.page import write_page
from tomewise.errors import UnknownName, UsageError
from tomewise.pictures import Picture
from tomewise.tome.tome import Tome

QUESTION = "Who rowed to the island?"


def read_page(file: str) -> Picture:
    found = re.search(r'id="data">(.*?)</script>', Path(file).read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return read_picture(json.loads(found[1]))


@pytest.fixture
def story(command, here):
    (here / "a.txt").write_text(
        "Ada Marsh rowed to the island. The keeper lit the lamp. Ada Marsh saw the keeper. " * 5
    )
    assert command("add", "a.txt", "--passage-tokens", "32").code == 0


@pytest.mark.parametrize("system", ["hybrid+probe", "hybrid+evolve", "cosmir"])
def test_an_answer_is_drawn_and_so_is_its_trace(command, story, system):
    asked = command("ask", QUESTION, "--system", system, "--picture", "a.html", "--json")
    assert asked.code == 0
    assert json.loads(asked.out)["system"] == system
    assert "picture: a.html" in asked.err
    drawn = read_page("a.html")
    assert drawn.about == QUESTION
    assert drawn.kind == ("tree" if system.endswith("probe") else "graph")
    assert any("Ada Marsh rowed" in passage.text and passage.place for passage in drawn.passages)
    assert drawn.missing == ()
    assert command("log", "1", "--picture", "b.html").code == 0
    assert read_page("b.html").nodes == drawn.nodes


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (("ask", QUESTION, "--picture", "a.html"), 2, "hybrid answers without a working memory"),
        (("ask", QUESTION, "-s", "hybrid+probe", "--picture", "no/a.html"), 2, "name a file in a folder that exists"),
        (("log", "--picture", "a.html"), 2, "give its number"),
        (("log", "1", "--again", "--picture", "a.html"), 2, "without --delete and --again"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_any_call(command, story, arguments, code, part):
    ran = command(*arguments)
    assert (ran.code, ran.out) == (code, "")
    assert part in ran.err
    assert json.loads(command("log", "--json").out) == []
    assert not Path("a.html").exists()


def test_a_trace_of_another_loop_is_refused(command, story):
    assert command("ask", QUESTION).code == 0
    ran = command("log", "1", "--picture", "a.html")
    assert ran.code == 2
    assert "without a working memory" in ran.err


def test_layers_are_drawn_from_python(command, story, here):
    with Tome.open(here / "memory.tome") as tome:
        tome.build("hipporag2")
        picture = tome.draw_layer("graph:passages-triples")
        assert picture.nodes
        assert {"Ada Marsh rowed" in passage.text for passage in picture.passages} >= {True}
        assert write_page(picture).startswith("<!doctype html>")
        with pytest.raises(UnknownName, match="'tree' is not built: this tome has graph:passages-triples"):
            tome.draw_layer("tree")
        with pytest.raises(UsageError, match="from 1 to 500"):
            tome.draw_layer("graph:passages-triples", limit=501)
