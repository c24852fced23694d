"""What a person sees: on a terminal of 80 columns, and in pipes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.language.openai_server import OpenAIServer, fail_with, in_turn, reply_with, stream_with
from tests.patience import SOON
from tests.terminal.pseudo_terminal import on_terminal

from tomewise.terminal import work
from tomewise.tome.tome import Tome
from tomewise.types import Document

ANSWER = "The keeper Ada Marsh put out the light at nine, " + "and nobody on the whole island asked her why " * 4
QUOTES = [{"label": "E1", "quote": "put out the light"}]
REPLY = json.dumps({"reasoning": "Secret reasoning.", "supported": "full", "answer": ANSWER, "quotes": QUOTES})
PIECES = [REPLY[at : at + 8] for at in range(0, len(REPLY), 8)]
SPINNERS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
ASK = ("ask", "Who put out the light?")
ASCII_ALONE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture(name="novel")
def make_novel(here: Path) -> Path:
    with Tome.open(here / "memory.tome", embedder="hash") as tome:
        text = "The keeper, Ada Marsh, put out the light at nine. [bold]Nobody[/bold] asked her why. " * 6
        tome.add(Document(id="story", title="A story", text=text))
    return here


@contextmanager
def on_screen(reply, *words, **environment):
    """The command, against a server that replies so, on a terminal."""
    with OpenAIServer(in_turn(*reply) if isinstance(reply, tuple) else in_turn(reply)) as server:
        named = (*words, "--model", "openai:test", "--base-url", server.url)
        with on_terminal(*named, **environment) as run:
            run.server = server
            yield run


def stream(pause=0.0):
    return stream_with(*PIECES, pause=pause)


def assert_tidy(run) -> None:
    """Nothing is left of what was shown meanwhile, and no word is broken."""
    assert run.has_cursor
    assert not any(sign in run.text for sign in SPINNERS), run.text
    assert all(len(line) <= 80 for line in run.lines)
    words = set(re.findall(r"[a-z]{3,}", ANSWER.lower()))
    seen = re.findall(r"[A-Za-z]{3,}", run.text)
    assert words <= {word.lower() for word in seen}


def test_an_answer_grows_and_its_quotations_follow(novel: Path) -> None:
    with on_screen(stream(pause=0.02), *ASK) as run:
        run.wait_for("The keeper Ada Marsh put")
        assert "characters" not in run.text, "the quotations are verified only at the end"
        assert "asking" in run.text
        assert run.end() == 0
    assert "Secret" not in run.raw
    assert_tidy(run)
    assert run.text.count("The keeper Ada Marsh put out the light at nine") == 1
    assert "“put out the light”" in run.text


def test_a_chat_streams_too_edits_lines_and_goes_back_to_earlier_questions(novel: Path) -> None:
    with Tome.open(novel / "memory.tome") as tome:
        tome.sessions["talk"].ask("Who put out the light?")
    rewritten = reply_with('{"question": "Who put out the light?"}')
    with on_screen((rewritten, stream(pause=0.03)), "chat", "--session", "talk") as run:
        run.wait_for("\n?")
        run.type("\x1b[A\r")  # the key "up", then Enter
        run.wait_for("The keeper Ada Marsh put")
        run.wait_for("s own\n?")  # the prompt of the next question
        run.type("\x04")
        assert run.end() == 0
    assert run.has_cursor
    assert not any("^[[A" in line for line in run.lines)
    with Tome.open(novel / "memory.tome") as tome:
        (record,) = tome.sessions
    assert [turn.asked for turn in record.turns] == ["Who put out the light?"] * 2


def test_retries_are_reported(novel: Path) -> None:
    with on_screen((fail_with(503, "come later", retry_after="2"), stream()), *ASK) as run:
        run.wait_for("try 2 of 5 in 2 s, as the server asks: ")
        run.wait_for("come later")
        assert run.end() == 0
    assert_tidy(run)
    assert "try 2" not in run.text


def test_something_is_visible_at_once(here: Path) -> None:
    (here / "a.txt").write_text("The tide turned. " * 20_000)
    with on_terminal("add", "a.txt", TOMEWISE_EMBEDDER="hash") as run:
        run.wait_for("adding 1 source · 0 s")
        assert run.end() == 0
    assert re.search("adding 1 source.*(characters cut|passages embedded)", run.raw, re.DOTALL)
    assert run.lines[0] == "added 1 document: a.txt"
    assert run.has_cursor


def test_an_error_leaves_its_line_alone(novel: Path) -> None:
    failure = fail_with(400, "no such model " + "and a long explanation " * 8)
    with on_screen(failure, "ask", "Who?") as run:
        assert run.end() == 6
    assert run.has_cursor
    assert run.lines[0].startswith("tome: ")
    assert not any(sign in run.text for sign in SPINNERS)


def test_ctrl_c_leaves_one_line(novel: Path) -> None:
    endless = stream_with(*PIECES[:20], finish=None, usage=False, done=False, hold=True)
    with on_screen(endless, *ASK) as run:
        run.wait_for("The keeper")
        run.interrupt()
        assert run.end() == 130
        assert run.server.left.wait(SOON)
    assert run.lines[-1] == "tome: interrupted; what was finished is kept"
    assert len([line for line in run.lines if line]) == 1, run.text
    assert run.has_cursor


def test_pipes_get_plain_lines(novel: Path) -> None:
    with OpenAIServer(in_turn(reply_with(REPLY))) as server:
        ran = subprocess.run(
            [sys.executable, "-m", "tomewise", *ASK, "--trace", "--model", "openai:test", "--base-url", server.url],
            capture_output=True,
            env={**os.environ, **ASCII_ALONE},
            timeout=60,
            check=True,
        )
    for stream in (ran.stdout, ran.stderr):
        assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", stream)
    assert ran.stderr == b""
    assert ANSWER.strip() in ran.stdout.decode()
    assert server.requests[0]["stream"] is False


def test_elsewhere_than_on_a_terminal_a_line_now_and_then_says_how_far_it_is_and_why_it_waits(
    novel: Path, command, monkeypatch
) -> None:
    monkeypatch.setattr(work, "_BETWEEN_LINES", 0.05)
    replies = in_turn(fail_with(429, "slow down", retry_after="1"), reply_with(REPLY, delay=0.3))
    with OpenAIServer(replies) as server:
        ran = command(*ASK, "--json", "--model", "openai:test", "--base-url", server.url)
    assert json.loads(ran.out)["text"] == ANSWER.strip()
    lines = ran.err.splitlines()
    assert all(re.match(r"asking · \d+ s", line) for line in lines), lines
    assert re.search(
        r"^asking · \d+ s · try 2 of 5 in 1 s, as the server asks: .*status 429: slow down$", ran.err, re.MULTILINE
    ), lines


def test_a_terminal_that_shows_ascii_alone_gets_ascii_and_one_without_colour_none(novel: Path) -> None:
    with on_screen(stream(pause=0.02), *ASK, NO_COLOR="1", **ASCII_ALONE) as run:
        assert run.end() == 0
    codes = {code for codes in re.findall(r"\x1b\[([0-9;]+)m", run.raw) for code in codes.split(";")}
    assert codes <= {"0", "1", "2", "22"}, "bold and faint are no colours"
    assert run.raw.isascii()
    assert "\\u28" not in run.raw, "the spinner is drawn in ASCII"
    assert_tidy(run)
