"""The hypergraph as a picture: points, the entities that they join, and the evidence that they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tomewise.pictures import (
    Group,
    Note,
    Picture,
    PictureLink,
    PictureNode,
    PicturePassage,
    Use,
    Uses,
    describe_outcome,
    find_texts,
    read_uses,
    shorten_label,
)
from tomewise.types import Answer, NodeId, Question
from tomewise.working.hypergraph import Hypergraph
from tomewise.working.point import MemoryPoint, PointId, Vertex

_GROUPS = (
    Group(id="point", label="Memory points", shape="square"),
    Group(id="entity", label="Entities of the graph"),
    Group(id="overlay", label="Entities of this memory"),
    Group(id="evidence", label="Evidence", shape="diamond"),
)
_DONE = {"insert": "inserted", "update": "updated", "merge": "merged from"}


def draw_memory(memory: Hypergraph, question: Question, answer: Answer) -> Picture:
    """A picture of points, vertices and evidence; a point's notes are its history, also that of merged points.

    The answer's events hold the texts of the evidence, as far as they are known.
    """
    texts, uses = find_texts(answer.events), read_uses(answer)
    grounds = {point.id: memory.find_grounds(point) for point in memory.points}
    known = {point.id: point for point in (*memory.points, *memory.former)}
    points = tuple(_make_point(point, memory, grounds[point.id], known, uses) for point in memory.points)
    ends = {node.id: node.use for node in points}
    used = {vertex for point in memory.points for vertex in point.vertices}
    evidence = dict.fromkeys(node for nodes in grounds.values() for node in nodes)
    nodes = (
        *points,
        *(_make_vertex(memory.vertices[vertex], memory, ends) for vertex in sorted(used)),
        *(_make_evidence(node, texts, uses) for node in evidence),
    )
    found = (node for point in known.values() for step in point.history for node in step.evidence)
    joined = [(point.id, vertex) for point in memory.points for vertex in sorted(point.vertices)]
    rests = [(point, node) for point, nodes in grounds.items() for node in nodes]
    return Picture(
        kind="graph",
        title="Hypergraph",
        about=question.text,
        outcome=describe_outcome(answer),
        nodes=nodes,
        links=tuple(PictureLink(source=a, target=b) for a, b in (*joined, *rests)),
        groups=_GROUPS,
        passages=tuple(texts[node] for node in dict.fromkeys(found) if node in texts),
        shown=len(nodes),
        total=len(nodes),
    )


def _make_point(
    point: MemoryPoint,
    memory: Hypergraph,
    grounds: tuple[NodeId, ...],
    known: Mapping[PointId, MemoryPoint],
    uses: Uses,
) -> PictureNode:
    return PictureNode(
        id=point.id,
        label=shorten_label(point.description),
        group="point",
        mark=point.id,
        text=point.description,
        facts={"entities": "; ".join(memory.list_names(point)), "order": point.order, "evidence": len(grounds)},
        level=point.order,
        use="cited" if uses.find(grounds) == "cited" else "",
        notes=tuple(_list_history(point, known, {point.id})),
    )


def _list_history(point: MemoryPoint, known: Mapping[PointId, MemoryPoint], listed: set[PointId]) -> Iterator[Note]:
    """The history of a point, the newest step first, then that of the points merged into it, each once."""
    for step in reversed(point.history):
        parts = f" {', '.join(step.earlier)}" if step.earlier else ""
        title = f"{point.id} {_DONE[step.operation]}{parts}"
        yield Note(title=title, text=step.description, passages=step.evidence)
        for part in step.earlier:
            if part not in listed:
                listed.add(part)
                yield from _list_history(known[part], known, listed)


def _make_vertex(vertex: Vertex, memory: Hypergraph, uses: Mapping[PointId, Use]) -> PictureNode:
    points = [point.id for point in memory.points if vertex.id in point.vertices]
    return PictureNode(
        id=vertex.id,
        label=shorten_label(vertex.name),
        group="entity" if vertex.in_graph else "overlay",
        facts={"points": ", ".join(points)},
        use="cited" if any(uses[point] == "cited" for point in points) else "",
    )


def _make_evidence(node: NodeId, texts: Mapping[NodeId, PicturePassage], uses: Uses) -> PictureNode:
    text = texts.get(node, PicturePassage(id=node))
    return PictureNode(
        id=node,
        label=shorten_label(text.text or node),
        group="evidence",
        facts={"from": text.title} if text.title else {},
        use=uses.find([node]),
        passages=(node,),
    )
