"""The hypergraph as a picture: points, the entities that they join, and the evidence that they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tomewise.pictures import (
    Group,
    Note,
    Picture,
    PictureNode,
    PicturePassage,
    Sketch,
    describe_outcome,
    find_texts,
    read_uses,
)
from tomewise.types import Answer, Question
from tomewise.working.hypergraph import Hypergraph
from tomewise.working.point import MemoryPoint, PointId, VertexId

_GROUPS = (
    Group("point", "Memory points", "square"),
    Group("entity", "Entities of the graph"),
    Group("overlay", "Entities of this memory"),
    Group("evidence", "Evidence", "diamond"),
)
_DONE = {"insert": "inserted", "update": "updated", "merge": "merged from"}


def draw_memory(memory: Hypergraph, question: Question, answer: Answer) -> Picture:
    """A picture of points, vertices and evidence; a point's notes are its history, also that of merged points.

    The answer's events hold the texts of the evidence, as far as they are known.
    """
    texts, uses, sketch = find_texts(answer.events), read_uses(answer), Sketch()
    grounds = {point.id: memory.find_grounds(point) for point in memory.points}
    known = {point.id: point for point in (*memory.points, *memory.former)}
    owners: dict[VertexId, list[PointId]] = {}
    for point in memory.points:
        sketch.add(
            PictureNode(
                id=point.id,
                label=point.description,
                group="point",
                mark=point.id,
                text=point.description,
                facts={
                    "entities": "; ".join(memory.list_names(point)),
                    "order": point.order,
                    "evidence": len(grounds[point.id]),
                },
                level=point.order,
                use=uses.find_cited(grounds[point.id]),
                notes=tuple(_list_history(point, known, {point.id})),
            )
        )
        for vertex in sorted(point.vertices):
            owners.setdefault(vertex, []).append(point.id)
            sketch.link(point.id, vertex)
    for vertex, points in sorted(owners.items()):
        entity = memory.vertices[vertex]
        sketch.add(
            PictureNode(
                id=vertex,
                label=entity.name,
                group="entity" if entity.in_graph else "overlay",
                facts={"points": ", ".join(points)},
                use=uses.find_cited(node for name in points for node in grounds[name]),
            )
        )
    for name, nodes in grounds.items():
        for node in nodes:
            text = texts.get(node, PicturePassage(id=node))
            sketch.add(
                PictureNode(
                    id=node,
                    label=text.text or node,
                    group="evidence",
                    facts={"from": text.title} if text.title else {},
                    use=uses.find([node]),
                    passages=(node,),
                )
            )
            sketch.link(name, node)
    evidence = dict.fromkeys(node for point in known.values() for step in point.history for node in step.evidence)
    return sketch.finish(
        "graph",
        "Hypergraph",
        _GROUPS,
        about=question.text,
        outcome=describe_outcome(answer),
        passages=tuple(texts[node] for node in evidence if node in texts),
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
