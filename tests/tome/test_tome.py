"""`Tome`: adding, removing, what it is made with, several openings, plain code and event loops."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.patience import SOON
from tests.texts import MEETINGS, NOVEL, needs_shared, prose

from tomewise import Document, Tome
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import Locked, ModelError, ReadingError, StoreError, TomewiseError, UnknownName, UsageError
from tomewise.store.lookups import read_setting, read_vectors
from tomewise.store.rights import work_alone
from tomewise.testing.scripted import NotingEmbedder, ScriptedModel
from tomewise.types import Progress

LOG = Document(id="log", text="The keeper, Ada Marsh, put out the light at nine. Nobody asked her why.")
ADDRESS = "mysql://ada:secret@host/database#novels"


def documents(count: int, sentences: int = 12) -> list[Document]:
    return [Document(id=f"d{number}", title=f"Text {number}", text=prose(number, sentences)) for number in range(count)]


def list_export(tome: Tome) -> list[str]:
    return list(tome.memory.export())


# ---------------------------------------------------------------- add and remove


@settings(max_examples=6)
@given(st.text(min_size=1).filter(lambda text: text.strip() and "\0" not in text), st.text().map(str.strip))
def test_adding_and_removing_leaves_what_was_there(tmp_path_factory, text, title):
    with Tome.open(tmp_path_factory.mktemp("remove") / "a.tome", embedder="hash") as tome:
        tome.add(*documents(2))
        before, found = list_export(tome), [piece.id for piece in tome.ask("Who hid the map?").evidence]
        tome.add(Document(id="guest", text=text, title=title.replace("\0", "")))
        assert list_export(tome) != before
        assert tome.documents["guest"].text == text
        tome.remove("guest")
        assert list_export(tome) == before
        assert [piece.id for piece in tome.ask("Who hid the map?").evidence] == found


def test_of_two_versions_in_one_call_the_later_counts(tome):
    report = tome.add(LOG, Document(id="log", text="Ida Poe put out the light."))
    assert (report.added, report.replaced) == (("log",), ("log",))
    assert tome.documents["log"].text.startswith("Ida Poe")


@pytest.mark.parametrize(
    "document",
    [
        Document(id="", text="x"),
        Document(id="x", text=" \n"),
        Document(id="x", text="a\0b"),
        Document(id="x", text="a\ud800b"),
        Document(id="x", text="a", title="\udfff"),
        *(
            Document(id="x", text="a", metadata=metadata)
            for metadata in ({"a": {"b": 1}}, {"a": None}, {1: "a"}, {"a": float("nan")}, {"a": "\0"})
        ),
    ],
    ids=repr,
)
def test_a_document_that_no_file_could_hold(tome, document):
    tome.add(LOG)
    before = list_export(tome)
    with pytest.raises(ReadingError, match=r"replace it|leave it out|'x'"):
        tome.add(document)
    assert list_export(tome) == before


def test_progress_reaches_its_end_and_what_is_unchanged_is_not_embedded_again(here):
    with pytest.raises(UsageError, match="nothing to add"), Tome.open(here / "a.tome", embedder="hash") as tome:
        tome.add()
    embedder = NotingEmbedder()
    seen: list[Progress] = []
    added = (*documents(3), Document(id="long", text=prose(9, 8000)))
    with Tome.open(here / "a.tome", embedder=embedder) as tome:
        report = tome.add(*added, on_progress=seen.append)
        assert len(embedder.texts) == report.passages
        assert tome.add(*added).unchanged == report.added
        assert len(embedder.texts) == report.passages
    last = {progress.label: progress for progress in seen}
    assert last["passages embedded"].done == last["passages embedded"].total == report.passages
    assert last["characters cut"].done == last["characters cut"].total == len(prose(9, 8000))
    assert all(progress.done <= progress.total for progress in seen)


def test_the_first_files_of_a_folder_can_be_asked_while_the_rest_is_added(here):
    folder = here / "notes"
    folder.mkdir()
    for number in range(4):
        (folder / f"{number}.txt").write_text(prose(number, 1200))
    asked = prose(0, 1200)[:200]
    seen: list[tuple[int, int, int]] = []

    def look(progress: Progress) -> None:
        if progress.label == "files of the folder":
            with Tome.open(here / "a.tome", embedder="hash") as second:
                found = second.search(asked, system="bm25") if second.documents() else ()
                assert bool(found) == bool(second.documents())
                seen.append((progress.done, progress.total, len(second.documents())))

    with Tome.open(here / "a.tome", embedder="hash") as tome:
        tome.add(folder, on_progress=look)
    assert [each[:2] for each in seen] == [(done, 4) for done in range(5)]
    assert [count for _, _, count in seen] == [0, 0, 1, 2, 3], "all but the two that were read last"


def test_an_embedder_that_fails_leaves_what_was_finished(here):
    with Tome.open(here / "a.tome", embedder=NotingEmbedder(refused="poison")) as tome:
        with pytest.raises(ModelError):
            tome.add(Document(id="long", text=prose(1, 3000)), Document(id="bad", text="poison"))
        assert [record.id for record in tome.documents()] == ["long"]
        tome.add(LOG)


def test_an_add_that_is_cancelled_keeps_what_was_finished_and_lets_go(here):
    added = [Document(id=str(number), text=prose(number, 800)) for number in range(20)]

    async def cancel_add(tome):
        begun = asyncio.Event()
        adding = asyncio.create_task(tome.aadd(*added, on_progress=lambda _: tome.documents() and begun.set()))
        await begun.wait()
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding

    with Tome.open(here / "a.tome", embedder="hash") as tome:
        asyncio.run(cancel_add(tome))
        assert 0 < len(tome.documents()) <= 20
        tome.add(*added)
        assert len(tome.documents()) == 20


async def test_a_cancelled_removal_holds_the_tome_until_it_has_ended(here, monkeypatch):
    begun, goes_on = threading.Event(), threading.Event()
    async with Tome.open(here / "a.tome", embedder="hash") as tome:
        await tome.aadd(LOG)
        write = tome.store.write

        @contextmanager
        def write_slowly():
            begun.set()
            assert goes_on.wait(SOON)
            with write() as change:
                yield change

        monkeypatch.setattr(tome.store, "write", write_slowly)
        removing = asyncio.create_task(tome.aremove("log"))
        await asyncio.to_thread(begun.wait)
        removing.cancel()
        await asyncio.sleep(0)
        with pytest.raises(Locked, match="another remove under way"):
            await tome.aadd(LOG)
        goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await removing
        assert tome.documents() == [], "the work had ended when the call did"
        await tome.aadd(LOG)


# ---------------------------------------------------------------- what a tome is made with, and in what it is kept


def test_what_a_tome_is_made_with_is_kept_and_refused_otherwise(here):
    path = here / "a.tome"
    with Tome.open(path, embedder="hash:32", settings={"passage_tokens": 50, "overlap": 10}) as tome:
        tome.add(LOG)
    with Tome.open(path) as tome:
        assert tome.kit.embedder.name == "hash:32"
        assert tome.add(Document(id="x", text=prose(3))).passages > 1
    for different in ({"embedder": "hash"}, {"passage_tokens": 51}, {"overlap": 0}):
        with pytest.raises(StoreError, match="was made with"):
            Tome.open(path, settings=different)
    with pytest.raises(StoreError, match=r"made with embedder hash:32, not hash:33"):
        Tome.open(path, embedder=HashEmbedder(33))


def test_a_tome_without_documents_may_be_made_anew(here):
    path = here / "a.tome"
    Tome.open(path, embedder="hash:32", settings={"passage_tokens": 60}).close()
    with Tome.open(path) as tome:
        assert read_setting(tome.store, "passage_tokens") == "60"
    with Tome.open(path, embedder="hash:48") as tome:
        tome.add(LOG)
        tome.remove("log")
    with Tome.open(path, embedder="hash:96") as tome:
        tome.add(LOG, *documents(3))
        assert read_vectors(tome.store, "passages").rows.shape[1] == 96
        assert "Ada" in tome.ask("Who put out the light?", system="naive").words


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"embedder": "nonsense:x"}, UnknownName),
        ({"passage_tokens": 99_999}, UsageError),
        ({"overlap": 200}, UsageError),
        ({"system": "niave"}, UnknownName),
    ],
    ids=str,
)
def test_a_tome_that_cannot_be_made_leaves_no_file(here, wrong, kind):
    path = here / "a.tome"
    with pytest.raises(kind):
        Tome.open(path, settings={"embedder": "hash", **wrong})
    assert list(here.iterdir()) == []
    with Tome.open(path, embedder="hash") as tome:
        tome.add(LOG)
    with pytest.raises(TomewiseError):
        Tome.open(path, settings={"embedder": "hash", **wrong})
    assert path.exists(), "only a file that the call made goes"


def test_two_that_settle_on_different_embedders_do_not_mix(here):
    with Tome.open(here / "a.tome", embedder="hash:32") as first_tome:
        with Tome.open(here / "a.tome", embedder="hash:64") as second_tome:
            second_tome.add(LOG)
        with pytest.raises(StoreError, match="made with embedder hash:64"):
            first_tome.add(*documents(1))


def test_an_address_without_a_store_is_refused_with_what_it_needs(command, here):
    with pytest.raises(UsageError, match="needs a store for mysql") as refusal:
        Tome.open(ADDRESS)
    assert "secret" not in str(refusal.value)
    for words in (("show",), ("add", "story.md"), ("mcp",)):
        ran = command(*words, "-m", ADDRESS)
        assert (ran.code, "needs a store for mysql" in " ".join(ran.err.split())) == (2, True)
        assert "secret" not in ran.out + ran.err
    assert list(here.iterdir()) == []


# ---------------------------------------------------------------- builds and errors


def test_a_build_with_another_model_says_whose_the_memory_is(here):
    with Tome.open(here / "a.tome", embedder=HashEmbedder(32), model="extractive") as book:
        book.add(*documents(4))
        assert [layer.notes for layer in book.build("hipporag2").layers] == [()]
    model = ScriptedModel({})
    with Tome.open(here / "a.tome", embedder=HashEmbedder(32), model=model) as book:
        (layer,) = book.build("hipporag2").layers
        note = f"extractive built what was there, and it stays; to use {model.name} for all, add to a new tome"
        assert layer.notes == (note,)


# ---------------------------------------------------------------- many tomes, threads, event loops


def test_two_openings_of_one_tome_see_what_the_other_did(here):
    with Tome.open(here / "a.tome", embedder="hash") as first_tome, Tome.open(here / "a.tome") as second_tome:
        first_tome.add(LOG)
        assert "Ada" in second_tome.ask("Who put out the light?").words
        second_tome.add(Document(id="x", text="Ida Poe rang the bell."))
        assert "Ida" in first_tome.ask("Who rang the bell?").words
        with work_alone(first_tome.store, "add"), pytest.raises(Locked):
            second_tome.add(*documents(1))


async def test_plain_methods_work_inside_a_running_loop(tome):
    tome.add(LOG)
    assert "Ada" in tome.ask("Who put out the light?").words
    assert len(tome.ask_many(["Who?", "Why?"])) == 2
    assert tome.remove("log").passages == 1


async def test_async_methods_do_not_block_the_loop(here):
    beats = []

    async def heart():
        while True:
            beats.append(time.perf_counter())
            await asyncio.sleep(0.01)

    async with Tome.open(here / "a.tome", embedder="hash") as tome:
        beating = asyncio.create_task(heart())
        await tome.aadd(*(Document(id=str(n), text=prose(n, 500)) for n in range(4)))
        answers = await tome.aask_many([f"Who hid the map {number}?" for number in range(5)])
        beating.cancel()
    assert len(answers) == 5
    assert len(beats) > 10


def test_an_exit_in_the_work_reaches_the_caller_and_the_thread_goes_on(tome):
    tome.add(LOG)
    with pytest.raises(SystemExit):
        tome.ask("Who?", on_event=lambda _: sys.exit(1))
    assert tome.ask("Who put out the light?").words


# ---------------------------------------------------------------- real texts


@needs_shared
def test_every_citation_on_a_novel_and_on_meetings_stands_where_it_says(here):
    questions = (
        "Who is Issus?",
        "What did Xodar say of the First Born?",
        "What did the group decide about the remote control?",
        "Why did the professor disagree?",
        "Where is the Temple of the Sun?",
    )
    with Tome.open(here / "a.tome", embedder="hash") as tome:
        assert len(tome.add(NOVEL, MEETINGS).added) > 30
        texts = {record.id: tome.documents[record.id].text for record in tome.documents()}
        for passage in tome.store.passages().values():
            assert texts[passage.document][passage.start : passage.end] == passage.text
        systems = ("naive", "hybrid", "full_context cut=true")
        answers = [answer for system in systems for answer in tome.ask_many(questions, system=system)]
        citations = [citation for answer in answers for citation in answer.quotes]
        assert len(citations) >= 5
        for citation in citations:
            assert texts[citation.document][citation.start : citation.end] == citation.text
        assert np.allclose(np.linalg.norm(read_vectors(tome.store, "passages").rows, axis=1), 1, atol=1e-4)
