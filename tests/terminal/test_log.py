"""`tome log`: list, show, delete, ask again."""

from __future__ import annotations

import json

import pytest

QUESTION = "Who put out the light?"
OPTIONS = ("--option", "the doctor", "--option", "Ada Marsh, the keeper")


@pytest.fixture
def two_questions(command, here):
    """Two questions: 1, and 2 with options and settings."""
    (here / "log.txt").write_text("The keeper, Ada Marsh, put out the light at nine. Nobody asked her why.")
    assert command("add", "log.txt").code == 0
    assert command("ask", "Who hid the map?").code == 0
    assert command("ask", QUESTION, *OPTIONS, "--instructions", "Be brief.", "-s", "naive limit=3").code == 0


def test_without_a_question_it_says_so(command, here):
    (here / "a.txt").write_text("The keeper put out the light.")
    command("add", "a.txt")
    assert "no question is kept yet" in command("log").out
    assert json.loads(command("log", "--json").out) == []


def test_it_lists_the_newest_first(command, two_questions):
    traces = json.loads(command("log", "--json").out)
    assert [(trace["id"], trace["question"]) for trace in traces] == [(2, QUESTION), (1, "Who hid the map?")]
    assert [trace["id"] for trace in json.loads(command("log", "--limit", "1", "--json").out)] == [2]
    lines = command("log").out.splitlines()
    assert QUESTION in lines[1]
    assert "Who hid the map?" in lines[2]


def test_it_shows_one_with_its_events_and_usage(command, two_questions):
    trace = json.loads(command("log", "2", "--json").out)
    assert (trace["question"], trace["choice"], trace["system"]) == (QUESTION, "B", "naive limit=3")
    assert (trace["options"], trace["instructions"]) == (["the doctor", "Ada Marsh, the keeper"], "Be brief.")
    assert trace["events"][0]["summary"] == "found: 1, cut: 0"
    assert trace["usage"]["calls"] == trace["usage"]["roles"]["answer"]["calls"] == 1
    shown = command("log", "2").out
    for part in (QUESTION, "A. the doctor", "0 retrieved found: 1, cut: 0", "→ option B", "naive limit=3", "1 call"):
        assert part in shown
    assert "nothing here seems to answer this" in command("log", "1").out


def test_it_deletes_one_and_does_not_use_its_number_again(command, two_questions):
    assert command("log", "2", "--delete").code == 0
    assert [trace["id"] for trace in json.loads(command("log", "--json").out)] == [1]
    missing = command("log", "2")
    assert (missing.code, missing.out) == (2, "")
    assert "holds no trace 2: `tome log`" in missing.err
    assert command("log", "2", "--delete").code == 2
    command("ask", QUESTION)
    assert [trace["id"] for trace in json.loads(command("log", "--json").out)] == [3, 1]


def test_it_asks_one_again_with_the_same_system_and_settings(command, two_questions):
    answer = json.loads(command("log", "2", "--again", "--json").out)
    assert (answer["choice"], answer["system"]) == ("B", "naive limit=3")
    first, second = (json.loads(command("log", number, "--json").out) for number in ("2", "3"))
    for name in ("question", "options", "instructions", "force", "system", "text"):
        assert first[name] == second[name]
    assert "→ option B" in command("log", "2", "--again").out


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--delete",), "--delete needs the number"),
        (("--again",), "--again needs the number"),
        (("1", "--again", "--delete"), "exclude each other"),
        (("0",), "greater than or equal to 1"),
    ],
)
def test_wrong_calls_are_refused(command, two_questions, arguments, part):
    ran = command("log", *arguments)
    assert ran.code == 2
    assert part in ran.err


def test_the_setting_bounds_a_trace(command, two_questions, here, monkeypatch):
    monkeypatch.setenv("TOMEWISE_TRACE_BYTES", "6500")
    (here / "long.txt").write_text(
        " ".join(f"The keeper of light {number} rowed to the island." for number in range(300))
    )
    assert command("add", "long.txt").code == 0
    command("ask", QUESTION)
    cut = json.loads(command("log", "3", "--json").out)["cut"]
    assert cut[0].startswith("texts of evidence after")
    assert "cut, to keep the trace small" in command("log", "3").out
