"""Pictures of what loops remembered while they answered, read from the events of an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
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
    PictureLink,
    PictureNode,
    Uses,
    describe_outcome,
    find_texts,
    read_uses,
    shorten_label,
)
from tomewise.types import Answer, Event, Evidence, Loop, Question
from tomewise.working.hypergraph import Hypergraph
from tomewise.working.hypergraph_picture import draw_memory
from tomewise.working.ledger import load
from tomewise.working.ledger_picture import draw_entries

if TYPE_CHECKING:
    from tomewise.memory.communities.community_names import CommunityNames
    from tomewise.store.contract import Readable

_GROUPS = (
    Group(id="question", label="Question", shape="square"),
    Group(id="cycle", label="Cycles", shape="square"),
    Group(id="probe", label="Probes"),
    Group(id="unit", label="Searches of a layer"),
    Group(id="evidence", label="Evidence", shape="diamond"),
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


def draw_ledger(question: Question, answer: Answer) -> Picture:
    """The ledger at the end, with the questions that were closed on the way. Raises UsageError without it."""
    for event in reversed(answer.events):
        if is_event(event, "answered") and (ledger := event.detail.get("ledger")):
            shown = frozenset(event.detail["shown"])  # passages, while `answer.evidence` are words of these
            return draw_entries(
                load(ledger),
                _list_questions(answer.events),
                replace(read_uses(answer), shown=shown),
                about=question.text,
                outcome=describe_outcome(answer),
            )
    raise _refuse("ledger")


def _list_questions(events: Sequence[Event]) -> Iterator[str]:
    """All questions that a ledger ever held, in the order in which they came."""
    for event in events:
        if is_event(event, "reading planned"):
            yield from (*event.detail["questions"], *event.detail["nets"])
        elif is_event(event, "ledger updated"):
            yield from (str(row.get("text")) for row in event.detail["pool"] if row.get("kind") == "question")


def draw_pool(question: Question, answer: Answer) -> Picture:
    """The pool as a tree: cycles, their probes, the layers searched, and what each search brought."""
    searches = [event for event in answer.events if is_event(event, "recalled")]
    if not searches:
        raise _refuse("pool")
    outcome = describe_outcome(answer)
    drawing = _PoolDrawing(read_uses(answer))
    drawing.add("", PictureNode(id="question", label=shorten_label(question.text), group="question", text=outcome))
    for search in searches:
        drawing.add_search(search)
    steps = [(event.step, note) for event in answer.events for note in _make_notes(event)]
    drawing.add_notes(steps)
    nodes = tuple(drawing.nodes.values())
    return Picture(
        kind="tree",
        title="Pool",
        about=question.text,
        outcome=outcome,
        nodes=nodes,
        links=tuple(drawing.links),
        groups=_GROUPS,
        passages=tuple(find_texts(answer.events).values()),
        shown=len(nodes),
        total=len(nodes),
    )


class _PoolDrawing:
    """Collects the nodes and links of the tree."""

    def __init__(self, uses: Uses) -> None:
        self._uses = uses
        self.nodes: dict[str, PictureNode] = {}
        self.links: list[PictureLink] = []

    def add(self, parent: str, node: PictureNode) -> str:
        """Add a node once, and the link from its parent."""
        self.nodes.setdefault(node.id, node)
        link = PictureLink(source=parent, target=node.id)
        if parent and link not in self.links:
            self.links.append(link)
        return node.id

    def add_search(self, event: Event) -> None:
        """Add what one search of a layer brought."""
        pieces, probe, layer = read_common(event).evidence, event.detail["probe"], event.detail["layer"]
        use = self._uses.find(piece.id for piece in pieces)
        title = f"Cycle {event.step}" if event.step else "First search"
        cycle = self.add(
            "question", PictureNode(id=f"cycle {event.step}", label=title, group="cycle", mark=str(event.step))
        )
        asked = PictureNode(
            id=f"probe {event.step} {probe}", label=shorten_label(probe), group="probe", text=probe, facts={}
        )
        parent = self.add(cycle, asked)
        unit = PictureNode(
            id=f"search {event.step} {layer} {probe}",
            label=f"{layer}: {len(pieces) or 'nothing'} new",
            group="unit",
            facts={"layer": layer, "new pieces": len(pieces)},
            use=use,
        )
        found = self.add(parent, unit)
        for piece in pieces:
            self.add(found, self._make_evidence(piece))

    def _make_evidence(self, piece: Evidence) -> PictureNode:
        return PictureNode(
            id=piece.id,
            label=shorten_label(piece.text or piece.title or piece.id),
            group="evidence",
            facts={"layer": piece.layer, "score": piece.score},
            use=self._uses.find([piece.id]),
            passages=(piece.id,),
        )

    def add_notes(self, notes: Sequence[tuple[int, tuple[str, Note]]]) -> None:
        """Put cues under their probes, and what came of a cycle under the cycle."""
        for step, (probe, note) in notes:
            name = f"probe {step} {probe}" if probe else f"cycle {step}"
            if node := self.nodes.get(name):
                self.nodes[name] = replace(node, notes=(*node.notes, note))


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
