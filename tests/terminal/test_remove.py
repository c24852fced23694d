"""`tome remove`: whole names alone, and a question before what was paid for goes."""

from __future__ import annotations

import io
import json

import pytest
from tests.tome.paid_tome import pretend_paid

LOG = "The keeper, Ada Marsh, put out the light at nine. Tom Reed met Ada Marsh at the harbour in May."


@pytest.fixture
def files(command, here):
    """A tome of files, two of them in a folder."""
    (here / "notes").mkdir()
    for name in ("a.txt", "b.txt", "notes/x.txt", "notes/y.txt"):
        (here / name).write_text(f"{name}: {LOG}")
    command("add", "a.txt", "b.txt", "notes")
    return here


@pytest.fixture
def type_reply(monkeypatch):
    """Stand at a terminal and type this."""

    def reply(text: str) -> None:
        answers = io.StringIO(text)
        monkeypatch.setattr("sys.stdin", answers)
        monkeypatch.setattr(answers, "isatty", lambda: True, raising=False)

    return reply


def count_documents(command) -> int:
    return len(json.loads(command("show", "--json").out)["documents"])


@pytest.mark.parametrize("name", ["not", "a.tx", "x.txt", "otes/x"])
def test_a_part_of_a_name_removes_nothing(command, files, name):
    for words in ((), ("--yes",)):
        ran = command("remove", name, *words)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert "did you mean" in ran.err
    assert count_documents(command) == 4


def test_whole_names_need_no_question_without_a_terminal(command, files):
    ran = command("remove", "a.txt", str(files / "notes" / "x.txt"), "a.txt", "--json")
    assert [json.loads(line)["document"] for line in ran.out.splitlines()] == [
        str(files / "a.txt"),
        str(files / "notes" / "x.txt"),
    ]
    assert count_documents(command) == 2


@pytest.mark.parametrize(("name", "count"), [("notes", 2), ("*.txt", 4), ("notes/*", 2), ("[a]*", 1)])
def test_a_folder_and_a_pattern_need_yes(command, files, name, count):
    ran = command("remove", name)
    assert (ran.code, ran.out) == (2, "")
    assert f"this would remove {count} document" in ran.err
    assert "give --yes" in ran.err
    assert count_documents(command) == 4
    assert command("remove", name, "--yes").code == 0
    assert count_documents(command) == 4 - count


def test_memory_that_was_paid_for_needs_yes(command, files):
    command("build", "--system", "read_agent")
    free = command("remove", "a.txt")
    assert (free.code, "derived memor" in free.out) == (0, True)
    pretend_paid(files / "memory.tome")
    ran = command("remove", "b.txt")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "made by openai:test" in ran.err
    assert count_documents(command) == 3
    assert command("remove", "b.txt", "--yes").code == 0


@pytest.mark.parametrize(("reply", "left"), [("y\n", 3), ("n\n", 4), ("", 4)])
def test_a_person_is_shown_what_goes_and_asked(command, files, type_reply, reply, left):
    command("build", "--system", "read_agent")
    pretend_paid(files / "memory.tome")
    type_reply(reply)
    ran = command("remove", "a.txt")
    shown = ran.err + ran.out
    assert str(files / "a.txt") in shown
    assert "This removes 1 document, 1 passage and" in shown
    assert "made by openai:test" in shown
    assert "Remove it?" in shown
    assert count_documents(command) == left


def test_many_documents_are_counted_and_not_all_listed(command, here, type_reply):
    rows = [json.dumps({"id": f"row-{number:03}", "text": f"{LOG} {number}"}) for number in range(60)]
    (here / "rows.jsonl").write_text("\n".join(rows))
    command("add", "rows.jsonl")
    type_reply("n\n")
    ran = command("remove", "row-*")
    assert "row-049" in ran.err
    assert "row-050" not in ran.err
    assert "… and 10 more" in ran.err
    assert "Remove them?" in ran.err + ran.out
