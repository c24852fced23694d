"""The picture of a hypergraph: points, vertices, evidence, and the history of each point."""

from __future__ import annotations

from tomewise.pictures import PicturePassage, Uses
from tomewise.working.hypergraph import Hypergraph, Vertex
from tomewise.working.hypergraph_picture import draw_memory

XODAR, ISSUS, CARTER = Vertex("e-1", "Xodar"), Vertex("e-2", "Issus"), Vertex("o-3", "Carter", in_graph=False)


def make_memory() -> Hypergraph:
    memory = Hypergraph()
    memory.insert("Carter defeated Xodar.", [CARTER, XODAR], ["p1"])
    memory.insert("Issus degraded Xodar.", [ISSUS, XODAR], ["p2"])
    memory.update("M2", "Issus made Xodar a slave.", ["p3"])
    memory.insert("Issus is a goddess.", [ISSUS], ["p4"])
    memory.merge(["M1", "M2"], "Xodar became a slave because Carter defeated him.")
    return memory


def test_points_vertices_and_evidence_are_joined():
    picture = draw_memory(make_memory(), {"p1": PicturePassage(id="p1", text="He fell.")}, about="Why?")
    groups = {node.id: node.group for node in picture.nodes}
    assert groups == {
        **dict.fromkeys(["M3", "M4"], "point"),
        **dict.fromkeys(["e-1", "e-2"], "entity"),
        "o-3": "overlay",
        **dict.fromkeys(["p1", "p2", "p3", "p4"], "evidence"),
    }
    links = {(link.source, link.target) for link in picture.links}
    assert {end for start, end in links if start == "M4"} == {"e-1", "e-2", "o-3", "p1", "p2", "p3"}
    assert {end for start, end in links if start == "M3"} == {"e-2", "p4"}
    labels = {node.id: node.label for node in picture.nodes}
    assert (labels["p1"], labels["p2"], labels["o-3"]) == ("He fell.", "p2", "Carter")
    assert picture.shown == picture.total == 9


def test_the_history_also_tells_of_merged_points():
    picture = draw_memory(make_memory(), {})
    merged = next(node for node in picture.nodes if node.id == "M4")
    titles = [(note.title, note.passages) for note in merged.notes]
    assert titles == [
        ("M4 merged from M1, M2", ()),
        ("M1 inserted", ("p1",)),
        ("M2 updated", ("p3",)),
        ("M2 inserted", ("p2",)),
    ]


def test_what_the_answer_cites_is_marked():
    uses = Uses(frozenset({"p3", "p4"}), frozenset({"p3"}))
    marks = {node.id: node.use for node in draw_memory(make_memory(), {}, uses).nodes}
    assert {name for name, use in marks.items() if use == "cited"} == {"M4", "p3", "e-1", "e-2", "o-3"}
    assert {name for name, use in marks.items() if use == "shown"} == {"p4"}


def test_an_empty_memory_is_an_empty_picture():
    assert draw_memory(Hypergraph(), {}).nodes == ()
