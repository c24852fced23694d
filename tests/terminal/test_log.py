"""`tome log`: list, find, show, delete, ask again."""

from __future__ import annotations

import pytest

QUESTION = "Who put out the light?"
OPTIONS = ("--option", "the doctor", "--option", "Ada Marsh, the keeper")


@pytest.fixture
def two_questions(command, log_in_tome):
    """Two questions: 1, and 2 with options and settings."""
    assert command("ask", "Who hid the map?").code == 0
    assert command("ask", QUESTION, *OPTIONS, "--instructions", "Be brief.", "-s", "naive limit=3").code == 0


def test_it_lists_the_newest_first(command, two_questions, read_json):
    traces = read_json("log")
    assert [(trace["number"], trace["question"]["text"]) for trace in traces] == [
        (2, QUESTION),
        (1, "Who hid the map?"),
    ]
    assert [trace["number"] for trace in read_json("log", "--limit", "1")] == [2]
    assert [trace["number"] for trace in read_json("log", "-q", "map")] == [1]
    newest, declined = command("log").out.splitlines()[1:]
    assert QUESTION in newest
    assert "“" in newest
    assert " — " in declined


def test_it_shows_one_with_its_events_and_usage(command, two_questions, read_json):
    trace = read_json("log", "2")
    question, answer = trace["question"], trace["answer"]
    assert (question["text"], answer["choice"], answer["system"]) == (QUESTION, "B", "naive limit=3")
    assert (question["options"], question["instructions"]) == (["the doctor", "Ada Marsh, the keeper"], "Be brief.")
    assert answer["cost"]["calls"] == answer["cost"]["roles"]["answer"]["calls"] == 1
    shown = command("log", "2").out
    parts = (QUESTION, "A. the doctor", "0 retrieved found: 1, cut: 0", "→ option B", "naive limit=3", "1 call")
    assert [part for part in parts if part not in shown] == []
    assert "nothing here seems to answer this" in command("log", "1").out


def test_it_deletes_one_and_does_not_use_its_number_again(command, two_questions, read_json):
    assert command("log", "2", "--delete").code == 0
    for words in ((), ("--delete",)):
        missing = command("log", "2", *words)
        assert (missing.code, missing.out, "holds no trace 2: `tome log`" in missing.err) == (2, "", True)
    command("ask", QUESTION)
    assert [trace["number"] for trace in read_json("log")] == [3, 1]


def test_it_asks_one_again_with_the_same_system_and_settings(command, two_questions, read_json):
    answer = read_json("log", "2", "--again")
    assert (answer["choice"], answer["system"]) == ("B", "naive limit=3")
    first, second = (read_json("log", number) for number in ("2", "3"))
    assert first["question"] == second["question"]
    assert all(first["answer"][name] == second["answer"][name] for name in ("system", "text"))
    assert "→ option B" in command("log", "2", "--again").out
