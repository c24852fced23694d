"""What the command refuses: one line that says what is wrong and what to do, a code, and nothing spent or changed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.language.openai_server import OpenAIServer, reply_with
from tests.patience import NEVER, SOON, wait_until
from tests.texts import prose

from tomewise.store.rights import work_alone
from tomewise.store.sql.schema import FORMAT
from tomewise.tome.tome import Tome

FAR = ("--model", "openai:x", "--base-url", "ftp://nowhere")


def start(*arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", "tomewise", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def interrupt(process):
    """Interrupt the process, which ends soon; return its standard error."""
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=SOON)[1]


def assert_one_line(ran, code, *parts):
    assert (ran.code, ran.out) == (code, ""), ran.err
    assert ran.err.startswith("tome: ")
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err
    assert [part for part in parts if part not in ran.err] == []


@pytest.mark.parametrize(
    ("words", "code", "parts"),
    [
        (("add", "nope.txt"), 3, ["nope.txt does not exist"]),
        (("add", "log.txt", "--embedder", "hash:64"), 4, ["made with embedder hash, not hash:64"]),
        (("ask", "Who?", "--system", "hybird"), 2, ["did you mean 'hybrid'?"]),
        (("ask", "Who?", "--model", "openai:gpt-4o-mini"), 6, ["OPENAI_API_KEY"]),
        (("ask", "Who?", "--model", "gpt-4o-mini"), 2, ["provider:model"]),
        (("ask", "Who?", *FAR), 2, ["ftp://nowhere"]),
        (("ask", "  \n"), 2, ["the question is empty"]),
        (("ask", "Who\udcff?"), 2, [r"'Who\udcff?'"]),
        (("ask", "Which?", "--option", "one"), 2, ["option"]),
        (("ask", "Who?", "--budget", "0 calls"), 7, ["limit of 0 calls"]),
        (("ask", "-c", "--session", "letters", "Who?"), 2, ["--session"]),
        (("build", "-s", "hgmem", "--estimate", "--again", "x"), 2, ["does not count what --again changes", "leave"]),
        (("remove", "nobody"), 2, ["no document 'nobody'", "tome show"]),
        (("show", "--entity", "Ada Marsh"), 4, ["no graph is built in this tome"]),
        (("search", "light", "--system", "raptor"), 4, ["tome build"]),
        (("log", "--delete"), 2, ["--delete needs the number"]),
        (("log", "1", "--again", "--delete"), 2, ["exclude each other"]),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, tuple) else None,
)
def test_what_cannot_be_done_is_refused_before_anything_is_spent(command, log_in_tome, here, words, code, parts):
    before = {path: path.read_bytes() for path in here.rglob("*.*") if path.is_file()}
    assert_one_line(command(*words), code, *parts)
    assert json.loads(command("log", "--json").out) == []
    assert {path for path in here.rglob("*.*") if path.is_file()} == before.keys()
    assert log_in_tome.read_bytes() == before[log_in_tome]


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("ask", "Who?"), 4, "found no tome"),
        (("add", "log.txt", "--embedder", "bundeld"), 2, "'bundled'"),
        (("demo", "--system", "combrag"), 2, "did you mean 'comorag'"),
        (("import", "log.txt"), 4, "log.txt was not imported: "),
        (("import", "none.jsonl"), 2, "cannot be read"),
    ],
)
def test_what_fails_at_first_makes_no_tome_and_fixes_no_settings(command, log, here, words, code, part):
    assert_one_line(command(*words), code, part)
    assert [path.name for path in here.iterdir()] == ["log.txt"]
    assert command("add", log, "--embedder", "hash:64").code == 0
    assert json.loads(command("show", "--json").out)["embedder"] == "hash:64"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("nosuch",), "nosuch"),
        (("ask",), "QUESTION"),
        (("add",), "no PATH is given"),
    ],
)
def test_a_call_that_is_wrong_points_to_the_help(command, words, part):
    assert_one_line(command(*words, embedder=None), 2, part, "--help")


# ---------------------------------------------------------------- tomes that are none, or not free


def write_text(path: Path) -> None:
    path.write_text("I am a text")


def make_another_database(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (x)")


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def raise_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA user_version = {FORMAT + 7}")


def damage(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[:2000] + os.urandom(len(raw) - 2000))


@pytest.mark.parametrize(
    ("spoil", "parts"),
    [
        (write_text, ["memory.tome", "-m"]),
        (make_another_database, ["not a tome"]),
        (make_folder, ["folder"]),
        (raise_version, ["newer", str(FORMAT + 7), "upgrade"]),
        (damage, ["memory.tome"]),
    ],
)
def test_a_file_that_is_no_tome_of_ours_is_named_and_stays(command, log_in_tome, here, spoil, parts):
    path = here / "memory.tome"
    spoil(path)
    before = path.read_bytes() if path.is_file() else None
    for words in (("ask", "Who put out the light?"), ("show",), ("add", "log.txt"), ("remove", "log.txt")):
        assert_one_line(command(*words), 4, *parts)
    assert before == (path.read_bytes() if path.is_file() else None)


def test_a_locked_tome_can_be_asked_and_not_written(command, log_in_tome, here, monkeypatch):
    monkeypatch.setattr("tomewise.store.sql.database.BUSY_SECONDS", 0.1)
    (here / "more.txt").write_text("Tom Hale rowed to the island.")
    with closing(sqlite3.connect(here / "memory.tome", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        assert_one_line(command("add", "more.txt"), 4, "written by another program", "try again")
        assert_one_line(command("remove", log_in_tome), 4, "written by another program")
        asked = command("ask", "Who put out the light?", "--json")
        assert "Ada Marsh" in json.loads(asked.out)["statements"][0]["text"]
        assert "trace" in asked.err
    assert command("add", "more.txt").code == 0


def test_a_second_writer_gets_an_error_at_once(command, log_in_tome):
    with Tome.open("memory.tome") as tome, work_alone(tome.store, "build"):
        assert_one_line(command("add", log_in_tome), 4, "this program has another build under way")
        second_process = start("add", log_in_tome)
        assert "written by another program: try to add again" in second_process.communicate(timeout=SOON)[1]
        assert second_process.returncode == 4


# ---------------------------------------------------------------- a Python that lacks a library

NO_MODULE = "import sys; sys.modules[{!r}] = None"
NO_FTS5 = """
import sqlite3
class Poor(sqlite3.Connection):
    def executescript(self, script):
        if "fts5" in script:
            raise sqlite3.OperationalError("no such module: fts5")
        return super().executescript(script)
