"""What makes a day easier: going on with the last session, finding a question again, groups of the help."""

from __future__ import annotations

import json
import re

import pytest
from tests.terminal.pseudo_terminal import on_terminal
from tests.texts import prose


@pytest.fixture(name="asked")
def ask_something(command, here):
    (here / "light.txt").write_text("Ada Marsh put out the light at nine. The keeper had gone to the harbour.")
    command("add", "light.txt")
    return command


def test_a_question_goes_on_with_the_last_session(asked):
    assert asked("ask", "-c", "Who put out the light?").code == 0
    assert asked("ask", "--session", "letters", "Where was the keeper?").code == 0
    assert asked("ask", "Who?").code == 0
    second = json.loads(asked("ask", "-c", "And when?", "--json").out)
    assert (second["session"]["name"], second["session"]["number"]) == ("letters", 2)
    asked("sessions", "letters", "--delete")
    third = json.loads(asked("ask", "-c", "And when?", "--json").out)
    assert (third["session"]["name"], third["session"]["number"]) == ("chat-1", 2)
    assert asked("ask", "-c", "--session", "letters", "Who?").code == 2


def test_the_log_is_searched_in_questions_and_answers(asked):
    for question in ("Who put out the light?", "Where was the KEEPER?", "When did it rain?"):
        asked("ask", question)
    found = json.loads(asked("log", "-q", "keeper", "--json").out)
    assert "Where was the KEEPER?" in [row["question"] for row in found]
    assert "When did it rain?" not in [row["question"] for row in found]
    assert len(json.loads(asked("log", "-q", "w", "--limit", "1", "--json").out)) == 1
    assert "no question is kept with 'zebra'" in asked("log", "-q", "zebra").out


def test_the_help_is_in_groups_and_names_every_command(command):
    shown = command("--help").out
    titles = ["Ask", "Memory", "What was asked", "Models, systems and settings", "Serve"]
    places = [shown.index(f"─ {title} ") for title in titles]
    assert places == sorted(places)
    assert shown.index("│ add") < shown.index("│ ask") < shown.index("│ build")
    assert all(re.search(rf"│ {name}\b", shown) for name in ("config", "eval", "clean", "mcp"))


def test_a_trace_names_the_document_and_speaks_plainly(asked, here):
    (here / "story.txt").write_text(prose(3, 40))
    asked("add", "story.txt", "--passage-tokens", "60")
    asked("build", "--system", "comorag")
    shown = asked("ask", "Who put out the light?", "--system", "comorag", "--trace").out
    assert "passage, light.txt" in shown
    assert "in: passages" in shown
    assert not re.search("veridical|support: 0|units:|nodes:", shown)
    logged = asked("log", "1").out
    assert "passage, light.txt" in logged


def test_memory_that_lags_is_told_with_the_build_that_helps(asked, here):
    asked("build", "--system", "hipporag2")
    (here / "late.txt").write_text("Ottilie Brand dredged the harbour in 1931.")
    added = asked("add", "late.txt").out
    assert "What was built does not know 1 document yet: late.txt." in added
    assert "tome build --layer graph:passages-triples: about 1 call" in added
    ran = asked("ask", "Who dredged the harbour?", "--system", "hipporag2")
    assert "does not know 1 document yet: late.txt. One of the passages nearest to the question is there." in ran.out
    assert "tome build --system hipporag2: about 1 call" in ran.err
    found = asked("search", "Who dredged the harbour?", "--system", "hipporag2")
    assert "late.txt" in found.err
    for words in (("ask", "Who?"), ("search", "Who?")):
        refused = asked(*words, "--system", "hipporag2", "--strict")
        assert (refused.code, "not up to date" in refused.err) == (4, True)
    asked("build", "--system", "hipporag2")
    assert "does not know" not in asked("ask", "Who dredged the harbour?", "--system", "hipporag2").out


def test_a_reply_that_was_kept_says_so(asked, monkeypatch):
    from tests.language.openai_server import OpenAIServer, reply_with

    reply = reply_with('{"supported": "full", "answer": "Ada Marsh", "quotes": []}')
    with OpenAIServer(lambda _: reply) as server:
        words = ("ask", "Who put out the light?", "--model", "openai:mine", "--base-url", server.url)
        first, second = asked(*words), asked(*words)
        usage = json.loads(asked(*words, "--json").out)["usage"]
    assert "1 call ·" in first.out
    assert "0 calls and 1 kept reply ·" in second.out
    assert (usage["calls"], usage["kept"]) == (0, 1)


def test_a_chat_edits_lines_and_goes_back_to_earlier_questions(asked, here):
    asked("ask", "--session", "talk", "Who put out the light?")
    with on_terminal("chat", "--session", "talk", TERM="dumb") as run:
        run.wait_for("?")
        run.type("\x1b[A\r")  # the key "up", then Enter
        run.wait_for("question 2")
        run.wait_for("s own\n?")  # the prompt of the next question
        run.type("\x04")
        assert run.end() == 0
    assert not any("^[[A" in line for line in run.lines)
    turns = json.loads(asked("sessions", "talk", "--json").out)["turns"]
    assert [turn["asked"] for turn in turns] == ["Who put out the light?"] * 2
