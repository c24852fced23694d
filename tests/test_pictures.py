"""The type of pictures: what cannot be one, and what is read from the events of an answer."""

from __future__ import annotations

import pytest

from tomewise.errors import UsageError
from tomewise.events import make_event
from tomewise.pictures import Group, Picture, PictureLink, PictureNode, find_texts, list_nodes, read_uses
from tomewise.types import Answer, Event, Quote, Statement


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ({"links": (PictureLink(source="a", target="b"),)}, "add both nodes first"),
        ({"groups": ()}, "add this group first"),
        ({"nodes": (PictureNode(id="a", label="", group="g"),) * 2}, "two nodes with one id"),
    ],
)
def test_a_picture_holds_together(more, part):
    made = {"nodes": (PictureNode(id="a", label="", group="g"),), "groups": (Group(id="g", label=""),)}
    with pytest.raises(UsageError, match=part):
        Picture(kind="graph", title="x", **{**made, **more})


def test_uses_are_read_from_the_last_attempt():
    cited = Quote(document="d", passage="p2", position=0, start=0, end=1, text="x")
    fields = {"choice": None, "missing": "", "cut": 0, "notes": [], "kept": ""}
    events = (
        make_event("tried", answer="", failed=True, shown=["p1"], **fields),
        make_event("tried", 1, answer="x", failed=False, shown=["p2", "p3"], **fields),
        Event(name="tried", detail={"shown": 3}),  # from outside
    )
    uses = read_uses(Answer(text="x", statements=(Statement(text="x", quotes=(cited,)),), events=events))
    wanted = {"p1": "", "p2": "cited", "p3": "shown", "p1 p3": "shown"}
    assert {nodes: uses.find(nodes.split()) for nodes in wanted} == wanted


SHORT, WHOLE = ({"id": "p", "text": text, "title": "T"} for text in ("Once…", "Once upon a time."))


@pytest.mark.parametrize(
    ("evidence", "nodes", "texts"),
    [
        ([[SHORT], [WHOLE]], ["p"], {"p": ("Once upon a time.", "T")}),  # the longest text counts
        ([[WHOLE], [SHORT]], ["p"], {"p": ("Once upon a time.", "T")}),
        # An event of any shape.
        (
            [[None, {"id": ["p"], "text": "no id"}, {"id": "p", "text": 5}, {"id": "q", "title": None}], 3],
            ["p", "q"],
            {"p": ("5", ""), "q": ("", "")},
        ),
        (
            [[{"id": "b"}, {"id": "a"}, None, "text", {"id": 4}, {}], "none", None, [{"id": "b"}, {"id": "c"}]],
            ["b", "a", "c"],
            dict.fromkeys("bac", ("", "")),
        ),
    ],
)
def test_nodes_of_evidence_are_listed_once_with_their_texts_whatever_an_event_holds(evidence, nodes, texts):
    events = [Event(name="recalled", detail={"evidence": pieces}) for pieces in evidence]
    assert list_nodes([*events, Event(name="odd", detail={})]) == nodes
    assert {node: (found.text, found.title) for node, found in find_texts(events).items()} == texts
