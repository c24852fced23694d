"""A session with a ledger: the next question starts from the facts and inferences of earlier ones."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import Any

import pytest

from tomewise import Document, Tome
from tomewise.errors import ModelUnavailable
from tomewise.store.records import SESSIONS
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Question

DOCUMENTS = (
    Document(id="a", text="In the garden a pale gentleman asked Pip to fight."),
    Document(id="b", text="Herbert Pocket cried that he was the pale gentleman."),
    Document(id="c", text="It rained in London."),
)
MET = "Pip had met Herbert in the garden."
SYSTEM = "cosmir recovery=0 memory=0 chunk=20 context=0"


def quote_all(given: Any) -> dict[str, object]:
    return {"facts": [{"label": piece.label, "quote": piece.text} for piece in given.evidence]}


def join(given: Any) -> dict[str, object]:
    alike = [entry.label for entry in given.facts if "gentleman" in entry.text]
    return {"inferences": [{"rests_on": alike, "inference": MET}]} if len(alike) > 1 else {}


def make_model(**replies: Any) -> ScriptedModel:
    scripts = {
        "plan_reading": lambda given: {"questions": [f"What of {given.question}"]},
        "extract_notes": quote_all,
        "infer_notes": join,
        "refine_questions": lambda _: {},
        "answer": lambda _: {"answer": "Herbert"},
        "rephrase": lambda given: {"question": f"full: {given.question}"},
    }
    return ScriptedModel({**scripts, **replies})


@contextmanager
def open_tome(here: Any, model: ScriptedModel, **settings: Any):
    with Tome.open(here / "a.tome", embedder="hash", model=model, **settings) as tome:
        tome.add(*DOCUMENTS)
        yield tome


def inputs(model: ScriptedModel, role: str) -> list[Any]:
    return [call.given for call in model.calls if call.role == role]


def test_the_next_question_starts_from_what_is_known(here):
    model = make_model()
    with open_tome(here, model) as tome:
        tome.session("s").ask("Who fought?", system=SYSTEM)
    model.calls.clear()
    model._replies["extract_notes"] = lambda _: {}
    with Tome.open(here / "a.tome", model=model) as tome:
        answer = tome.session("s").ask("Had they met?")
        record = tome.session("s").read()
    roles = [call.role for call in model.calls]
    assert roles[:4] == ["rephrase", "plan_reading", "infer_notes", "refine_questions"], "before the first chunk"
    assert roles.count("infer_notes") == 1
    (inferred,) = inputs(model, "infer_notes")
    assert [entry.text for entry in inferred.facts] == [document.text for document in DOCUMENTS]
    assert inferred.questions == ["What of full: Had they met?"], "the questions begin anew"
    assert answer.session.notes == (MET,)
    assert len(answer.session.passages) == 3, "the answer saw quotations of all three"
    assert [piece.text for piece in inputs(model, "answer")[0].evidence] == [document.text for document in DOCUMENTS]
    assert (record.kind, record.memory["questions"], record.memory["answer"]) == ("ledger", [], "")


def test_what_rests_on_a_removed_document_goes_with_it(here):
    with open_tome(here, make_model()) as tome:
        session = tome.session("s")
        session.ask("Who fought?", system=SYSTEM)
        assert MET in json.dumps(tome.store.note(SESSIONS, "s"))
        tome.remove("a")
        dumped = json.dumps(tome.store.note(SESSIONS, "s"))
        assert "garden" not in dumped
        assert DOCUMENTS[1].text in dumped
        assert session.ask("Had they met?").session.notes == ()


def test_the_limit_of_a_session_holds_for_a_ledger(here):
    with open_tome(here, make_model(), session_limit=2) as tome:
        answer = tome.session("s").ask("Who fought?", system=SYSTEM)
        memory = tome.session("s").read().memory
    assert answer.session.dropped == (DOCUMENTS[0].text, DOCUMENTS[1].text)
    assert (len(memory["facts"]), len(memory["inferences"])) == (1, 1)


def test_the_budget_of_the_ledger_holds_for_what_is_carried_over(here):
    model = make_model()
    with open_tome(here, model) as tome:
        session = tome.session("s")
        session.ask("Who fought?", system="cosmir recovery=0 memory=14 chunk=20 context=0")
        model._replies["extract_notes"] = lambda _: {}
        session.ask("Had they met?")
    assert [len(given.facts) for given in inputs(model, "infer_notes")][-1] == 1


def test_a_question_that_fails_leaves_the_ledger_as_it_was(here):
    model = make_model()
    with open_tome(here, model) as tome:
        session = tome.session("s")
        session.ask("Who fought?", system=SYSTEM)
        before = session.read()
        model._replies["answer"] = lambda _: ModelUnavailable("away")
        with pytest.raises(ModelUnavailable):
            session.ask("Had they met?")
        assert session.read() == before


def test_the_note_of_chain_of_agents_ends_with_its_question(here):
    model = make_model(carry_note=lambda _: {"note": "so"})
    with open_tome(here, model) as tome:
        tome.session("s").ask("Who fought?", system="chain_of_agents")
        assert tome.session("s").read().memory is None


def test_the_ledger_of_an_answer_is_drawn_with_the_questions_that_were_closed(here):
    quoted = {"answer": "Herbert", "quotes": [{"label": "E1", "quote": "asked Pip to fight"}]}
    refined = {"answered": [1], "new": ["Where was it?"]}
    model = make_model(answer=lambda _: quoted, refine_questions=[refined, {}, {}])
    with open_tome(here, model) as tome:
        answer = tome.ask("Who fought?", system=SYSTEM)
        picture = tome.draw_answer(Question(text="Who fought?"), answer)
        assert tome.draw_trace(1).nodes == picture.nodes
        passages = {passage.text: passage.id for passage in tome.store.passages().values()}
    groups = {node.label: node.group for node in picture.nodes if node.group in ("open", "settled")}
    assert groups == {"What of Who fought?": "settled", "Where was it?": "open"}
    marks = {node.id: node.use for node in picture.nodes if node.group == "passage"}
    assert marks == {
        passages[DOCUMENTS[0].text]: "cited",
        passages[DOCUMENTS[1].text]: "shown",
        passages[DOCUMENTS[2].text]: "shown",
    }
    inference = next(node for node in picture.nodes if node.group == "inference")
    assert (inference.text, inference.use) == (MET, "cited")
    assert {passage.text for passage in picture.passages} == {document.text for document in DOCUMENTS}
