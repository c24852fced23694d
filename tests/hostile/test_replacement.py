"""No document takes the place of another source's, and what a corpus lost is lost here too."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tomewise.errors import ReadingError, UsageError
from tomewise.tome.tome import Tome
from tomewise.types import Document


def corpus(path: Path, **texts: str) -> Path:
    path.write_text("".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items()))
    return path


def read_texts(tome: Tome) -> dict[str, str]:
    return {record.id: tome.documents[record.id].text for record in tome.documents()}


def test_an_id_of_another_corpus_is_refused_and_nothing_of_the_file_is_taken(tome, here):
    first, second = corpus(here / "a.jsonl", x="One.", y="Two."), corpus(here / "b.jsonl", z="Three.", y="Four.")
    tome.add(first)
    for sources in ((second,), (first, second)):
        with pytest.raises(ReadingError) as caught:
            tome.add(*sources)
        assert f"{second}: the id 'y' is that of a document from {first}: " in str(caught.value)
        assert "--prefix NAME" in str(caught.value)
    assert read_texts(tome) == {"x": "One.", "y": "Two."}


def test_two_corpora_with_equal_ids_stay_with_a_prefix_alone(tome, here):
    first, second = corpus(here / "a.jsonl", x="One."), corpus(here / "b.jsonl", x="Two.")
    with pytest.raises(ReadingError, match="the id 'x' is that of a document from"):
        tome.add(first, second)
    assert read_texts(tome) == {"x": "One."}
    assert tome.add(second, prefix="b").added == ("b/x",)
    assert tome.add(second, prefix="b").unchanged == ("b/x",)
    assert tome.add(Document(id="x", text="Three."), prefix="c").added == ("c/x",)
    assert read_texts(tome) == {"x": "One.", "b/x": "Two.", "c/x": "Three."}


@pytest.mark.parametrize("prefix", [" ", "a ", "\0", "\ud800"])
def test_a_prefix_must_be_a_name(tome, here, prefix):
    with pytest.raises(UsageError, match=r"the prefix .* give a plain name"):
        tome.add(corpus(here / "a.jsonl", x="One."), prefix=prefix)


def test_a_row_does_not_take_the_place_of_a_file_nor_a_file_of_a_row(tome, here):
    for name in ("a.txt", "b.txt"):
        (here / name).write_text(f"The file {name}.")
    a, b = str(here / "a.txt"), str(here / "b.txt")
    tome.add(a)
    with pytest.raises(ReadingError, match=r"rows\.jsonl: the id .*a\.txt' is that of a document from .*a\.txt"):
        tome.add(corpus(here / "rows.jsonl", **{b: "A row.", a: "Another row."}))
    tome.add(corpus(here / "rows.jsonl", **{b: "A row."}))
    with pytest.raises(ReadingError, match=r"b\.txt: the id .*b\.txt' is that of a document from .*rows\.jsonl"):
        tome.add(b)
    assert read_texts(tome) == {a: "The file a.txt.", b: "A row."}


def test_a_document_of_a_program_does_not_replace_a_row(tome, here):
    tome.add(corpus(here / "a.jsonl", x="One."))
    with pytest.raises(ReadingError, match=r"memory: the id 'x' is that of a document from .*a\.jsonl"):
        tome.add(Document(id="x", text="Two."))
    tome.add(Document(id="own", text="One."))
    assert tome.add(Document(id="own", text="Two.")).replaced == ("own",)
    assert read_texts(tome) == {"x": "One.", "own": "Two."}


def test_rows_that_a_corpus_lost_are_lost_here_too(tome, here):
    path = corpus(here / "a.jsonl", x="One.", y="Two.", z="Three.")
    tome.add(path, Document(id="own", text="Four."))
    report = tome.add(corpus(path, y="Two.", w="Five."))
    assert (report.removed, report.unchanged, report.added) == (("x", "z"), ("y",), ("w",))
    assert read_texts(tome) == {"y": "Two.", "w": "Five.", "own": "Four."}
    assert {passage.document for passage in tome.store.passages().values()} == {"y", "w", "own"}
    assert tome.add(path).removed == ()


def test_a_row_may_move_to_another_corpus(tome, here):
    first, second = corpus(here / "a.jsonl", x="One.", y="Two."), here / "b.jsonl"
    tome.add(first)
    corpus(first, x="One.")
    report = tome.add(first, corpus(second, y="Two."))
    assert tome.documents["y"].source == str(second)
    assert (report.unchanged, report.removed, report.added + report.replaced) == (("x",), ("y",), ("y",))


def test_a_corpus_that_cannot_be_read_loses_nothing(tome, here):
    path = corpus(here / "a.jsonl", x="One.", y="Two.")
    tome.add(path)
    path.write_text('{"id": "x", "text": "New."}\n{"id": "z"}\n')
    with pytest.raises(ReadingError, match="line 2"):
        tome.add(path)
    assert read_texts(tome) == {"x": "One.", "y": "Two."}


def test_texts_from_standard_input_stay(tome, here, monkeypatch):
    for text in (b"One.", b"Two."):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
        assert tome.add("-").removed == ()
    assert sorted(read_texts(tome).values()) == ["One.", "Two."]


def test_in_a_folder_such_a_corpus_is_passed_over_with_the_reason(tome, here):
    folder = here / "all"
    folder.mkdir()
    corpus(folder / "a.jsonl", x="One.")
    corpus(folder / "b.jsonl", x="Two.")
    (folder / "c.txt").write_text("Three.")
    report = tome.add(folder)
    assert list(report.skipped) == [str(folder / "b.jsonl")]
    assert f"is that of a document from {folder / 'a.jsonl'}" in report.skipped[str(folder / "b.jsonl")]
    assert set(read_texts(tome).values()) == {"One.", "Three."}


def test_the_command_says_what_it_removed_and_puts_a_name_before_ids(command, here):
    path = corpus(here / "a.jsonl", x="One.", y="Two.")
    command("add", path)
    assert "removed 1 document, no longer there: x" in command("add", corpus(path, y="Two.")).out
    other_corpus = corpus(here / "b.jsonl", y="Three.")
    ran = command("add", other_corpus)
    assert (ran.code, str(path) in ran.err, str(other_corpus) in ran.err) == (3, True, True)
    assert json.loads(command("add", other_corpus, "--prefix", "b", "--json").out)["added"] == ["b/y"]


def test_the_command_follows_links_out_of_a_folder_when_told(command, here):
    (here / "in").mkdir()
    (here / "out.txt").write_text("Out.")
    (here / "in" / "a.txt").symlink_to(here / "out.txt")
    ran = command("add", "in")
    assert (ran.code, "is a link to a file outside of the folder" in ran.err) == (3, True)
    assert command("add", "in", "--follow").code == 0
