"""Pictures of working memories: hypergraphs and ledgers, and what rests on what."""

from __future__ import annotations

from dataclasses import replace

from tomewise.loops.working_pictures import draw_entries
from tomewise.pictures import Uses
from tomewise.working.ledger import Ledger, LedgerFact, add_facts, add_inferences, infer_from


def count(texts):
    return [len(text.split()) for text in texts]


def make_ledger() -> Ledger:
    facts = [
        LedgerFact(label="", text="Pip fought.", passage="p1", quote="Pip fought.", in_text=True),
        LedgerFact(label="", text="Herbert was pale.", passage="p2", quote="pale", in_text=True),
        LedgerFact(label="", text="He flew.", quote="flew"),
    ]
    ledger = add_facts(Ledger(questions=("Who was it?",)), facts, count)
    ledger = add_inferences(ledger, [infer_from(ledger, "They had met.", ["F1", "F2"])], count)
    return replace(ledger, facts=ledger.facts[1:])


def test_inferences_facts_and_passages_are_joined():
    asked = ["Who fought?", "Who was it?"]
    picture = draw_entries(make_ledger(), asked, Uses(), about="Had they met?", outcome="Yes")
    groups = {"question": "question", "Q1": "settled", "Q2": "open", "I4": "inference", "F1": "forgotten", "F2": "fact"}
    assert {node.id: node.group for node in picture.nodes} == groups | {"F3": "fact", "p1": "passage", "p2": "passage"}
    links = {("question", "Q1"), ("question", "Q2"), ("I4", "F1"), ("I4", "F2"), ("F1", "p1"), ("F2", "p2")}
    assert {(link.source, link.target) for link in picture.links} == links
    nodes = {node.id: node for node in picture.nodes}
    assert nodes["question"].text == "Yes"
    assert nodes["F3"].facts == {"quotation": "not found"}
    assert [(note.title, note.text, note.passages) for note in nodes["I4"].notes] == [
        ("rests on F1", "Pip fought.", ("p1",)),
        ("rests on F2", "Herbert was pale.", ("p2",)),
    ]
    assert (picture.kind, picture.shown, picture.total) == ("graph", 9, 9)
