"""`tome add` with several sources, and `tome clean`."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

LOG = "The keeper, Ada Marsh, put out the light at nine. Nobody asked her why."


@pytest.fixture
def files(here):
    for name in ("a.txt", "b.txt", "c.md"):
        (here / name).write_text(f"{name}: {LOG}")
    return here


def test_one_source_that_fails_does_not_stop_the_others(command, files):
    (files / "bad.txt").write_bytes(b"\x00\x01")
    ran = command("add", "a.txt", "bad.txt", "nowhere.txt", "b.txt", "ftp://example.org/page")
    assert ran.code == 3
    assert "added 2 documents: a.txt, b.txt" in ran.out
    *failures, last = ran.err.splitlines()
    assert [line.startswith("tome: failed ") for line in failures] == [True] * 3
    assert "bad.txt" in failures[0]
    assert "nowhere.txt does not exist" in failures[1]
    assert "ftp://example.org/page is an address" in failures[2]
    assert last == "tome: 3 of 5 sources failed; the others are added"
    report = json.loads(command("add", "a.txt", "nowhere.txt", "a.txt", "--json").out)
    assert (len(report["unchanged"]), list(report["failed"])) == (1, ["nowhere.txt"])


def test_where_all_fail_nothing_else_is_said(command, files):
    ran = command("add", "nowhere.txt", "no.txt")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.splitlines()[-1] == "tome: all 2 sources failed; nothing was added"


@pytest.mark.parametrize("words", [["nowhere.txt"], ["nowhere.txt", "no.txt"], ["a.txt", "--embedder", "hsah"]])
def test_a_first_add_that_fails_leaves_no_file(command, files, words):
    assert command("add", *words).code in (2, 3)
    assert sorted(path.name for path in files.iterdir()) == ["a.txt", "b.txt", "c.md"]
    assert command("add", "a.txt").code == 0
    command("remove", "a.txt")
    assert command("add", *words).code in (2, 3, 4)
    assert (files / "memory.tome").exists(), "a tome that was there stays"


def test_sync_says_what_moved_and_what_is_gone(command, files):
    (files / "notes").mkdir()
    for name in ("x.txt", "y.txt"):
        (files / "notes" / name).write_text(f"{name} {LOG}")
    command("add", "notes")
    (files / "notes" / "x.txt").rename(files / "notes" / "z.txt")
    (files / "notes" / "y.txt").unlink()
    ran = command("add", "--sync", "notes")
    assert "moved 1 document: z.txt" in ran.out
    assert "removed 1 document, no longer there: y.txt" in ran.out
    assert "unchanged" not in ran.out


def test_clean_deletes_the_caches_and_show_has_their_size(command, files):
    command("add", "a.txt")
    command("ask", "Who put out the light?")
    size = json.loads(command("show", "--json").out)["cache_bytes"]
    assert size > 0
    assert "of caches" in command("show").out
    assert json.loads(command("clean", "--json").out) == {"freed": size}
    assert json.loads(command("show", "--json").out)["cache_bytes"] == 0
    assert "Ada Marsh" in command("ask", "Who put out the light?").out
    assert "MB of cached arrays" in command("clean").out


def test_a_question_from_standard_input(command, files, monkeypatch):
    command("add", "a.txt")
    asked = [sys.executable, "-m", "tomewise", "ask", "-", "--json"]
    ran = subprocess.run(asked, input="Who put out the light?\n", capture_output=True, text=True, check=True)
    assert "Ada Marsh" in json.loads(ran.stdout)["text"]
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"  ")))
    assert "the question is empty" in command("ask", "-").err


def test_an_address_as_an_id_is_shown_whole(command, files):
    row = {"id": "https://example.org/docs/light/", "text": LOG}
    (files / "rows.jsonl").write_text(json.dumps(row))
    assert "added 1 document: https://example.org/docs/light/" in command("add", "rows.jsonl").out
    assert "https://example.org/docs/light/, part 1" in command("ask", "Who put out the light?").out
