"""The picture of a ledger: questions, inferences, facts and passages, and what rests on what."""

from __future__ import annotations

from dataclasses import replace

from tomewise.pictures import Uses
from tomewise.working.ledger import Fact, Ledger, add_facts, add_inferences, infer_from
from tomewise.working.ledger_picture import draw_entries


def count(texts):
    return [len(text.split()) for text in texts]


def make_ledger() -> Ledger:
    facts = [
        Fact(label="", text="Pip fought.", passage="p1", quote="Pip fought.", in_text=True),
        Fact(label="", text="Herbert was pale.", passage="p2", quote="pale", in_text=True),
        Fact(label="", text="He flew.", quote="flew"),
    ]
    ledger = add_facts(Ledger(questions=("Who was it?",)), facts, count)
    ledger = add_inferences(ledger, [infer_from(ledger, "They had met.", ["F1", "F2"])], count)
    return replace(ledger, facts=ledger.facts[1:])


def test_inferences_facts_and_passages_are_joined():
    picture = draw_entries(make_ledger(), ["Who fought?", "Who was it?"], about="Had they met?", outcome="Yes")
    assert {node.id: node.group for node in picture.nodes} == {
        "question": "question",
        "Q1": "settled",
        "Q2": "open",
        "I4": "inference",
        "F1": "forgotten",
        "F2": "fact",
        "F3": "fact",
        "p1": "passage",
        "p2": "passage",
    }
    assert {(link.source, link.target) for link in picture.links} == {
        ("question", "Q1"),
        ("question", "Q2"),
        ("I4", "F1"),
        ("I4", "F2"),
        ("F1", "p1"),
        ("F2", "p2"),
    }
    nodes = {node.id: node for node in picture.nodes}
    assert nodes["question"].text == "Yes"
    assert nodes["F3"].facts == {"quotation": "not found"}
    assert [(note.title, note.text, note.passages) for note in nodes["I4"].notes] == [
        ("rests on F1", "Pip fought.", ("p1",)),
        ("rests on F2", "Herbert was pale.", ("p2",)),
    ]
    assert (picture.kind, picture.shown, picture.total) == ("graph", 9, 9)


def test_what_the_answer_cites_is_marked():
    uses = Uses(shown=frozenset({"p1", "p2"}), cited=frozenset({"p2"}))
    marks = {node.id: node.use for node in draw_entries(make_ledger(), (), uses).nodes if node.use}
    assert marks == {"I4": "cited", "F2": "cited", "p2": "cited", "p1": "shown"}


def test_an_empty_ledger_shows_the_question_alone():
    assert [node.id for node in draw_entries(Ledger(), about="Who?").nodes] == ["question"]
