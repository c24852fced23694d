"""What reaches a terminal: no sequence but Rich's own, and no direction that stays turned."""

from __future__ import annotations

import io
import json
import logging
import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tomewise.terminal.cleaning import CleanStream, clean, clean_json, clean_streams, find_raw
from tomewise.terminal.screen import console

ATTACK = "a\x1b]52;c;ZXZpbA==\x07b\x1b[2Jc\x9b31md\x00e\u202ef\u2066g\x7fh"
CLEAN = "a\ufffd]52;c;ZXZpbA==\ufffdb\ufffd[2Jc\ufffd31md\ufffdefg\ufffdh"
ODD = st.text(st.sampled_from("ab\n\t\r\x1b[]0;m\x07\x85\x9b\x7f\u200f\u202a\u202c\u202e\u2066\u2069\u05d0"))


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def is_clean(text: str) -> bool:
    return all(sign in "\n\t" or sign.isprintable() or sign == "\u200f" for sign in text)


@settings(max_examples=50)
@given(ODD)
def test_all_that_is_obeyed_goes_and_the_rest_stays(text):
    cleaned = clean(text)
    assert is_clean(cleaned)
    assert clean(cleaned) == cleaned
    kept = [sign for sign in text.replace("\r\n", "\n") if is_clean(sign)]
    assert [sign for sign in cleaned if sign != "\ufffd"] == kept


@settings(max_examples=50)
@given(ODD)
def test_json_means_the_same(text):
    line = clean_json(json.dumps({text: [text]}, ensure_ascii=False))
    assert is_clean(line)
    assert json.loads(line) == {text: [text]}


def test_ordinary_text_stays_as_it_is():
    for text in ("Zoë\n\t“quoted” 北京 👩‍🚀", "\u05e9\u05dc\u05d5\u05dd \u200fx", ""):
        assert clean(text) is text
    assert clean("one\r\ntwo\x1b") == "one\ntwo\ufffd"


def test_a_stream_cleans_all_ways_of_writing():
    raw = Terminal()
    stream = CleanStream(raw)
    print(ATTACK, file=stream, flush=True)
    stream.writelines([ATTACK, "\n"])
    assert raw.getvalue() == f"{CLEAN}\n" * 2
    stream.write("\r 1 of 2\r 2 of 2\r\n")  # the bar of a library
    assert raw.getvalue().endswith("\n 1 of 2\n 2 of 2\n")
    assert not hasattr(stream, "buffer")
    assert (stream.encoding, stream.isatty(), stream.writable()) == ("utf-8", True, True)
    assert find_raw(CleanStream(stream)) is raw
    stream.close()
    assert not raw.closed


@pytest.mark.parametrize("is_terminal", [True, False])
def test_what_is_wrapped(monkeypatch, is_terminal):
    """A pipe of standard output gets data as it is; messages are clean everywhere."""
    out, err = (Terminal() if is_terminal else io.StringIO() for _ in range(2))
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    with clean_streams(), clean_streams():
        print(ATTACK)
        logging.lastResort.handle(logging.makeLogRecord({"msg": ATTACK}))  # of a library that nobody set up
        console().print(ATTACK, markup=False)
    assert (sys.stdout, sys.stderr) == (out, err)
    assert err.getvalue() == f"{CLEAN}\n"
    data, shown = out.getvalue().splitlines() if is_terminal else out.getvalue().rsplit("\n", 2)[:2]
    assert data == (CLEAN if is_terminal else ATTACK)
    assert shown == CLEAN.replace("=\ufffd", "=")  # Rich leaves the bell out


def test_colours_of_rich_pass_and_links_do_not_and_tables_are_clean(monkeypatch):
    table = Table(ATTACK, title=ATTACK, caption=ATTACK)
    table.add_row(Text(ATTACK))
    raw = Terminal()
    monkeypatch.setattr("sys.stdout", raw)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with clean_streams():
        console().print(f"[bold]{ATTACK}[/bold] [link=https://models.example]here[/link]")
        console().print(Panel(table, title=Text(ATTACK)), style="bold")
    assert raw.getvalue().startswith("\x1b[1m")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", raw.getvalue())
    assert is_clean(shown)
    assert "\ufffd]52" in shown
    assert "models.example" not in raw.getvalue()
