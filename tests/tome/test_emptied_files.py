"""What `--sync` does with files that were emptied or cannot be read any more, and what it says of the answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.reading.documents import docx, pdf

from tomewise import Tome
from tomewise.errors import UsageError


@pytest.fixture(name="notes")
def make_notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "old").mkdir(parents=True)
    (folder / "a.txt").write_text("The rain fell on the harbour.")
    (folder / "b.pdf").write_bytes(pdf("The mill burned in 1911."))
    (folder / "old" / "c.txt").write_text("Snow fell on the hill.")
    docx(folder / "d.docx")
    return folder


@pytest.fixture(name="tome")
def open_tome(tmp_path: Path):
    with Tome.open(tmp_path / "a.tome", embedder="hash") as tome:
        yield tome


def list_names(tome: Tome) -> list[str]:
    return sorted(Path(record.id).name for record in tome.documents)


def test_what_the_user_emptied_is_forgotten_and_what_cannot_be_read_is_kept_with_the_reason(tome, notes):
    tome.add(notes, sync=True)
    asked = [tome.ask(question) for question in ("When did the mill burn?", "What fell on the hill?", "What rose?")]
    assert all(answer.quotes for answer in asked)
    (notes / "a.txt").write_text(" \n")
    (notes / "b.pdf").write_bytes(b"%PDF-1.4 broken")
    docx(notes / "d.docx").write_bytes(docx(notes / "d.docx").read_bytes())
    report = tome.add(notes, sync=True)
    assert [Path(each).name for each in report.removed] == ["a.txt"]
    ((kept, reason),) = report.kept.items()
    assert kept == str(notes / "b.pdf")
    assert "could not be converted" in reason
    assert list_names(tome) == ["b.pdf", "c.txt", "d.docx"]
    assert tome.documents[kept].text == "The mill burned in 1911."
    assert report.resting
    for number in report.resting:
        quoted = {Path(quote.document).name for quote in tome.traces[number].answer.quotes}
        assert quoted & {"a.txt", "b.pdf"}
    assert asked[0].trace in report.resting
    assert tome.add(notes, sync=True).removed == ()


@pytest.mark.parametrize(
    ("forgets", "left"),
    [("nothing", ["a.txt", "b.pdf", "c.txt", "d.docx"]), ("unreadable", ["c.txt"]), ("emptied", ["b.pdf", "c.txt"])],
)
def test_the_setting_says_which_of_them_are_forgotten(tmp_path, notes, forgets, left):
    with Tome.open(tmp_path / "a.tome", embedder="hash", settings={"sync_forgets": forgets}) as tome:
        tome.add(notes)
        (notes / "a.txt").write_text("")
        (notes / "b.pdf").write_bytes(b"\0")
        docx(notes / "d.docx", "").write_bytes(b"")
        report = tome.add(notes, sync=True)
        assert list_names(tome) == left
        assert {Path(each).name for each in report.kept} == {"a.txt", "b.pdf", "d.docx"} & set(left)


def test_without_sync_nothing_is_forgotten(tome, notes):
    tome.add(notes)
    (notes / "a.txt").write_text("")
    report = tome.add(notes)
    assert (report.removed, report.kept, report.resting) == ((), {}, ())
    assert "a.txt" in list_names(tome)


def test_a_mailbox_and_a_word_file_that_were_emptied_lose_all_their_documents(tome, notes):
    (notes / "e.mbox").write_bytes(b"From a\nSubject: rain\n\nOne.\n\nFrom b\nSubject: snow\n\nTwo.\n")
    tome.add(notes)
    (notes / "e.mbox").write_bytes(b"")
    (notes / "d.docx").write_bytes(docx(notes / "x.zip").read_bytes())
    (notes / "x.zip").unlink()
    emptied = docx(notes / "d.docx").read_bytes()
    assert emptied
    report = tome.add(notes, sync=True)
    assert [Path(each).name for each in report.removed] == ["e.mbox#1", "e.mbox#2"]


def test_another_word_is_no_setting(tmp_path):
    with pytest.raises(UsageError, match="sync_forgets"):
        Tome.open(tmp_path / "a.tome", settings={"sync_forgets": "all"})


def test_the_command_says_it_in_lines(command, notes, monkeypatch):
    command("add", "--sync", str(notes))
    command("ask", "What fell on the harbour?")
    (notes / "a.txt").write_text("")
    (notes / "b.pdf").write_bytes(b"\0")
    ran = command("add", "--sync", str(notes))
    assert "removed 1 document, no longer there: a.txt\n" in ran.out
    assert "kept the former text of b.pdf: " in ran.out
    assert "1 answer of `tome log` quotes what is no longer there: 1\n" in ran.out
    assert json.loads(command("add", "--sync", str(notes), "--json").out)["kept"].keys() == {str(notes / "b.pdf")}
    monkeypatch.setenv("TOMEWISE_SYNC_FORGETS", "unreadable")
    assert "removed 1 document, no longer there: b.pdf\n" in command("add", "--sync", str(notes)).out


def test_a_folder_that_may_not_be_read_keeps_what_was_in_it(tome, notes, monkeypatch):
    tome.add(notes)
    listed = Path.iterdir

    def refuse(path: Path):
        if path.name == "old":
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", refuse)
    report = tome.add(notes, sync=True)
    assert report.kept == {str(notes / "old" / "c.txt"): "Permission denied"}
    assert (report.removed, "c.txt" in list_names(tome)) == ((), True)
