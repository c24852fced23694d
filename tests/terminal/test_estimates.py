"""What `tome build --estimate` says of a build, and of the same build with more passages in a call."""

from __future__ import annotations

import json

import pytest

TEXTS = [f"The keeper, Ada Marsh, saw boat number {number} at Skerry in May 1911." for number in range(8)]
MODEL = ("--model", "openai:test", "--base-url", "http://127.0.0.1:9/v1")  # nothing is asked, so nothing listens


@pytest.fixture(autouse=True)
def corpus(command, here, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (here / "story.txt").write_text("\n\n".join(" ".join([text] * 12) for text in TEXTS))
    assert command("add", "story.txt").code == 0


def estimate(command, system, *options):
    return json.loads(command("build", "--system", system, "--estimate", "--json", *options).out)


def test_an_estimate_shows_what_several_passages_in_a_call_save(command):
    costs = estimate(command, "associative", *MODEL)
    resized = estimate(command, "associative together=4", *MODEL)
    assert costs["instead"] == {"system": "associative together=4", "total": resized["total"]}
    assert resized["instead"] == {"system": "associative together=1", "total": costs["total"]}
    assert resized["total"]["calls"] < costs["total"]["calls"]
    assert resized["total"]["input_tokens"] < costs["total"]["input_tokens"]
    shown = " ".join(command("build", "--system", "associative", "--estimate", *MODEL).out.split())
    assert f"--system 'associative together=4' takes {resized['total']['calls']} calls" in shown


@pytest.mark.parametrize(
    ("system", "options"),
    [("associative", ()), ("associative extraction=relations", MODEL), ("hgmem", MODEL), ("hybrid", MODEL)],
)
def test_nothing_is_compared_where_calls_are_free_or_hold_one_passage(command, system, options):
    assert "instead" not in estimate(command, system, *options)
