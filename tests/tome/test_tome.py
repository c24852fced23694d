"""`Tome`: adding, removing, asking, from plain code and from inside an event loop."""

from __future__ import annotations

import asyncio
import inspect
import json
import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event
from tests.patience import SOON
from tests.texts import MEETINGS, NOVEL, needs_shared, prose

from tomewise import Document, Tome
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import (
    Locked,
    ModelError,
    NotBuilt,
    ReadingError,
    StoreError,
    TomewiseError,
    UnknownName,
    UsageError,
)
from tomewise.store.lookups import read_setting, read_vectors
from tomewise.store.rights import work_alone
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.contents import Contents
from tomewise.tome.session import Session
from tomewise.types import Progress, Question

LOG = Document(id="log", text="The keeper, Ada Marsh, put out the light at nine. Nobody asked her why.")
REPLY = {"answer": "Ada", "quotes": [{"label": "E1", "quote": "put out the light"}]}


def documents(count: int, sentences: int = 12) -> list[Document]:
    return [Document(id=f"d{number}", title=f"Text {number}", text=prose(number, sentences)) for number in range(count)]


def list_export(tome: Tome) -> list[str]:
    return list(tome.export())


# ---------------------------------------------------------------- add and remove


@settings(max_examples=15, deadline=None)
@given(st.permutations(documents(6)), st.lists(st.integers(1, 6), max_size=3))
def test_any_order_of_adding_gives_the_same_export(tmp_path_factory, order, cuts):
    folder = tmp_path_factory.mktemp("order")
    with (
        Tome.open(folder / "a.tome", embedder="hash") as first_tome,
        Tome.open(folder / "b.tome", embedder="hash") as second_tome,
    ):
        first_tome.add(*documents(6))
        for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), 6], strict=True):
            if order[start:end]:
                second_tome.add(*order[start:end])
        assert list_export(first_tome) == list_export(second_tome)
        question = "Who burned the letter?"
        first, second = first_tome.ask(question), second_tome.ask(question)
        assert [piece.node for piece in first.evidence] == [piece.node for piece in second.evidence]
        assert (first.text, first.citations) == (second.text, second.citations)


@settings(max_examples=15, deadline=None)
@given(st.text(min_size=1).filter(lambda text: text.strip() and "\0" not in text), st.text().map(str.strip))
def test_adding_and_removing_leaves_what_was_there(tmp_path_factory, text, title):
    title = title.replace("\0", "")
    with Tome.open(tmp_path_factory.mktemp("remove") / "a.tome", embedder="hash") as tome:
        tome.add(*documents(2))
        before, found = list_export(tome), [piece.node for piece in tome.ask("Who hid the map?").evidence]
        tome.add(Document(id="guest", text=text, title=title))
        assert list_export(tome) != before
        assert tome.document("guest").text == text
        tome.remove("guest")
        assert list_export(tome) == before
        assert [piece.node for piece in tome.ask("Who hid the map?").evidence] == found


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 50), st.integers(0, 50))
def test_replacing_equals_a_fresh_tome(tmp_path_factory, old, new):
    folder = tmp_path_factory.mktemp("replace")
    with (
        Tome.open(folder / "a.tome", embedder="hash") as first_tome,
        Tome.open(folder / "b.tome", embedder="hash") as second_tome,
    ):
        first_tome.add(*documents(2), Document(id="x", text=prose(old)))
        report = first_tome.add(Document(id="x", text=prose(new)))
        assert report.unchanged == (("x",) if old == new else ())
        assert report.replaced == (() if old == new else ("x",))
        second_tome.add(Document(id="x", text=prose(new)), *documents(2))
        assert list_export(first_tome) == list_export(second_tome)


def test_of_two_versions_in_one_call_the_later_counts(tome):
    report = tome.add(LOG, Document(id="log", text="Ida Poe put out the light."))
    assert (report.added, report.replaced) == (("log",), ("log",))
    assert tome.document("log").text.startswith("Ida Poe")
    assert tome.add(LOG, Document(id="log", text="Ida Poe put out the light.")).replaced == ("log", "log")


