"""The picture of a pool, from the events of an answer."""

from __future__ import annotations

import pytest

from tomewise.errors import UsageError
from tomewise.events import make_event
from tomewise.loops.working_pictures import draw_hypergraph, draw_pool
from tomewise.types import Answer, Event, Question, Quote, Statement

QUESTION = Question(text="Who forged the letter?")


def recall(step: int, probe: str, layer: str, *nodes: str) -> Event:
    pieces = [{"id": node, "layer": layer, "score": 0.5, "title": "T", "text": f"Text of {node}"} for node in nodes]
    return make_event("recalled", step, probe=probe, layer=layer, evidence=pieces)


def encode(step: int, probe: str, cue: str) -> Event:
    return make_event("encoded", step, probe=probe, layer="passages", cue=cue, support=["p1"])


def attempt(step: int, answer: str, missing: str, *shown: str) -> Event:
    fields = {"answer": answer, "choice": None, "failed": not answer, "missing": missing, "shown": shown}
    return make_event("tried", step, **fields, cut=0, notes=[], kept="")


EVENTS = (
    recall(0, QUESTION.text, "passages", "p1", "p2"),
    attempt(0, "", "the hand", "p1", "p2"),
    encode(0, QUESTION.text, "The letter is forged."),
    recall(1, "whose hand", "passages", "p3"),
    recall(1, "whose hand", "tree"),
    recall(1, "what ink", "passages", "p3", "p4"),
    encode(1, "whose hand", "It is the doctor's hand."),
    attempt(1, "the doctor", "", "p1", "p3"),
)
CITED = Quote(document="d", passage="p3", position=0, start=0, end=1, text="x")
ANSWER = Answer(text="the doctor", events=EVENTS, statements=(Statement(text="the doctor", quotes=(CITED,)),))


def test_a_pool_is_a_tree_by_cycle_probe_and_layer():
    picture = draw_pool(QUESTION, ANSWER)
    labels = {node.id: node.label for node in picture.nodes}
    links = [(labels[link.source], labels[link.target]) for link in picture.links]
    assert links[:4] == [
        (QUESTION.text, "First search"),
        ("First search", QUESTION.text),
        (QUESTION.text, "passages: 2 new"),
        ("passages: 2 new", "Text of p1"),
    ]
    assert ("Cycle 1", "whose hand") in links
    assert ("whose hand", "tree: nothing new") in links
    assert sum(label == "Text of p3" for _, label in links) == 2  # two searches brought it; it is one node
    assert (picture.kind, picture.about, picture.outcome) == ("tree", QUESTION.text, "the doctor")
    uses = {node.label: node.use for node in picture.nodes if node.group == "evidence"}
    assert uses == {"Text of p1": "shown", "Text of p2": "", "Text of p3": "cited", "Text of p4": ""}
    notes = {node.label: [note.text for note in node.notes] for node in picture.nodes}
    assert (notes["First search"], notes["whose hand"]) == (["Declined: the hand"], ["It is the doctor's hand."])


@pytest.mark.parametrize("draw", [draw_pool, draw_hypergraph])
def test_events_without_a_working_memory_are_refused(draw):
    with pytest.raises(UsageError, match="hold no"):
        draw(QUESTION, Answer(text="", events=(Event(name="stopped"),)))
