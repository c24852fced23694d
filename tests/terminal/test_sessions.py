"""`tome chat`, `tome sessions`, `tome ask --session`."""

from __future__ import annotations

import io
import json
import sys

import pytest

TEXT = (
    "Ada Marsh put out the light at nine. Tom Hale sold the Heron to Ida Poe. Bo Lind taught Tom Hale to sail in 1880."
)


@pytest.fixture
def talk(command, here, monkeypatch):
    """Run `tome chat` with these lines as its standard input."""
    (here / "log.txt").write_text(TEXT)
    assert command("add", "log.txt").code == 0

    def run(lines: str, *arguments: str):
        monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
        return command("chat", *arguments)

    return run


def test_a_chat_is_a_session_with_a_line_for_each_question(command, talk):
    ran = talk("Who sold the Heron?\n\n  And who taught him to sail?\n")
    assert (ran.code, "session chat-1" in ran.err) == (0, True)
    assert ran.err.count("tome config set model") == 1, "how to set a model is said once"
    assert "Bo Lind" in ran.out
    assert "asked as “Who taught Tom Hale to sail?”" in ran.out
    assert talk("Who sold the Heron?", "--json").code == 0
    rows = json.loads(command("sessions", "--json").out)
    assert rows == [
        {"name": "chat-1", "system": "hybrid", "count": 2},
        {"name": "chat-2", "system": "hybrid", "count": 1},
    ]


def test_ask_goes_on_with_a_session(command, talk):
    talk("Who sold the Heron?", "--session", "heron", "--system", "naive")
    answer = json.loads(command("ask", "And who taught him to sail?", "--session", "heron", "--json").out)
    assert answer["statements"][0]["text"].startswith("Bo Lind taught Tom Hale")
    assert answer["system"] == "naive"
    session = {"name": "heron", "number": 2, "question": "Who taught Tom Hale to sail?"}
    assert answer["session"] == {**session, "notes": [], "passages": [], "dropped": []}
    again = command("log", "2", "--again")
    assert "Bo Lind" in again.out, "it is asked as it was answered, so that it stands alone"
    assert json.loads(command("ask", "Who sold the Heron?", "--json").out)["session"] is None


def test_sessions_are_listed_shown_and_deleted(command, talk):
    talk("Who sold the Heron?\nAnd who taught him to sail?\n", "--session", "heron")
    assert "And who taught him to sail?" in command("sessions").out
    shown = command("sessions", "heron").out
    for part in ("heron hybrid", "1 Who sold the Heron?", "2 And who", "(Who taught Tom Hale to sail?)", "Bo Lind"):
        assert part in shown
    turns = json.loads(command("sessions", "heron", "--json").out)["turns"]
    assert [turn["answer"].split()[:3] for turn in turns] == [["“Tom", "Hale", "sold"], ["“Bo", "Lind", "taught"]]
    assert command("sessions", "heron", "--delete").code == 0
    assert "holds no session 'heron'" in command("sessions", "heron").err
    talk("Who sold the Heron?", "--session", "heron", "--system", "hybrid+evolve")
    assert any("Tom Hale" in note for note in json.loads(command("sessions", "heron", "--json").out)["notes"])


def test_a_question_goes_on_with_the_last_session(command, talk):
    assert command("ask", "-c", "Who sold the Heron?").code == 0
    assert command("ask", "--session", "letters", "Who taught Tom Hale?").code == 0
    assert command("ask", "Who?").code == 0

    def go_on():
        session = json.loads(command("ask", "-c", "And when?", "--json").out)["session"]
        return session["name"], session["number"]

    assert go_on() == ("letters", 2)
    command("sessions", "letters", "--delete")
    assert go_on() == ("chat-1", 2)


def test_a_chat_has_help(talk):
    ran = talk("/help\n")
    assert (ran.code, ran.out) == (0, "")
    assert "One question a line" in ran.err
    assert "/help for more" in ran.err