def test_what_is_there_unchanged_is_not_embedded_again(here):
    class Counting(HashEmbedder):
        seen = 0

        def embed(self, texts: Sequence[str]):
            self.seen += len(texts)
            return super().embed(texts)

    embedder = Counting()
    with Tome.open(here / "a.tome", embedder=embedder) as tome:
        first = tome.add(*documents(3))
        assert embedder.seen == first.passages > 0
        assert tome.add(*documents(3)).unchanged == first.added
        assert embedder.seen == first.passages


@pytest.mark.parametrize(
    "document",
    [
        Document(id="", text="x"),
        Document(id="x", text=" \n"),
        Document(id="x", text="a\0b"),
        Document(id="x", text="a\ud800b"),
        Document(id="x", text="a", title="\udfff"),
    ],
)
def test_a_document_that_no_file_could_hold(tome, document):
    tome.add(LOG)
    before = list_export(tome)
    with pytest.raises(ReadingError, match=r"replace it|leave it out"):
        tome.add(document)
    assert list_export(tome) == before


def test_nothing_to_add(tome):
    with pytest.raises(UsageError, match="nothing to add"):
        tome.add()


def test_progress_reaches_its_end(here):
    seen: list[Progress] = []
    with Tome.open(here / "a.tome", embedder="hash") as tome:
        report = tome.add(*documents(3), Document(id="long", text=prose(9, 8000)), on_progress=seen.append)
    last = {progress.label: progress for progress in seen}
    assert last["passages embedded"].done == last["passages embedded"].total == report.passages
    assert last["characters cut"].done == last["characters cut"].total == len(prose(9, 8000))
    assert all(progress.done <= progress.total for progress in seen)


def test_an_embedder_that_fails_leaves_what_was_finished(here):
    class Failing(HashEmbedder):
        def embed(self, texts: Sequence[str]):
            if any("poison" in text for text in texts):
                raise ModelError("the server of the embedder is gone")
            return super().embed(texts)

    with Tome.open(here / "a.tome", embedder=Failing()) as tome:
        with pytest.raises(ModelError):
            tome.add(Document(id="long", text=prose(1, 3000)), Document(id="bad", text="poison"))
        assert [record.id for record in tome.documents()] == ["long"]
        tome.add(LOG)


def test_an_add_that_is_cancelled_keeps_what_was_finished_and_lets_go(here):
    async def cancel_add(tome):
        begun = asyncio.Event()
        documents = (Document(id=str(n), text=prose(n, 800)) for n in range(40))
        work = tome.aadd(*documents, on_progress=lambda _: tome.documents() and begun.set())
        adding = asyncio.create_task(work)
        await begun.wait()
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding

    with Tome.open(here / "a.tome", embedder="hash") as tome:
        asyncio.run(cancel_add(tome))
        kept = len(tome.documents())
        assert 0 < kept <= 40
        tome.add(*(Document(id=str(n), text=prose(n, 800)) for n in range(40)))
        assert len(tome.documents()) == 40


async def test_a_cancelled_removal_holds_the_tome_until_it_has_ended(here, monkeypatch):
    begun, goes_on = threading.Event(), threading.Event()
    remove = Contents._remove

    def remove_slowly(tome, *names):
        begun.set()
        assert goes_on.wait(SOON)
        return remove(tome, *names)

    monkeypatch.setattr(Contents, "_remove", remove_slowly)
    async with Tome.open(here / "a.tome", embedder="hash") as tome:
        await tome.aadd(LOG)
        removing = asyncio.create_task(tome.aremove("log"))
        await asyncio.to_thread(begun.wait)
        removing.cancel()
        await asyncio.sleep(0.05)
        with pytest.raises(Locked, match="another remove under way"):
            await tome.aadd(LOG)
        goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await removing
        removed = tome.documents()
        await asyncio.sleep(0.4)
        assert tome.documents() == removed, "nothing goes on after the cancelled call has ended"
        await tome.aadd(LOG)