connect = sqlite3.connect
sqlite3.connect = lambda *given, **named: connect(*given, **{"factory": Poor, **named})
"""


@pytest.mark.parametrize(
    ("lack", "words", "code", "says"),
    [
        (
            NO_MODULE.format("_ssl"),
            ("ask", "Who?", "--model", "openai:x"),
            5,
            "without SSL: install Tomewise with another",
        ),
        (NO_MODULE.format("_sqlite3"), ("ask", "Who?"), 5, "without SQLite: install Tomewise with another"),
        (NO_FTS5, ("ask", "Who?"), 4, "since it lacks FTS5: install Tomewise with another Python"),
        (NO_FTS5, ("help", "price of it"), 5, "since it lacks FTS5: install Tomewise with another Python"),
    ],
    ids=["ssl", "sqlite", "fts5", "fts5-help"],
)
def test_a_python_without_a_library_is_named(command, log_in_tome, tmp_path, lack, words, code, says):
    (tmp_path / "sitecustomize.py").write_text(lack)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = start(*words, PYTHONPATH=path, OPENAI_API_KEY="a-key-for-this-test")
    out, err = process.communicate(timeout=SOON)
    assert (process.returncode, out, err.count("\n")) == (code, "", 1), err
    assert says in err


# ---------------------------------------------------------------- bugs, and Ctrl-C


def test_a_bug_of_ours_is_one_line_too_and_debug_shows_the_traceback(command, log_in_tome, monkeypatch):
    def raise_bug(*_, **__):
        raise ZeroDivisionError("oops")

    for words in (("--debug", "ask", ""), ("ask", "", "--debug")):
        ran = command(*words)
        assert (ran.code, "Traceback" in ran.err) == (2, True)
        assert ran.err.splitlines()[-1].startswith("tome: the question is empty")
    monkeypatch.setattr("tomewise.systems.registry.Variant.wire", raise_bug)
    assert_one_line(command("ask", "Who?"), 1, "ZeroDivisionError: oops", "--debug")
    ran = command("--debug", "ask", "Who?")
    assert (ran.code, "Traceback" in ran.err) == (1, True)


@pytest.mark.parametrize("after", [0.0, 0.7])
def test_ctrl_c_ends_an_add_and_keeps_what_was_finished(command, here, after):
    (here / "texts").mkdir()
    (here / "texts" / "a.txt").write_text(prose(1))
    (here / "texts" / "b.txt").write_text("abcdefghij " * 1_500_000)
    with Tome.open("memory.tome", embedder="hash") as tome:
        process = start("add", "texts")
        wait_until(tome.documents)
    time.sleep(after)  # to meet it at another step of its work
    err = interrupt(process)
    assert process.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err
    assert "a.txt" in command("show").out
    assert "b.txt" not in command("show").out


def test_ctrl_c_ends_an_ask_of_a_model_that_hangs(log_in_tome):
    with OpenAIServer(lambda _: reply_with("{}", delay=NEVER)) as server:
        process = start("ask", "Who?", "--model", "openai:x", "--base-url", server.url, OPENAI_API_KEY="k")
        assert server.arrived.wait(SOON)
        err = interrupt(process)
    assert process.returncode == 130
    assert err == "tome: interrupted; what was finished is kept\n"
