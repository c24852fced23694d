"""Sessions: what outlives a question, what does not, and who sees it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.building import start_command
from tests.language.openai_server import OpenAIServer, reply_with
from tests.patience import NEVER, wait_until
from tests.recall.relation_tomes import list_relations

from tomewise import Document, Tome
from tomewise.errors import BadReply, Locked, ModelUnavailable, UnknownName, UsageError
from tomewise.store.records import SESSIONS
from tomewise.store.rights import hold_session
from tomewise.systems.kit import answer_once
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Answer

DOCUMENTS = (
    Document(id="a", text="Carter ~ Xodar ~ Carter defeated Xodar in the ship", metadata={"year": 1}),
    Document(id="b", text="Issus ~ Xodar ~ Issus degraded Xodar to a slave", metadata={"year": 2}),
    Document(id="c", text="Issus ~ Phaidor ~ Phaidor serves Issus", metadata={"year": 3}),
)
EVOLVE = "hybrid+evolve rounds=1 limit=4"
NOTE = "He is a slave: {}"


def write_point(given: Any) -> dict[str, Any]:
    return {"insertions": [{"description": NOTE.format(given.question), "entities": ["Xodar"], "evidence": ["E1"]}]}


def search_on(given: Any) -> dict[str, Any]:
    concern = {"concern": "more", "place": "global", "points": [], "subqueries": [f"more of {given.question}"]}
    return {"reasoning": "", "sufficient": False, "concerns": [concern]}


def make_model(**replies: Any) -> ScriptedModel:
    scripts: dict[str, Any] = {
        "extract_relations": list_relations,
        "evolve": write_point,
        "plan": lambda _: {"reasoning": "", "sufficient": True},
        "merge_points": lambda _: {},
        "rephrase": lambda given: {"question": f"full: {given.question}"},
        "answer": lambda given: {"answer": f"of {given.question}"},
        "encode": lambda given: {"cue": f"cue of {given.question}", "labels": ["E1"]},
        "probe": lambda given: {"probes": [f"more of {given.question}"]},
        "fuse": lambda _: {"cue": "fused"},
    }
    return ScriptedModel({**scripts, **replies})


def open_tome(folder: Path, model: ScriptedModel, **settings: Any) -> Tome:
    tome = Tome.open(folder / "a.tome", embedder="hash", model=model, settings=settings)
    tome.add(*DOCUMENTS)
    return tome


def list_inputs(model: ScriptedModel, role: str) -> list[Any]:
    return [call.given for call in model.calls if call.role == role]


def dump(tome: Tome, session: str) -> str:
    """All that is kept of a session."""
    return json.dumps(tome.store.note(SESSIONS, session))


def find_detail(answer: Answer, name: str) -> dict[str, Any]:
    return next(event.detail for event in answer.events if event.name == name)


def test_the_first_question_is_not_rephrased_and_later_ones_stand_alone(here):
    model = make_model()
    with open_tome(here, model) as tome:
        session = tome.sessions["s"]
        first = session.ask("Who is he?", system="naive")
        second = session.ask("Why?")
        third = session.ask("And who?")
        trace = tome.traces.latest()[0]
    assert [event.name for event in first.events] == ["resumed", "retrieved", "session"]
    assert find_detail(second, "rephrased") == {"asked": "Why?", "question": "full: Why?"}
    assert [given.question for given in list_inputs(model, "answer")] == ["Who is he?", "full: Why?", "full: And who?"]
    shown = [[(turn.question, turn.answer) for turn in given.turns] for given in list_inputs(model, "rephrase")]
    assert shown[0] == [("Who is he?", "of Who is he?")]
    assert shown[1][-1] == ("full: Why?", "of full: Why?")
    assert (third.system, third.session.number, third.session.question) == ("naive", 3, "full: And who?")
    assert (trace.question.text, trace.answer.session) == ("And who?", third.session)


@pytest.mark.parametrize("reply", [BadReply("no JSON"), {"question": ""}, {"question": "x" * 5000}])
def test_a_question_that_cannot_be_rephrased_stays_as_it_is(here, reply):
    model = make_model(rephrase=lambda _: reply)
    with open_tome(here, model) as tome:
        session = tome.sessions["s"]
        session.ask("Who is he?", system="naive")
        answer = session.ask("Why?")
    assert answer.session.question == "Why?"
    assert ("skipped" in [event.name for event in answer.events]) == (reply != {"question": ""})


@pytest.mark.parametrize("role", ["rephrase", "plan", "evolve", "answer"])
def test_a_model_that_is_gone_is_an_error_and_leaves_the_session_as_it_was(here, role):
    with open_tome(here, make_model(plan=search_on)) as tome:
        tome.sessions["s"].ask("Who?", system=EVOLVE)
        before = tome.sessions["s"].read()
    with open_tome(here, make_model(**{"plan": search_on, role: lambda _: ModelUnavailable("quota")})) as tome:
        with pytest.raises(ModelUnavailable):
            tome.sessions["s"].ask("Why?")
        assert tome.sessions["s"].read() == before


def test_a_hypergraph_goes_on_and_the_answer_says_what_it_took(here):
    model = make_model()
    with open_tome(here, model) as tome:
        session = tome.sessions["s"]
        session.ask("Who degraded Xodar?", system=EVOLVE)
    with Tome.open(here / "a.tome", model=model) as tome:
        answer = tome.sessions["s"].ask("Why?")
        record = tome.sessions["s"].read()
    (note,) = answer.session.notes
    assert note == NOTE.format("Who degraded Xodar?")
    assert list_inputs(model, "plan")[0].points[0].description == note, "it is planned with what is known"
    assert find_detail(answer, "resumed")["known"] == [note]
    assert note in list_inputs(model, "answer")[-1].notes
    assert (record.memory_kind, record.count) == ("hypergraph", 2)
    assert [turn.asked for turn in record.turns] == ["Who degraded Xodar?", "Why?"]


async def test_two_sessions_at_once_do_not_see_each_others_memory(here):
    model = make_model()
    async with Tome.open(here / "a.tome", embedder="hash", model=model) as tome:
        await tome.aadd(*DOCUMENTS)
        for number in range(3):
            names = ("one", "two")
            await asyncio.gather(*(tome.sessions[name].aask(f"{name} {number}?", system=EVOLVE) for name in names))
        for name, stranger in (("one", "two"), ("two", "one")):
            assert f"{name} 1?" in dump(tome, name)
            assert f"{stranger} " not in dump(tome, name)
    for given in list_inputs(model, "answer"):
        name = "one" if "one " in given.question else "two"
        assert all(f"{name} " in note for note in given.notes)


def test_equal_questions_in_two_sessions_share_no_notes_through_kept_replies(here):
    model = make_model(rephrase=lambda given: {"question": given.question})
    with open_tome(here, model) as tome:
        tome.sessions["one"].ask("First?", system=EVOLVE)
        first = tome.sessions["one"].ask("Who?", system=EVOLVE)
        second = tome.sessions["two"].ask("Who?", system=EVOLVE)
        alone = tome.ask("Who?", system=EVOLVE)
    assert first.session.notes == (NOTE.format("First?"),)
    assert second.session.notes == ()
    assert second.events[-2].detail["notes"] == alone.events[-1].detail["notes"] == [NOTE.format("Who?")]
    assert alone.cost.calls == 0, "equal calls are made once"


def test_one_question_at_a_time(here):
    with open_tome(here, make_model()) as tome:
        session = tome.sessions["s"]
        with hold_session(tome.store, "s"):
            with pytest.raises(Locked, match="'s' is answering another question"):
                session.ask("Who?")
            assert tome.sessions["other"].ask("Who?").text == "of Who?"
            with pytest.raises(Locked):
                del tome.sessions["s"]
        assert session.ask("Who?").text == "of Who?"


def test_the_long_term_memory_is_not_changed_and_the_session_is_exported(here):
    with open_tome(here, make_model()) as tome:
        tome.build("hgmem")
        before = list(tome.memory.export())
        for question in ("Who degraded Xodar?", "Why?"):
            tome.sessions["s"].ask(question, system="hgmem")
        after = list(tome.memory.export())
        added = [json.loads(line) for line in after if line not in before]
        assert [line for line in after if '"kind": "session"' not in line] == before
        assert [(line["name"], line["count"], line["system"]) for line in added] == [("s", 2, "hgmem")]
        del tome.sessions["s"]
        assert list(tome.memory.export()) == before


def test_what_rests_on_a_removed_document_goes_with_it(here):
    def insert(given: Any) -> dict[str, Any]:
        rows = ((piece.text, piece.label) for piece in given.evidence)
        return {
            "insertions": [{"description": text, "entities": ["Xodar"], "evidence": [label]} for text, label in rows]
        }

    def cite(given: Any) -> dict[str, Any]:
        piece = next(piece for piece in given.evidence if "degraded" in piece.text)
        return {"answer": "Issus", "quotes": [{"label": piece.label, "quote": "degraded Xodar"}]}

    with open_tome(here, make_model(evolve=insert, answer=cite)) as tome:
        session = tome.sessions["s"]
        session.ask("Who degraded Xodar?", system=EVOLVE)
        tome.remove("b")
        for text in (dump(tome, "s"), "".join(tome.memory.export())):
            assert "degraded Xodar to" not in text
            assert "defeated" in text
        (turn,) = session.read().turns
        assert (turn.asked, turn.answer) == ("Who degraded Xodar?", "")
        tome.add(Document(id="a", text="Nothing is left of it.", metadata={}))
        assert "defeated" not in dump(tome, "s"), "a document that is replaced is removed too"


def test_what_was_removed_while_nobody_could_tell_the_session_is_forgotten_at_the_next_question(here):
    model = make_model()
    with open_tome(here, model) as tome:
        session = tome.sessions["s"]
        session.ask("Who degraded Xodar?", system=EVOLVE)
        with hold_session(tome.store, "s"):
            for document in ("a", "b"):
                tome.remove(document)
        answer = session.ask("Why?")
    assert NOTE.format("Who degraded Xodar?") in answer.session.dropped
    assert find_detail(answer, "resumed")["forgotten"] == [NOTE.format("Who degraded Xodar?")]
    assert answer.session.notes == ()


def test_the_limit_drops_the_oldest_and_says_so(here):
    with open_tome(here, make_model(plan=search_on), session_limit=2) as tome:
        session = tome.sessions["s"]
        answers = [session.ask(f"Question {number}?", system=EVOLVE) for number in range(5)]
        record = session.read()
    assert answers[1].session.dropped == ()
    assert answers[2].session.dropped == (NOTE.format("Question 0?"), "Question 0?")
    assert find_detail(answers[2], "session")["dropped"] == list(answers[2].session.dropped)
    assert [turn.asked for turn in record.turns] == ["Question 3?", "Question 4?"]
    assert (record.count, len(record.memory["points"])) == (5, 2)


def test_the_first_question_fixes_system_settings_and_scope(here):
    with open_tome(here, make_model()) as tome:
        session, same = tome.sessions["s"], tome.within(where=["year>=2"]).sessions["s"]
        same.ask("Who?", system=EVOLVE)
        assert session.ask("Why?").evidence
        assert same.ask("Why?", system="hybrid+evolve limit=4 rounds=1").system == EVOLVE
        assert "Carter" not in "".join(piece.text for piece in session.ask("Where?").evidence)
        elsewhere, changed = tome.within(where=["year>=1"]).sessions["s"], EVOLVE.replace("rounds=1", "rounds=2")
        for chosen, system in ((session, "naive"), (session, changed), (elsewhere, None)):
            with pytest.raises(UsageError, match="or begin another session"):
                chosen.ask("When?", system=system)
        with pytest.raises(UsageError, match="needs a system with a name"):
            tome.sessions["t"].ask("Who?", system=lambda kit: answer_once(kit, None, limit=1))


def test_names_that_cannot_be_typed_and_sessions_that_do_not_exist(here):
    with open_tome(here, make_model()) as tome:
        for name in ("", " a", "a\n", "x" * 201):
            with pytest.raises(UsageError, match="cannot be named"):
                tome.sessions[name]
        with pytest.raises(UnknownName, match="no session 'letter'"):
            del tome.sessions["letter"]


def test_a_session_that_is_killed_is_as_it_was_before(here):
    reply = reply_with(json.dumps({"answer": "Issus", "question": "Why is he a slave?"}))
    with OpenAIServer(lambda _: reply) as server:
        settings = ("--model", "openai:test", "--base-url", server.url)
        with Tome.open(here / "a.tome", embedder="hash", model="openai:test", base_url=server.url) as tome:
            tome.add(*DOCUMENTS)
            tome.sessions["s"].ask("Who degraded Xodar?", system="naive")
            before = list(tome.memory.export())
        made = len(server.requests)
        server.handler = lambda request: reply_with("{}", delay=NEVER)
        process = start_command("ask", "--tome", here / "a.tome", "--session", "s", "Why?", *settings)
        wait_until(lambda: len(server.requests) > made or process.poll() is not None)
        process.kill()
        process.communicate()
        assert len(server.requests) > made
    with Tome.open(here / "a.tome", model=make_model()) as tome:
        assert list(tome.memory.export()) == before
        assert tome.sessions["s"].ask("Why?").session.number == 2, "the lock does not outlive its process"


# ---------------------------------------------------------------- a ledger, whose facts and inferences go on

STORY = (
    Document(id="a", text="In the garden a pale gentleman asked Pip to fight."),
    Document(id="b", text="Herbert Pocket cried that he was the pale gentleman."),
    Document(id="c", text="It rained in London."),
)
MET = "Pip had met Herbert in the garden."


def quote_all(given: Any) -> dict[str, object]:
    return {"facts": [{"label": piece.label, "quote": piece.text} for piece in given.evidence]}


def join(given: Any) -> dict[str, object]:
    alike = [entry.label for entry in given.facts if "gentleman" in entry.text]
    return {"inferences": [{"rests_on": alike, "inference": MET}]} if len(alike) > 1 else {}


def make_reader(**replies: Any) -> ScriptedModel:
    scripts = {
        "plan_reading": lambda given: {"questions": [f"What of {given.question}"]},
        "mark_facts": quote_all,
        "update_ledger": join,
        "answer": lambda _: {"answer": "Herbert"},
        "rephrase": lambda given: {"question": f"full: {given.question}"},
    }
    return ScriptedModel({**scripts, **replies})


def open_story(folder: Path, model: ScriptedModel) -> Tome:
    tome = Tome.open(folder / "a.tome", embedder="hash", model=model)
    tome.add(*STORY)
    return tome


def ask_first(folder: Path) -> None:
    with open_story(folder, make_reader()) as tome:
        tome.sessions["s"].ask("Who fought?", system="read_through recovery=0 chunk=20")


def test_what_rests_on_a_removed_document_goes_from_the_ledger(here):
    ask_first(here)
    with open_story(here, make_reader()) as tome:
        assert MET in dump(tome, "s")
        tome.remove("a")
        assert "garden" not in dump(tome, "s")
        assert STORY[1].text in dump(tome, "s")
        assert tome.sessions["s"].ask("Had they met?").session.notes == ()


def test_a_memory_that_no_system_here_can_read_goes_with_what_it_may_rest_on(here):
    ask_first(here)
    with open_story(here, make_reader()) as tome:
        with tome.store.write() as change:
            change.put_note(SESSIONS, "s", {**tome.store.note(SESSIONS, "s"), "system": "gone"})
        assert MET in dump(tome, "s")
        tome.remove("a")
        assert MET not in dump(tome, "s")
        assert len(tome.sessions["s"].read().turns) == 1