def test_documents_are_named_in_many_ways(tome, here):
    (here / "sub").mkdir()
    path = here / "sub" / "note.txt"
    path.write_text("Tom Hale rowed.")
    tome.add(path, Document(id="row-17", title="The Boat", text="Ada sold the boat."), LOG)
    for name in (str(path), "sub/note.txt", "sub/../sub/note.txt", "note.txt", "note"):
        assert tome.document(name).text == "Tom Hale rowed."
    for name in ("row-17", "The Boat", "w-17"):
        assert tome.document(name).id == "row-17"
    with pytest.raises(UnknownName, match="fits 3 documents"):
        tome.document("o")
    with pytest.raises(UsageError):
        tome.remove(" ")


# ---------------------------------------------------------------- settings that are fixed


def test_what_a_tome_is_made_with_is_kept_and_refused_otherwise(here):
    path = here / "a.tome"
    with Tome.open(path, embedder="hash:32", passage_tokens=50, overlap=10) as tome:
        tome.add(LOG)
    with Tome.open(path) as tome:
        assert tome.kit.embedder.name == "hash:32"
        assert tome.add(Document(id="x", text=prose(3))).passages > 1
    for different in ({"embedder": "hash"}, {"passage_tokens": 51}, {"overlap": 0}):
        with pytest.raises(StoreError, match="was made with"):
            Tome.open(path, **different)
    with pytest.raises(StoreError, match=r"made with embedder hash:32, not hash:33"):
        Tome.open(path, embedder=HashEmbedder(33))


def test_a_tome_without_documents_may_be_made_anew(here):
    path = here / "a.tome"
    Tome.open(path, embedder="hash:32", passage_tokens=60).close()
    with Tome.open(path) as tome:
        assert read_setting(tome.store, "passage_tokens") == "60"
    with Tome.open(path, embedder="hash:48") as tome:
        tome.add(LOG)
        tome.remove("log")
    with Tome.open(path, embedder="hash:96") as tome:
        tome.add(LOG, *documents(3))
        assert read_vectors(tome.store, "passages").rows.shape[1] == 96
        assert "Ada" in tome.ask("Who put out the light?", system="naive").text


@pytest.mark.parametrize("wrong", [{"embedder": "nonsense:x"}, {"passage_tokens": 99_999}])
def test_a_tome_that_cannot_be_made_leaves_no_file(here, wrong):
    with pytest.raises(TomewiseError):
        Tome.open(here / "a.tome", **{"embedder": "hash", **wrong})
    assert list(here.iterdir()) == []
    with Tome.open(here / "a.tome", embedder="hash"):
        pass
    with pytest.raises(TomewiseError):
        Tome.open(here / "a.tome", **{"embedder": "hash", **wrong})
    assert (here / "a.tome").exists(), "only a file that the call made goes"


def test_two_that_settle_on_different_embedders_do_not_mix(here):
    with Tome.open(here / "a.tome", embedder="hash:32") as first_tome:
        with Tome.open(here / "a.tome", embedder="hash:64") as second_tome:
            second_tome.add(LOG)
        with pytest.raises(StoreError, match="made with embedder hash:64"):
            first_tome.add(*documents(1))


@pytest.mark.parametrize(
    "sizes", [{"passage_tokens": 4}, {"passage_tokens": 10_000}, {"overlap": 200}, {"overlap": -1}]
)
def test_impossible_sizes(here, sizes):
    with pytest.raises(UsageError):
        Tome.open(here / "a.tome", embedder="hash", **sizes)
    with Tome.open(here / "a.tome", embedder="hash") as tome:
        tome.add(LOG)


# ---------------------------------------------------------------- ask


