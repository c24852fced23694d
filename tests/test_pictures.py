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
    assert [uses.find([node]) for node in ("p1", "p2", "p3")] == ["", "cited", "shown"]
    assert uses.find(["p1", "p3"]) == "shown"


def test_the_longest_text_of_a_piece_counts():
    short, whole = ({"node": "p", "text": text, "title": "T"} for text in ("Once…", "Once upon a time."))
    for order in ([short, whole], [whole, short]):
        found = find_texts([Event(name="recalled", detail={"evidence": [piece]}) for piece in order])
        assert found["p"].text == "Once upon a time."


def test_texts_are_read_from_an_event_of_any_shape():
    pieces = [None, {"node": ["p"], "text": "no id"}, {"node": "p", "text": 5}, {"node": "q", "title": None}]
    found = find_texts([Event(name="odd", detail={"evidence": pieces}), Event(name="odd", detail={"evidence": 3})])
    assert [(text.id, text.text, text.title) for text in found.values()] == [("p", "5", ""), ("q", "", "")]


def test_labels_are_one_short_line():
    assert shorten_label(" a\n b ") == "a b"
    assert len(shorten_label("word " * 100)) <= 80
    assert shorten_label("word " * 100).endswith("…")


def test_nodes_of_evidence_are_listed_once_whatever_an_event_holds():
    details = [
        {"evidence": [{"node": "b"}, {"node": "a"}, None, "text", {"node": 4}, {}]},
        {"evidence": "none"},
        {"evidence": None},
        {},
        {"evidence": [{"node": "b"}, {"node": "c"}]},
    ]
    assert list_nodes([Event(name="recalled", detail=detail) for detail in details]) == ["b", "a", "c"]
