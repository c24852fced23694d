"""The type of pictures: what cannot be one, and what is read from the events of an answer."""

from __future__ import annotations

import pytest

from tomewise.errors import UsageError
from tomewise.events import make_event
from tomewise.pictures import Group, Picture, PictureLink, PictureNode, list_nodes, read_uses
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


@pytest.mark.parametrize(
    ("evidence", "nodes"),
    [
        ([[{"id": "p", "text": "Once…"}], [{"id": "p", "text": "Once upon a time."}]], ["p"]),
        # An event of any shape.
        ([[None, {"id": ["p"], "text": "no id"}, {"id": "p", "text": 5}, {"id": "q", "title": None}], 3], ["p", "q"]),
        (
            [[{"id": "b"}, {"id": "a"}, None, "text", {"id": 4}, {}], "none", None, [{"id": "b"}, {"id": "c"}]],
            ["b", "a", "c"],
        ),
    ],
)
def test_nodes_of_evidence_are_listed_once_whatever_an_event_holds(evidence, nodes):
    events = [Event(name="recalled", detail={"evidence": pieces}) for pieces in evidence]
    assert list_nodes([*events, Event(name="odd", detail={})]) == nodes