def make_tome(here, replies=REPLY, **settings):
    model = ScriptedModel({"answer": lambda _: replies}, **settings)
    tome = Tome.open(here / "a.tome", embedder="hash", model=model)
    tome.add(LOG)
    return tome, model


def test_refusals(here):
    tome, _ = make_tome(here)
    for question, more, kind in (
        ("", {}, UsageError),
        (Question(text="  "), {}, UsageError),
        ("x", {"options": ["a"]}, UsageError),
        ("x", {"options": ["a", ""]}, UsageError),
        (Question(text="x"), {"options": ["a", "b"]}, UsageError),
        ("x", {"system": "naif"}, UnknownName),
        ("x", {"settings": {"limt": 3}}, UnknownName),
    ):
        with pytest.raises(kind):
            tome.ask(question, **more)
    tome.remove("log")
    with pytest.raises(NotBuilt, match="tome add"):
        tome.ask("Who?")
    tome.close()


def test_a_callback_that_would_wait_for_itself_is_refused(here):
    tome, _ = make_tome(here)
    with pytest.raises(UsageError, match="a callback cannot call"):
        tome.ask("Who?", on_event=lambda _: tome.ask("Who else?"))
    assert tome.ask("Who?").text
    tome.close()


def test_a_model_that_will_not_close_leaves_nothing_open(here):
    class Stubborn(ScriptedModel):
        async def close(self):
            raise ModelError("busy")

    tome = Tome.open(here / "m.tome", embedder="hash", model=Stubborn({}))
    tome.add(*documents(1))
    with pytest.raises(ModelError, match="busy"):
        tome.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "tomewise"]


def test_a_memory_that_lost_something_says_so(here):
    tome = Tome.open(here / "m.tome", embedder="hash")
    tome.add(*documents(4))
    with pytest.raises(NotBuilt, match=r"tree \(\d+ to take in\)"):
        tome.ask("Who?", system="raptor")
    tome.build("raptor")
    tome.remove(tome.documents()[0].id)
    with pytest.raises(
        NotBuilt, match=r"tree \(something was removed\); run `tome build --tome .*m.tome --system raptor`"
    ):
        tome.ask("Who?", system="raptor", strict=True)
    assert tome.ask("Who?", system="raptor").lagging.removed
    tome.build("raptor")
    assert tome.ask("Who?", system="raptor").system == "raptor"
    tome.close()


def test_settings_reach_the_recipe(here):
    tome, model = make_tome(here)
    tome.add(*documents(4))
    tome.ask("Who?", settings={"limit": 2})
    assert len(model.calls[0].given.evidence) == 2
    answer = tome.ask("Who?", system="hybrid limit=3 context=900", settings={"limit": 1})
    assert len(model.calls[1].given.evidence) == 1
    assert answer.system == "hybrid limit=1 context=900"
    with pytest.raises(UsageError, match="limit must be a valid integer, not '2'"):
        tome.ask("Who?", settings={"limit": "2"})
    with pytest.raises(UsageError, match="without any layer"):
        tome.ask("Who?", system="comorag", settings={"veridical": 0, "semantic": 0, "episodic": 0})
    tome.close()


def test_the_answer_carries_its_events_and_what_was_used(here):
    tome, _ = make_tome(here)
    heard = []
    answer = tome.ask("Who put out the light?", on_event=heard.append)
    assert list(answer.events) == heard
    assert [happened.name for happened in heard] == ["retrieved"]
    assert answer.usage.total.calls == answer.usage.roles["answer"].calls == 1
    assert answer.usage.depth == 1
    assert answer.citations[0].quote == "put out the light"
    tome.close()


def test_wall_time_is_split_in_two(here):
    tome, _ = make_tome(here, latency=0.1)
    begun = time.perf_counter()
    usage = tome.ask("Who?").usage
    wall = time.perf_counter() - begun
    assert usage.model_seconds >= 0.1
    assert usage.model_seconds + usage.own_seconds <= wall + 0.01
    assert usage.total.seconds == pytest.approx(sum(role.seconds for role in usage.roles.values()))
    tome.close()


