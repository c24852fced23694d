"""Pictures of what loops remembered while they answered, read from the events of an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tomewise.calls import CallCount, read_calls
from tomewise.errors import UsageError
from tomewise.events import is_event, read_common
from tomewise.memory.communities.communities_picture import draw_communities
from tomewise.pictures import (
    Group,
    Note,
    Picture,
    PictureNode,
    PicturePassage,
    Sketch,
    Uses,
    describe_outcome,
    find_texts,
    read_uses,
)
from tomewise.types import Answer, Event, Loop, Question
from tomewise.working.hypergraph import Hypergraph, MemoryPoint, PointId, VertexId

if TYPE_CHECKING:
    from tomewise.memory.communities.community_names import CommunityNames
    from tomewise.store.contract import Readable

_GROUPS_OF_HYPERGRAPH = (
    Group("point", "Memory points", "square"),
    Group("entity", "Entities of the graph"),
    Group("overlay", "Entities of this memory"),
    Group("evidence", "Evidence", "diamond"),
)
_DONE = {"insert": "inserted", "update": "updated", "merge": "merged from"}
_GROUPS_OF_POOL = (
    Group("question", "Question", "square"),
    Group("cycle", "Cycles", "square"),
    Group("probe", "Probes"),
    Group("unit", "Searches of a layer"),
    Group("evidence", "Evidence", "diamond"),
)


@runtime_checkable
class Drawable(Protocol):
    """A loop with a working memory that can be drawn from the events of its answers."""

    def draw(self, question: Question, answer: Answer) -> Picture:
        """Raises UsageError if the events do not hold the working memory (any more)."""


@dataclass(frozen=True, eq=False)
class OnCommunities:
    """A loop over the communities of a graph: an answer is drawn on these, with what it used highlighted."""

    loop: Loop
    store: Readable
    names: CommunityNames

    @property
    def calls(self) -> CallCount:
        """Those of the loop."""
        return read_calls(self.loop)

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """The events and the answer of the loop."""
        async for output in self.loop.run(question):
            yield output

    def draw(self, question: Question, answer: Answer) -> Picture:
        """The communities as they are now."""
        drawn = draw_communities(self.store, self.names, uses=read_uses(answer))
        return replace(drawn, about=question.text, outcome=describe_outcome(answer))


def draw_hypergraph(question: Question, answer: Answer) -> Picture:
    """The hypergraph at the end. Raises UsageError without it."""
    for event in reversed(answer.events):
        if is_event(event, "answered from points"):
            return draw_memory(Hypergraph.load(event.detail["memory"]), question, answer)
    raise _refuse("hypergraph")


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
        _GROUPS_OF_HYPERGRAPH,
        about=question.text,
        outcome=describe_outcome(answer),
        passages=tuple(texts[node] for node in evidence if node in texts),
    )


def _list_history(point: MemoryPoint, known: Mapping[PointId, MemoryPoint], listed: set[PointId]) -> Iterator[Note]:
    """The history of a point, the newest step first, then that of the points merged into it, each once."""
    for step in reversed(point.history):
        parts = f" {', '.join(step.earlier)}" if step.earlier else ""
        title = f"{point.id} {_DONE[step.operation]}{parts}"
        yield Note(title=title, text=step.description, passages=step.grounds)
        for part in step.earlier:
            if part not in listed:
                listed.add(part)
                yield from _list_history(known[part], known, listed)


def draw_pool(question: Question, answer: Answer) -> Picture:
    """The pool as a tree: cycles, their probes, the layers searched, and what each search brought."""
    searches = [event for event in answer.events if is_event(event, "recalled")]
    if not searches:
        raise _refuse("pool")
    uses, sketch, outcome = read_uses(answer), Sketch(), describe_outcome(answer)
    root = sketch.add(PictureNode(id="question", label=question.text, group="question", text=outcome))
    for search in searches:
        _add_search(sketch, root, search, uses)
    for event in answer.events:
        for probe, note in _make_notes(event):
            name = f"probe {event.step} {probe}" if probe else f"cycle {event.step}"
            if node := sketch.nodes.get(name):
                sketch.nodes[name] = replace(node, notes=(*node.notes, note))
    passages = tuple(find_texts(answer.events).values())
    return sketch.finish("tree", "Pool", _GROUPS_OF_POOL, about=question.text, outcome=outcome, passages=passages)


def _add_search(sketch: Sketch, root: str, event: Event, uses: Uses) -> None:
    """Add what one search of a layer brought, below its probe and its cycle."""
    pieces, probe, layer = read_common(event).evidence, event.detail["probe"], event.detail["layer"]
    title = f"Cycle {event.step}" if event.step else "First search"
    cycle = PictureNode(id=f"cycle {event.step}", label=title, group="cycle", mark=str(event.step))
    asked = PictureNode(id=f"probe {event.step} {probe}", label=probe, group="probe", text=probe)
    unit = PictureNode(
        id=f"search {event.step} {layer} {probe}",
        label=f"{layer}: {len(pieces) or 'nothing'} new",
        group="unit",
        facts={"layer": layer, "new pieces": len(pieces)},
        use=uses.find(piece.id for piece in pieces),
    )
    found = sketch.add(unit, sketch.add(asked, sketch.add(cycle, root)))
    for piece in pieces:
        evidence = PictureNode(
            id=piece.id,
            label=piece.text or piece.title or piece.id,
            group="evidence",
            facts={"layer": piece.layer, "score": piece.score},
            use=uses.find([piece.id]),
            passages=(piece.id,),
        )
        sketch.add(evidence, found)


def _make_notes(event: Event) -> list[tuple[str, Note]]:
    """The notes of one event, each with the probe that it belongs to, or an empty text for the whole cycle."""
    detail = event.detail
    if is_event(event, "encoded") and detail["cue"]:
        note = Note(title=f"Cue ({detail['layer']})", text=detail["cue"], passages=tuple(detail["support"]))
        return [(detail["probe"], note)]
    if is_event(event, "fused") and detail["cue"]:
        return [("", Note(title="What earlier cues say together", text=detail["cue"]))]
    if is_event(event, "tried", "forced"):
        text = f"Declined: {detail['missing']}" if detail["failed"] else detail["answer"]
        return [("", Note(title="Attempt to answer", text=text, passages=tuple(detail["shown"])))]
    return []


def _refuse(what: str) -> UsageError:
    return UsageError(f"the events of this answer hold no {what}: ask again, or raise trace_bytes for stored traces")
