"""Pictures of what loops remembered while they answered, read from the events of an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
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
    Sketch,
    Uses,
    describe_outcome,
    find_texts,
    read_uses,
)
from tomewise.types import Answer, Event, Loop, PassageId, Question
from tomewise.working.ledger import Inference, Ledger, LedgerFact, load

if TYPE_CHECKING:
    from tomewise.memory.communities.community_names import CommunityNames
    from tomewise.store.contract import Readable

_GROUPS_OF_LEDGER = (
    Group("question", "Question", "square"),
    Group("open", "Questions still open", "square"),
    Group("settled", "Questions that were closed", "square"),
    Group("inference", "Inferences"),
    Group("fact", "Facts"),
    Group("forgotten", "Facts forgotten for lack of room"),
    Group("passage", "Passages", "diamond"),
)
_ASKED = "question"
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


def draw_entries(ledger: Ledger, asked: Iterable[str], uses: Uses, *, about: str, outcome: str) -> Picture:
    """A picture of a ledger; a fact that it has forgotten is drawn where an inference rests on it.

    `asked` are the questions there ever were, as far as they are known; `uses` says which passages the answer used.
    """
    sketch = Sketch()
    sketch.add(PictureNode(id=_ASKED, label=about, group="question", text=outcome))
    current = {fact.label: fact for fact in ledger.facts}
    open_now = (*ledger.questions, *ledger.nets)
    for number, text in enumerate(dict.fromkeys((*asked, *open_now)), start=1):
        group, name = "open" if text in open_now else "settled", f"Q{number}"
        sketch.add(PictureNode(id=name, label=text, group=group, mark=name, text=text), _ASKED)
    for inference in ledger.inferences:
        sketch.add(_make_inference(inference, uses))
        for fact in inference.grounds:
            sketch.link(inference.label, fact.label)
    drawn = {fact.label: fact for inference in ledger.inferences for fact in inference.grounds} | current
    for fact in drawn.values():
        sketch.add(_make_fact(fact, "fact" if fact.label in current else "forgotten", uses))
    for fact in drawn.values():
        for passage in _list_passage(fact):
            use = uses.find([passage])
            sketch.add(
                PictureNode(id=passage, label=passage, group="passage", use=use, passages=(passage,)), fact.label
            )
    return sketch.finish("graph", "Ledger", _GROUPS_OF_LEDGER, about=about, outcome=outcome)


def _make_inference(inference: Inference, uses: Uses) -> PictureNode:
    return PictureNode(
        id=inference.label,
        label=inference.text,
        group="inference",
        mark=inference.label,
        text=inference.text,
        facts={"facts": len(inference.grounds), "passages": len(tuple(filter(None, inference.passages)))},
        use=uses.find_cited(inference.passages),
        notes=tuple(
            Note(title=f"rests on {fact.label}", text=fact.text, passages=_list_passage(fact))
            for fact in inference.grounds
        ),
    )


def _make_fact(fact: LedgerFact, group: str, uses: Uses) -> PictureNode:
    passages = _list_passage(fact)
    return PictureNode(
        id=fact.label,
        label=fact.text,
        group=group,
        mark=fact.label,
        text=fact.note,
        facts={"quotation": "in the text" if fact.in_text else "not found"},
        use=uses.find_cited(passages),
        passages=passages,
        notes=(Note(title="Quotation", text=fact.quote, passages=passages),) if fact.quote else (),
    )


def _list_passage(fact: LedgerFact) -> tuple[PassageId, ...]:
    return (fact.passage,) if fact.passage else ()


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