def test_several_questions_keep_their_order_and_the_limit(here):
    most = running = 0

    class Watched(ScriptedModel):
        async def ask(self, role, given):
            nonlocal most, running
            async with limit:
                running += 1
                most = max(most, running)
                if running == 4:
                    full.set()
                await asyncio.wait_for(full.wait(), 30)  # on a busy machine the fourth question may start late
                await asyncio.sleep(0.005 * (10 - int(given.question)))
                running -= 1
            return await super().ask(role, given)

    limit, full = asyncio.Semaphore(4), asyncio.Event()
    model = Watched({"answer": lambda given: {"answer": f"answer {given.question}"}})
    with Tome.open(here / "a.tome", embedder="hash", model=model) as tome:
        tome.add(LOG)
        answers = tome.ask_many([str(number) for number in range(10)])
    assert [answer.text for answer in answers] == [f"answer {number}" for number in range(10)]
    assert most == 4
    assert all(answer.usage.total.calls == 1 for answer in answers)


def test_one_question_of_several_that_fails_raises_its_error(here):
    def reply(given):
        return ModelError("no") if given.question == "2" else REPLY

    with Tome.open(here / "a.tome", embedder="hash", model=ScriptedModel({"answer": reply})) as tome:
        tome.add(LOG)
        with pytest.raises(ModelError, match="no"):
            tome.ask_many(["1", "2", "3"])
        assert tome.ask_many([]) == []


