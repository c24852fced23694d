"""The type of pictures: plain JSON both ways, and what cannot be a picture."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drawn import read_picture

from tomewise.errors import UsageError
from tomewise.events import Tried
from tomewise.pictures import (
    Group,
    Note,
    Picture,
    PictureLink,
    PictureNode,
    PicturePassage,
    find_texts,
    list_nodes,
    read_uses,
    shorten_label,
)
from tomewise.types import Answer, Citation, Event

TEXTS = st.text(max_size=12)
IDS = st.lists(TEXTS, max_size=3).map(tuple)
NOTES = st.builds(Note, title=TEXTS, text=TEXTS, passages=IDS)


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    ids = draw(st.lists(TEXTS, min_size=1, max_size=4, unique=True))
    facts = st.dictionaries(TEXTS, TEXTS | st.integers(-9, 9) | st.floats(-1, 1), max_size=2)
    more = {"label": TEXTS, "facts": facts, "passages": IDS, "notes": st.lists(NOTES, max_size=2).map(tuple)}
    nodes = [
        draw(st.builds(PictureNode, id=st.just(name), group=st.just("g"), use=st.sampled_from(["", "shown"]), **more))
        for name in ids
    ]
    ends = st.sampled_from(ids)
    return Picture(
        kind=draw(st.sampled_from(["graph", "tree", "line", "table"])),
        title=draw(TEXTS),
        nodes=tuple(nodes),
        links=tuple(draw(st.lists(st.builds(PictureLink, source=ends, target=ends, label=TEXTS), max_size=3))),
        groups=(Group(id="g", label=draw(TEXTS), shape="diamond"),),
        passages=tuple(draw(st.lists(st.builds(PicturePassage, id=TEXTS, text=TEXTS, place=TEXTS), max_size=2))),
        missing=draw(IDS),
    )


@settings(max_examples=40)
@given(pictures())
def test_json_goes_both_ways(picture):
    assert read_picture(json.loads(json.dumps(picture.as_json()))) == picture


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
    cited = Citation(document="d", passage="p2", position=0, start=0, end=1, quote="x")
    events = (
        Tried(answer="", choice=None, failed=True, shown=["p1"], cut=0, notes=()),
        Tried(step=1, answer="x", choice=None, failed=False, shown=["p2", "p3"], cut=0, notes=()),
        Event(name="stopped"),
    )
    uses = read_uses(Answer(text="x", citations=(cited,), events=events))
    wanted = {"p1": "", "p2": "cited", "p3": "shown", "p1 p3": "shown"}
    assert {nodes: uses.find(nodes.split()) for nodes in wanted} == wanted


SHORT, WHOLE = ({"node": "p", "text": text, "title": "T"} for text in ("Once…", "Once upon a time."))


@pytest.mark.parametrize(
    ("evidence", "nodes", "texts"),
    [
        ([[SHORT], [WHOLE]], ["p"], {"p": ("Once upon a time.", "T")}),  # the longest text counts
        ([[WHOLE], [SHORT]], ["p"], {"p": ("Once upon a time.", "T")}),
        # An event of any shape.
        (
            [[None, {"node": ["p"], "text": "no id"}, {"node": "p", "text": 5}, {"node": "q", "title": None}], 3],
            ["p", "q"],
            {"p": ("5", ""), "q": ("", "")},
        ),
        (
            [
                [{"node": "b"}, {"node": "a"}, None, "text", {"node": 4}, {}],
                "none",
                None,
                [{"node": "b"}, {"node": "c"}],
            ],
            ["b", "a", "c"],
            dict.fromkeys("bac", ("", "")),
        ),
    ],
)
def test_nodes_of_evidence_are_listed_once_with_their_texts_whatever_an_event_holds(evidence, nodes, texts):
    events = [Event(name="recalled", detail={"evidence": pieces}) for pieces in evidence]
    assert list_nodes([*events, Event(name="odd", detail={})]) == nodes
    assert {node: (found.text, found.title) for node, found in find_texts(events).items()} == texts


def test_labels_are_one_short_line():
    assert shorten_label(" a\n b ") == "a b"
    long = shorten_label("word " * 100)
    assert len(long) <= 80
    assert long.endswith("…")
