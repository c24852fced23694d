"""The ledger as a picture: questions, inferences, the facts that they rest on, and the passages of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tomewise.pictures import Group, Note, Picture, PictureLink, PictureNode, Uses, shorten_label
from tomewise.types import PassageId
from tomewise.working.ledger import Fact, Inference, Ledger

_GROUPS = (
    Group(id="question", label="Question", shape="square"),
    Group(id="open", label="Questions still open", shape="square"),
    Group(id="settled", label="Questions that were closed", shape="square"),
    Group(id="inference", label="Inferences"),
    Group(id="fact", label="Facts"),
    Group(id="forgotten", label="Facts forgotten for lack of room"),
    Group(id="passage", label="Passages", shape="diamond"),
)
_ASKED = "question"


def draw_entries(ledger: Ledger, asked: Iterable[str], uses: Uses, *, about: str, outcome: str) -> Picture:
    """A picture of a ledger; a fact that it has forgotten is drawn where an inference rests on it.

    `asked` are the questions there ever were, as far as they are known; `uses` says which passages the answer used.
    """
    facts = {fact.label: fact for inference in ledger.inferences for fact in inference.grounds}
    current = {fact.label: fact for fact in ledger.facts}
    questions = tuple(_make_questions(ledger, asked))
    drawn = facts | current
    passages = dict.fromkeys(fact.passage for fact in drawn.values() if fact.passage)
    nodes = (
        PictureNode(id=_ASKED, label=shorten_label(about), group="question", text=outcome),
        *questions,
        *(_make_inference(inference, uses) for inference in ledger.inferences),
        *(_make_fact(fact, "fact" if label in current else "forgotten", uses) for label, fact in drawn.items()),
        *(
            PictureNode(id=each, label=shorten_label(each), group="passage", use=uses.find([each]), passages=(each,))
            for each in passages
        ),
    )
    return Picture(
        kind="graph",
        title="Ledger",
        about=about,
        outcome=outcome,
        nodes=nodes,
        links=(
            *(PictureLink(source=_ASKED, target=node.id) for node in questions),
            *_list_links(ledger, drawn),
        ),
        groups=_GROUPS,
        shown=len(nodes),
        total=len(nodes),
    )


def _make_questions(ledger: Ledger, asked: Iterable[str]) -> Iterator[PictureNode]:
    open_now = (*ledger.questions, *ledger.nets)
    for number, text in enumerate(dict.fromkeys((*asked, *open_now)), start=1):
        group = "open" if text in open_now else "settled"
        name = f"Q{number}"
        yield PictureNode(id=name, label=shorten_label(text), group=group, mark=name, text=text)


def _make_inference(inference: Inference, uses: Uses) -> PictureNode:
    return PictureNode(
        id=inference.label,
        label=shorten_label(inference.text),
        group="inference",
        mark=inference.label,
        text=inference.text,
        facts={"facts": len(inference.grounds), "passages": len(tuple(filter(None, inference.passages)))},
        use="cited" if uses.find(inference.passages) == "cited" else "",
        notes=tuple(
            Note(title=f"rests on {fact.label}", text=fact.text, passages=_list_passage(fact))
            for fact in inference.grounds
        ),
    )


def _make_fact(fact: Fact, group: str, uses: Uses) -> PictureNode:
    quoted = Note(title="Quotation", text=fact.quote, passages=_list_passage(fact))
    return PictureNode(
        id=fact.label,
        label=shorten_label(fact.text),
        group=group,
        mark=fact.label,
        text=fact.note,
        facts={"quotation": "in the text" if fact.in_text else "not found"},
        use="cited" if uses.find([fact.passage]) == "cited" else "",
        passages=_list_passage(fact),
        notes=(quoted,) if fact.quote else (),
    )


def _list_passage(fact: Fact) -> tuple[PassageId, ...]:
    return (fact.passage,) if fact.passage else ()


def _list_links(ledger: Ledger, drawn: Mapping[str, Fact]) -> Iterator[PictureLink]:
    for inference in ledger.inferences:
        for fact in inference.grounds:
            yield PictureLink(source=inference.label, target=fact.label)
    for label, fact in drawn.items():
        if fact.passage:
            yield PictureLink(source=label, target=fact.passage)