def contents(folder):
    found = {path.name: path.read_bytes() for path in (folder / "a.tome-cache").iterdir()}
    with closing(sqlite3.connect(folder / "a.tome")) as file:
        names = [row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        tables = {name: file.execute(f"SELECT * FROM {name}").fetchall() for name in names}
    return found, tables


@pytest.mark.parametrize("system", ["naive", "hybrid", "full_context"])
def test_asking_writes_nothing_but_its_trace_and_replies(here, system):
    with Tome.open(here / "a.tome", embedder="hash") as tome:
        tome.add(LOG, *documents(3))
    files, tables = contents(here)
    with Tome.open(here / "a.tome") as tome:
        tome.ask("Who put out the light?", system=system)
    files_after, tables_after = contents(here)
    assert files == files_after
    changed = [name for name in tables if tables[name] != tables_after[name]]
    assert sorted(set(changed) - {"sqlite_sequence"}) == ["calls", "traces"]
    assert len(tables_after["traces"]) == len(tables["traces"]) + 1
    assert sorted(path.name for path in here.iterdir()) == ["a.tome", "a.tome-cache"]


def test_a_trace_holds_what_the_answer_held(here):
    tome, _ = make_tome(here)
    answer = tome.ask("Who put out the light?")
    trace = tome.store.trace(tome.store.trace_numbers(1)[0])
    assert (trace["question"], trace["answer"], trace["system"]) == ("Who put out the light?", "Ada", "hybrid")
    kept = tome.trace(1).answer.events[0]
    assert kept.detail == json.loads(json.dumps(dict(answer.events[0].detail)))
    tome.close()


@pytest.mark.parametrize("error", [Locked("busy"), StoreError("readonly")])
def test_a_trace_that_cannot_be_kept_warns_and_the_answer_is_given(here, monkeypatch, error):
    tome, _ = make_tome(here)

    def refuse(**_):
        raise error

    monkeypatch.setattr(tome.store, "save_trace", refuse)
    with pytest.warns(UserWarning, match="trace"):
        assert tome.ask("Who?").text == "Ada"
    tome.close()


def test_a_cold_start_reads_the_cached_arrays(here):
    with Tome.open(here / "a.tome", embedder="hash") as tome:
        tome.add(LOG, *documents(3))
    statements = []
    with Tome.open(here / "a.tome") as tome:
        event.listen(tome.store.dialect._engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
        tome.ask("Who put out the light?", system="naive")
        assert statements
        assert not [words for words in statements if "vector FROM vectors" in words]


def test_lost_arrays_are_read_from_the_tome(here):
    with Tome.open(here / "a.tome", embedder="hash") as tome:
        tome.add(LOG, *documents(3))
        before = tome.ask("Who put out the light?", system="naive")
    for path in (here / "a.tome-cache").iterdir():
        path.unlink()
    with Tome.open(here / "a.tome") as tome:
        assert tome.ask("Who put out the light?", system="naive").evidence == before.evidence
        tome.add(Document(id="x", text="Tom Hale rowed."))
        assert read_vectors(tome.store, "passages").rows.shape[0] == len(tome.store.passages())


# ---------------------------------------------------------------- many tomes, threads, event loops


def test_two_tomes_in_one_process_share_nothing(here):
    with (
        Tome.open(here / "a.tome", embedder="hash") as first_tome,
        Tome.open(here / "b.tome", embedder="hash:32") as second_tome,
    ):
        first_tome.add(LOG)
        second_tome.add(Document(id="log", text="Ida Poe rang the bell."))
        assert "Ada" in first_tome.ask("Who put out the light?").text
        assert "Ida" in second_tome.ask("Who rang the bell?").text
        first_tome.remove("log")
        assert [record.id for record in second_tome.documents()] == ["log"]
        assert len(second_tome.store.trace_numbers()) == 1
    assert sorted(path.name for path in here.iterdir()) == ["a.tome", "a.tome-cache", "b.tome", "b.tome-cache"]


def test_two_openings_of_one_tome_see_what_the_other_did(here):
    with Tome.open(here / "a.tome", embedder="hash") as first_tome, Tome.open(here / "a.tome") as second_tome:
        first_tome.add(LOG)
        assert "Ada" in second_tome.ask("Who put out the light?").text
        second_tome.add(Document(id="x", text="Ida Poe rang the bell."))
        assert "Ida" in first_tome.ask("Who rang the bell?").text
        with work_alone(first_tome.store, "add"), pytest.raises(Locked):
            second_tome.add(*documents(1))


async def test_plain_methods_work_inside_a_running_loop(tome):
    tome.add(LOG)
    assert "Ada" in tome.ask("Who put out the light?").text
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
        await tome.aadd(*(Document(id=str(n), text=prose(n, 1500)) for n in range(20)))
        answers = await tome.aask_many([f"Who hid the map {number}?" for number in range(5)])
        beating.cancel()
    assert len(answers) == 5
    assert len(beats) > 10


def test_a_tome_can_be_closed_twice_and_from_an_error(here):
    tome = Tome.open(here / "a.tome", embedder="hash")
    tome.close()
    tome.close()
    with pytest.raises(ZeroDivisionError), Tome.open(here / "a.tome") as tome:
        raise ZeroDivisionError


# ---------------------------------------------------------------- real texts


@needs_shared
def test_every_citation_on_a_novel_and_on_meetings_stands_where_it_says(here, tmp_path_factory):
    questions = (
        "Who is Issus?",
        "What did Xodar say of the First Born?",
        "What did the group decide about the remote control?",
        "Why did the professor disagree?",
        "Where is the Temple of the Sun?",
    )
    with Tome.open(here / "a.tome", embedder="hash") as tome:
        report = tome.add(NOVEL, MEETINGS)
        assert len(report.added) > 30
        texts = {record.id: tome.document(record.id).text for record in tome.documents()}
        for passage in tome.store.passages().values():
            assert texts[passage.document][passage.start : passage.end] == passage.text
        cited = 0
        for system in ("naive", "hybrid", "full_context"):
            for answer in tome.ask_many(questions, system=system):
                for citation in answer.citations:
                    cited += 1
                    assert texts[citation.document][citation.start : citation.end] == citation.quote
        assert cited >= 5
        rows = read_vectors(tome.store, "passages").rows
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)


def test_a_build_with_another_model_says_whose_the_memory_is(here):
    with Tome.open(here / "a.tome", embedder=HashEmbedder(32), model="extractive") as book:
        book.add(*documents(4))
        assert [layer.notes for layer in book.build("hipporag2").layers] == [()]
    model = ScriptedModel({})
    with Tome.open(here / "a.tome", embedder=HashEmbedder(32), model=model) as book:
        (layer,) = book.build("hipporag2").layers
        assert layer.notes == (
            f"extractive built what was there, and it stays; to use {model.name} for all, add to a new tome",
        )


# ---------------------------------------------------------------- metadata


def test_documents_keep_metadata_and_another_value_is_a_change(tome):
    dated = Document(id="log", text=LOG.text, metadata={"year": 1911, "tags": ("sea", "light")})
    assert tome.add(dated).added == ("log",)
    assert tome.document("log").metadata == {"year": 1911, "tags": ["sea", "light"]}
    assert tome.documents()[0].metadata == {"year": 1911, "tags": ["sea", "light"]}
    assert tome.add(dated).unchanged == ("log",)
    assert '"metadata": {"tags": ["sea", "light"], "year": 1911}' in "".join(tome.export())
    assert tome.add(Document(id="log", text=LOG.text, metadata={"year": 1912})).replaced == ("log",)
    assert tome.add(LOG).replaced == ("log",)
    assert tome.document("log").metadata == {}


@pytest.mark.parametrize("metadata", [{"a": {"b": 1}}, {"a": None}, {1: "a"}, {"a": float("nan")}, {"a": "\0"}])
def test_metadata_that_cannot_be_stored_is_refused(tome, metadata):
    with pytest.raises(ReadingError, match="'log'"):
        tome.add(Document(id="log", text=LOG.text, metadata=metadata))


# ---------------------------------------------------------------- search


def test_a_search_gives_the_evidence_of_a_question_and_asks_no_model_to_answer(tmp_path):
    silent = ScriptedModel({})
    with Tome.open(tmp_path / "a.tome", embedder="hash", model=silent) as tome:
        tome.add(LOG, *documents(4))
        for system in ("naive", "hybrid", "full_context"):
            found = tome.search("Who put out the light?", system=system, limit=3)
            assert len(found) == 3
            assert all(piece.sources for piece in found)
        assert tome.search("Who put out the light?")[0].text == LOG.text
        assert asyncio.run(tome.asearch("Who put out the light?")) == tome.search("Who put out the light?")
        assert len(tome.search("Who put out the light?", limit=2)) == 2
        assert tome.store.trace_numbers(5) == []


def test_a_search_refuses_what_a_question_refuses(tmp_path):
    with Tome.open(tmp_path / "a.tome", embedder="hash") as tome:
        with pytest.raises(NotBuilt, match="holds no document"):
            tome.search("light")
        tome.add(LOG)
        with pytest.raises(UsageError, match="empty"):
            tome.search("  ")
        with pytest.raises(UsageError, match="1 or more"):
            tome.search("light", limit=0)
        with pytest.raises(NotBuilt, match="tome build"):
            tome.search("light", system="raptor")
        tome.build("raptor")
        assert tome.search("light", system="raptor")


def test_plain_methods_have_the_parameters_and_the_words_of_their_asynchronous_twins():
    for owner in (Tome, Session):
        twins = [name for name in vars(owner) if name.startswith("a") and name[1:] in vars(owner)]
        assert twins
        for name in twins:
            plain, work = getattr(owner, name[1:]), getattr(owner, name)
            assert plain.__name__ == name[1:]
            if name != "aclose":
                assert inspect.signature(plain) == inspect.signature(work)
                assert plain.__doc__ == work.__doc__
            assert not inspect.iscoroutinefunction(plain)
    assert {"ask", "ask_many", "add", "remove", "build", "estimate", "search"} <= vars(Tome).keys()
