"""Pictures of working memories: hypergraphs, and what rests on what."""

from __future__ import annotations

from tomewise.loops.working_pictures import draw_memory
from tomewise.types import Answer, Event, Question
from tomewise.working.hypergraph import Hypergraph, Vertex

XODAR, ISSUS, CARTER = Vertex("e-1", "Xodar"), Vertex("e-2", "Issus"), Vertex("o-3", "Carter", in_graph=False)


def make_memory() -> Hypergraph:
    memory = Hypergraph()
    memory.insert("Carter defeated Xodar.", [CARTER, XODAR], ["p1"])
    memory.insert("Issus degraded Xodar.", [ISSUS, XODAR], ["p2"])
    memory.update("M2", "Issus made Xodar a slave.", ["p3"])
    memory.insert("Issus is a goddess.", [ISSUS], ["p4"])
    memory.merge(["M1", "M2"], "Xodar became a slave because Carter defeated him.")
    return memory


def test_points_vertices_evidence_and_history_are_joined():
    read = Event(name="retrieved", detail={"evidence": [{"id": "p1", "text": "He fell."}]})
    picture = draw_memory(make_memory(), Question(text="Why?"), Answer(text="", events=(read,)))
    assert {node.id: node.group for node in picture.nodes} == {
        **dict.fromkeys(["M3", "M4"], "point"),
        **dict.fromkeys(["e-1", "e-2"], "entity"),
        "o-3": "overlay",
        **dict.fromkeys(["p1", "p2", "p3", "p4"], "evidence"),
    }
    links = {(link.source, link.target) for link in picture.links}
    assert {end for start, end in links if start == "M4"} == {"e-1", "e-2", "o-3", "p1", "p2", "p3"}
    assert {end for start, end in links if start == "M3"} == {"e-2", "p4"}
    nodes = {node.id: node for node in picture.nodes}
    assert [nodes[id].label for id in ("p1", "p2", "o-3")] == ["He fell.", "p2", "Carter"]
    assert [(note.title, note.passages) for note in nodes["M4"].notes] == [
        ("M4 merged from M1, M2", ()),
        ("M1 inserted", ("p1",)),
        ("M2 updated", ("p3",)),
        ("M2 inserted", ("p2",)),
    ]
    assert picture.shown == picture.total == 9
