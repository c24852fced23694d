"""An answer names what lies in its scope and was not read, in every door, and only where it touches the question."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.reading.documents import draw_pdf
from tests.reading.test_pdf import IMAGE, RAIN

from tomewise import Document, Tome
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import BadReply
from tomewise.language.extractive import ExtractiveModel
from tomewise.server.mcp_results import AnswerResult
from tomewise.server.openai_api import write_answer
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Answer, read_plain
from tomewise.types.proof import write_html

QUESTION = "Where did the rain fall?"
SCANNED = "1 partly scanned document (b.pdf: p. 2, 3): recognise the text (OCR) and `tome add` again"
FILES = "1 unread file (d.pdf: is scanned): mend and `tome add` again, or `--exclude`"
LEFT_OUT = "2 unread files (c.bin: has the unsupported suffix '.bin', d.pdf: is scanned): "
LEFT_OUT += "mend and `tome add` again, or `--exclude`"


@pytest.fixture(name="notes")
def make_notes(tmp_path: Path) -> Path:
    """A folder with a text and a PDF whose last pages are scanned; below it are a text, and two files without text."""
    folder = tmp_path / "notes"
    (folder / "new").mkdir(parents=True)
    (folder / "a.txt").write_text("The rain fell on the harbour.")
    (folder / "b.pdf").write_bytes(draw_pdf(RAIN, IMAGE, IMAGE))
    (folder / "new" / "c.bin").write_bytes(b"\0")
    (folder / "new" / "d.pdf").write_bytes(draw_pdf(IMAGE))
    (folder / "new" / "e.txt").write_text("Snow fell on the hill.")
    (folder / ".hidden").write_text("x")
    return folder


@pytest.fixture(name="tome")
def open_tome(tmp_path: Path):
    model = ScriptedModel({}, others=ExtractiveModel(HashEmbedder()))
    with Tome.open(tmp_path / "a.tome", embedder="hash", model=model) as tome:
        yield tome


def list_unread(tome) -> list[str]:
    return list(map(str, tome.ask(QUESTION).coverage.unread))


def test_scanned_pages_and_files_left_out_are_named_with_what_mends_them(tome, notes):
    tome.add(notes)
    assert list_unread(tome) == [SCANNED, FILES]
    assert tome.ask(QUESTION).coverage.remark == f"Not in this answer: {SCANNED}; {FILES}."


def test_nothing_is_said_where_all_was_read_or_left_out_by_choice(tome, notes):
    (notes / "b.pdf").unlink()
    tome.add(notes, exclude=["c.bin", "d.pdf"])
    assert tome.ask(QUESTION).coverage.remark == ""


def test_a_question_hears_only_of_what_its_scope_touches(tome, notes):
    tome.add(notes)
    assert list_unread(tome.within("a.txt")) == []
    assert list_unread(tome.within("a.txt", "b.pdf")) == [SCANNED]
    assert list_unread(tome.within("notes/new")) == [FILES]
    assert list_unread(tome.within(where="scanned_pages>=3")) == [SCANNED]


def test_what_is_added_again_or_removed_is_no_longer_named(tome, notes):
    tome.add(notes)
    (notes / "b.pdf").write_bytes(draw_pdf(RAIN, RAIN))
    (notes / "new" / "d.pdf").write_bytes(draw_pdf(RAIN))
    tome.add(notes / "b.pdf", notes / "new" / "d.pdf")
    assert list_unread(tome) == []
    (notes / "new" / "c.bin").unlink()
    (notes / "new" / "d.pdf").write_bytes(draw_pdf(IMAGE))
    tome.add(notes)
    assert "(d.pdf: is scanned)" in list_unread(tome)[0], "an older text of it answers"
    tome.add(Document(id="log", text="The rain fell at sea."))
    tome.remove(str(notes))
    assert list_unread(tome) == []


def test_a_model_that_only_quotes_has_no_prompt_in_which_pieces_have_no_room(tmp_path):
    with Tome.open(tmp_path / "a.tome", embedder="hash", model="extractive") as tome:
        tome.add(Document(id="log", text="The rain fell on the harbour.\n\n" * 400))
        assert tome.ask(QUESTION, system="hybrid context=300").coverage.remark == ""


def test_empty_files_and_formats_that_nobody_reads_concern_no_answer(tome, notes):
    for name, data in (("LICENSE", b"Free."), ("e.md", b""), ("blank.txt", b" \n")):
        (notes / name).write_bytes(data)
    tome.add(notes)
    assert tome.ask(QUESTION).coverage.remark == f"Not in this answer: {SCANNED}; {FILES}."
    assert tome.verify("The rain fell.").coverage.remark == f"Not compared with: {SCANNED}; {FILES}."


def test_a_file_that_may_not_be_read_is_named_without_its_path(tome, notes):
    (notes / "a.txt").chmod(0)
    if os.access(notes / "a.txt", os.R_OK):
        (notes / "a.txt").write_bytes(b"\0\1\2")  # everything may be read here
    tome.add(notes / "new", notes)
    (files,) = [each for each in tome.ask(QUESTION).coverage.unread if each.what == "unread file"]
    assert files.count == 2
    assert files.names[0].startswith("a.txt: ")
    assert "/" not in "".join(files.names)


def test_memory_that_lags_is_named(tome):
    tome.add(Document(id="log", text="The rain fell on the harbour.\n\n" * 400))
    tome.build("hipporag2")
    tome.add(Document(id="late", text="The rain fell at sea."))
    answer = tome.ask(QUESTION, system="hipporag2")
    end = "; one of the passages nearest to the question is there" if answer.lagging.nearer else ""
    (late,) = map(str, answer.coverage.unread)
    assert late == f"1 new document (late): `tome build --system hipporag2` takes in what is new{end}"
    assert tome.within("log").ask(QUESTION, system="hipporag2").coverage.unread == ()


def test_pieces_without_room_are_named_where_an_answer_lacks_something_with_what_gives_room(tmp_path):
    replies = [{"answer": "The rain fell on the harbour.", "supported": "full"}, *[{"answer": ""}] * 2]
    model = ScriptedModel({"answer": replies}, window=32_000)
    with Tome.open(tmp_path / "a.tome", embedder="hash", model=model) as tome:
        tome.add(Document(id="log", text="The rain fell on the harbour.\n\n" * 400))
        answer = tome.ask(QUESTION, system="hybrid context=300")
        assert (answer.coverage.dropped > 0, answer.support, answer.remarks) == (True, "quoted", ())
        answer = tome.ask(QUESTION, system="hybrid context=300", fresh=True)
        pieces = f"{answer.coverage.dropped} pieces of what was found had no room in the prompt: "
        assert f"{pieces}it holds 300 tokens of evidence, and `hybrid context=600` shows more." in str(answer)
        model.window = 1_500
        assert (
            tome.ask(QUESTION, system="hybrid", fresh=True)
            .remarks[-1]
            .endswith(": the window of scripted is full, and a model with a larger one is shown more.")
        )


def test_a_step_whose_reply_cannot_be_used_and_memory_of_removed_documents_are_named(tmp_path):
    model = ScriptedModel({"think": [BadReply("no JSON")]}, others=ExtractiveModel(HashEmbedder()))
    with Tome.open(tmp_path / "a.tome", embedder="hash", model=model) as tome:
        tome.add(*(Document(id=f"log{number}", text=f"The rain fell {number} times.") for number in range(4)))
        tome.build("raptor")
        assert list(map(str, tome.ask(QUESTION, system="naive+interleave").coverage.unread)) == [
            "1 failed step: `--fresh` asks the model again"
        ]
        tome.remove("log1")
        (gone,) = tome.ask(QUESTION, system="raptor").coverage.unread
        assert str(gone) == "what was made with removed documents: `tome build --system raptor` makes it again"


def test_a_folder_of_which_nothing_is_added_is_no_part_of_the_tome(tome, tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "d.pdf").write_bytes(draw_pdf(IMAGE))
    report = tome.add(Document(id="log", text="The rain fell at sea."), tmp_path / "bad", keep_going=True)
    assert len(report.losses) == 2
    assert list_unread(tome) == []


def test_every_door_says_the_same_sentence(tome, notes):
    tome.add(notes)
    answer = tome.ask(QUESTION)
    remark = answer.coverage.remark
    assert remark in str(answer)
    assert remark in AnswerResult(answer=answer).write()
    written = (answer.to_markdown(), write_html(answer), write_answer(answer, "a", "http://127.0.0.1")["content"])
    for text in written:
        assert "1 partly scanned document (b.pdf: p. 2, 3)" in text
    assert answer.to_dict()["coverage"]["remark"] == remark
    assert tome.documents.names.hide(answer)["coverage"]["remark"] == remark
    assert read_plain(Answer, answer.to_dict()).coverage == answer.coverage
    assert tome.traces[answer.trace].answer.coverage == answer.coverage


def test_the_command_says_it_of_an_answer_and_of_the_whole_tome(command, notes):
    command("add", str(notes))
    asked, shown = (" ".join(command(*words).out.split()) for words in (("ask", QUESTION), ("show",)))
    assert f"Not in this answer: {SCANNED}; {FILES}." in asked
    assert f"not read: {SCANNED} not read: {LEFT_OUT}" in shown
    assert [each["count"] for each in json.loads(command("show", "--json").out)["unread"]] == [1, 2]


def test_a_database_keeps_it_too(database, notes):
    with Tome.open(f"{database}#notes", embedder="hash", model="extractive") as tome:
        tome.add(notes)
        assert list_unread(tome) == [SCANNED, FILES]
        assert list_unread(tome.within("notes/new")) == [FILES]
        tome.remove(str(notes))
        tome.add(Document(id="log", text="The rain fell at sea."))
        assert list_unread(tome) == []


def test_what_is_left_out_of_a_document_is_said_in_every_door(command, tome, tmp_path):
    pictures = "<img src='a'><img src='b'><iframe></iframe>"
    (tmp_path / "a.html").write_text(f"<p>The rain fell on the harbour.</p>{pictures}")
    (tmp_path / "b.html").write_text("<p>Snow fell on the hill.</p>")
    report = tome.add(tmp_path)
    page = str(tmp_path / "a.html")
    assert report.left_out == {page: "2 pictures and 1 embedded page"}
    assert tome.add(tmp_path).left_out == {}
    sentence = "1 partly read document (a.html: 2 pictures and 1 embedded page): look into the file"
    assert list_unread(tome) == [sentence]
    assert list_unread(tome.within("b.html")) == []
    assert [record.id for record in tome.within(where="left_out!=''").documents] == [page]
    assert tome.documents[page].metadata["left_out"] == ["2 pictures", "1 embedded page"]
    added = command("add", str(tmp_path / "a.html"), str(tmp_path / "b.html"))
    assert "left out of a.html: 2 pictures and 1 embedded page\n" in added.out
    assert sentence in " ".join(command("show").out.split())
    assert "left_out=2 pictures" in command("show").out
    assert command("show", "a.html").err == "left out: 2 pictures and 1 embedded page\n"
