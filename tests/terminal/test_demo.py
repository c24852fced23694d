"""`tome demo`: the bundled story from `add` to cited answers, with what it cost and what to try next."""

from __future__ import annotations

import pytest

from tomewise.embedding.hash import HashEmbedder


@pytest.fixture(autouse=True)
def weightless(monkeypatch):
    monkeypatch.setattr("tomewise.embedding.bundled.BundledMiniLM", HashEmbedder)


def test_the_demo_adds_builds_asks_cites_and_says_what_it_cost(command, here):
    ran = command("demo")
    assert (ran.code, ran.err) == (0, "")
    shown = [line for line in ran.out.splitlines() if line.startswith("$ tome ")]
    assert [line.split()[2] for line in shown] == ["add", "ask", "build", "build", "ask"]
    assert "added 1 document: story.md" in ran.out
    assert "Dabchick" in ran.out
    assert "pages 17 added" in ran.out
    assert ran.out.count("story.md, ch. ") >= 2, "both answers are cited"
    assert "In all 20 calls" in ran.out
    assert "tome add YOUR-FILES" in ran.out
    assert "next:" not in ran.out, "there is one list of what to try, at the end"
    assert list(here.iterdir()) == []


def test_the_demo_spends_nothing_unless_a_model_is_named(command, monkeypatch):
    monkeypatch.setenv("TOMEWISE_MODEL", "openai:gpt-4o-mini")
    monkeypatch.setenv("TOMEWISE_EMBEDDER", "openai:text-embedding-3-small")
    monkeypatch.setenv("TOMEWISE_SYSTEM", "cosmir")
    ran = command("demo")
    assert ran.code == 0
    assert "hybrid · extractive" in ran.out
    assert "nothing left this machine" in ran.out
    asked = command("demo", "--model", "openai:gpt-4o-mini")
    assert asked.code == 6, "a named model is asked, and its key is missing"
    assert "OPENAI_API_KEY" in asked.err


def test_the_demo_keeps_its_tome_where_you_say(command, here):
    ran = command("demo", "-m", "kept.tome", "--trace", "--system", "naive")
    assert ran.code == 0
    assert "tome ask --tome kept.tome" in ran.out
    assert "needs tomewise[server]" in ran.out
    assert "retrieved" in ran.out
    assert "story.md" in command("show", "-m", "kept.tome").out
    again = command("demo", "-m", "kept.tome", "--system", "naive")
    assert again.code == 0
    assert "unchanged 1 document" in again.out
    assert "In all 0 calls" in again.out, "the replies were kept"
    (here / "mine.txt").write_text("My own text.")
    command("add", "mine.txt", "-m", "kept.tome")
    refused = command("demo", "-m", "kept.tome")
    assert (refused.code, refused.out) == (2, "")
    assert "kept.tome holds other documents" in refused.err


def test_a_misspelt_system_is_refused_before_anything_is_added(command):
    ran = command("demo", "--system", "combrag")
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean 'comorag'" in ran.err
