"""The ledger as a picture: questions, inferences, the facts that they rest on, and the passages of these."""

from __future__ import annotations

from collections.abc import Iterable

from tomewise.pictures import Group, Note, Picture, PictureNode, Sketch, Uses
from tomewise.types import PassageId
from tomewise.working.ledger import Fact, Inference, Ledger

_GROUPS = (
    Group("question", "Question", "square"),
    Group("open", "Questions still open", "square"),
    Group("settled", "Questions that were closed", "square"),
    Group("inference", "Inferences"),
    Group("fact", "Facts"),
    Group("forgotten", "Facts forgotten for lack of room"),
    Group("passage", "Passages", "diamond"),
)
_ASKED = "question"


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
    return sketch.finish("graph", "Ledger", _GROUPS, about=about, outcome=outcome)


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


def _make_fact(fact: Fact, group: str, uses: Uses) -> PictureNode:
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


def _list_passage(fact: Fact) -> tuple[PassageId, ...]:
    return (fact.passage,) if fact.passage else ()
