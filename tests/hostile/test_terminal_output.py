"""What others wrote reaches a terminal through every command, and obeys nothing there: no sequence, no turned letters.

Sequences here write to the clipboard, clear the screen, set the title and colours; U+202E and U+2066 turn what follows.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import warnings

import pytest
from tests.language.openai_server import OpenAIServer, fail_with, in_turn, reply_with
from tests.terminal.pseudo_terminal import on_terminal

from tomewise.tome.tome import Tome
from tomewise.types import Document

ATTACK = "x\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b]0;title\x1b\\\x9b35m\x1b[38;5;201m\x08\x7f\u202egpj.exe\u2066y"
TEXT = f"The keeper, Ada Marsh{ATTACK}, put out the light at nine. Tom Reed asked her why. "
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # what Rich itself writes on a terminal
_OBEYED = re.compile(r"[^\n\t\x20-\x7e\xa0-\u2029\u202f-\u2065\u206a-\uffff\U00010000-\U0010ffff]")
QUOTES = [{"label": "E1", "quote": "put out the light at nine"}]
REPLY = {"reasoning": ATTACK, "supported": "full", "answer": f"Ada Marsh {ATTACK} did.", "quotes": QUOTES}


def assert_obeys_nothing(shown: str) -> None:
    assert "38;5;201" not in "".join(_COLOUR.findall(shown)), "a colour of the text, not of Rich"
    assert _OBEYED.findall(_COLOUR.sub("", shown)) == []


@pytest.fixture
def at_terminal(command, monkeypatch):
    """The command, with standard output as a terminal."""

    def run(*words: object):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        return command(*words)

    monkeypatch.setenv("TERM", "xterm-256color")
    return run


@pytest.fixture(scope="module")
def tome_file(tmp_path_factory):
    """A tome in which everything that can have a text has the attack."""
    path = tmp_path_factory.mktemp("hostile") / "memory.tome"
    with Tome.open(path, embedder="hash") as tome:
        tome.add(Document(id=f"id{ATTACK}", title=f"Log {ATTACK}", text=TEXT * 3, metadata={f"f{ATTACK}": ATTACK}))
        tome.add(Document(id="plain", text=TEXT * 2))
        tome.build("associative")
        tome.sessions["s"].ask(f"Who put out the light {ATTACK}?", system="hybrid")
        tome.ask(f"Who put out the light {ATTACK}?", options=[f"Ada {ATTACK}", f"Tom {ATTACK}"])
    return path


@pytest.fixture
def hostile(tome_file, here):
    """The folder to be in, with a copy of that tome."""
    shutil.copy(tome_file, here)
    return here


# A stands for the attack, and so it does in the names of the tests.
COMMANDS = """
show | show --json | show plain | show plain --json | show --entity Ada | show A | export | --tome A show
search light | search light --json | search A | --debug show A
ask light? --trace | ask light? --trace --json | ask Who? --where A=1 | ask Who? --system A | ask Who? --document A
ask Who? --model openai:A | ask Who? --A
log | log 1 | log 1 --json | log 1 --again | log A
sessions | sessions --json | sessions s | sessions s --delete | sessions A --delete
build --system raptor --estimate | build --system A | build --again A | build --extractions A
add A.txt | add . | add . --json | add plain.txt noA --prefix A
remove id* | remove A | remove idA --yes | remove plain --yes --json
config | config set A 1 | config set tome A | config set base_url A | trust A | systems A | models A
eval show A | eval report A | eval run A --data A | mcp --config --tome A | serve A | A | --A
"""


@pytest.mark.parametrize("words", [line.strip() for line in re.split(r"[|\n]", COMMANDS) if line.strip()])
def test_no_command_passes_it_on(at_terminal, hostile, words):
    (hostile / f"f{ATTACK.replace('/', '')}.txt").write_text(TEXT)
    (hostile / f"b{ATTACK.replace('/', '')}.txt").write_bytes(b"\0\1")
    ran = at_terminal(*(re.sub(r"A(?!da)", lambda _: ATTACK, word) for word in words.split()))
    assert ran.out + ran.err
    assert_obeys_nothing(ran.out)
    assert_obeys_nothing(ran.err)


def test_what_is_for_people_is_clean_in_a_pipe_too_and_data_reaches_it_as_it_is(command, hostile):
    """A program gets the text that was stored; JSON has escapes in it that mean the same."""
    for words in (("show",), ("ask", "Who put out the light?"), ("log", "1"), ("remove", f"id{ATTACK}", "--yes")):
        ran = command(*words)
        assert ran.code == 0
        assert_obeys_nothing(ran.out + ran.err)
    assert command("show", "plain").out == TEXT * 2 + "\n"
    line = command("show", "plain", "--json").out
    assert json.loads(line)["text"] == TEXT * 2
    assert_obeys_nothing(line)


@pytest.mark.parametrize("debug", [(), ("--debug",)])
@pytest.mark.parametrize("status", [400, 401, 404, 418])
def test_the_error_of_a_server(at_terminal, hostile, monkeypatch, status, debug):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with OpenAIServer(in_turn(fail_with(status, ATTACK))) as server:
        words = ("ask", "Who?", "--fresh", "--model", "openai:test", "--base-url", server.url)
        ran = at_terminal(*debug, *words)
    assert ran.code == 6
    assert "gpj.exe" in ran.err
    assert_obeys_nothing(ran.err)


def test_a_folder_s_settings(at_terminal, hostile):
    for line in (json.dumps(ATTACK), f"model = {json.dumps(ATTACK)}", f"[models]\nanswer = {json.dumps(ATTACK)}"):
        (hostile / "tomewise.toml").write_text(line if "=" in line else f"{line} = 1")
        for words in (("show",), ("config",)):
            ran = at_terminal(*words)
            assert_obeys_nothing(ran.out + ran.err)


def test_a_warning(at_terminal, hostile, monkeypatch):
    def show_with_warning(*_, **__):
        warnings.warn(ATTACK, stacklevel=1)
        print(ATTACK, file=sys.stderr)
        raise RuntimeError(ATTACK)

    monkeypatch.setattr("tomewise.tome.holdings.read_contents", show_with_warning)
    ran = at_terminal("--debug", "show")
    assert ran.err.count("gpj.exe") >= 4
    assert_obeys_nothing(ran.err)


def test_a_real_terminal_while_the_work_is_shown(hostile):
    """The answer as it grows, the notice of a retry and the error come through what is drawn above the line."""
    replies = in_turn(fail_with(503, ATTACK, retry_after="0"), reply_with(json.dumps(REPLY)))
    with OpenAIServer(replies) as server:
        words = ("ask", "Who put out the light?", "--fresh", "--trace", "--model", "openai:test")
        with on_terminal(*words, "--base-url", server.url, OPENAI_API_KEY="k") as run:
            assert run.end() == 0
    assert "gpj.exe" in run.raw
    moves = re.compile(r"\x1b\[(\?25[lh]|[0-9]*A|2K|1A)|\r")  # the cursor, which Rich moves
    assert_obeys_nothing(moves.sub("", run.raw))
