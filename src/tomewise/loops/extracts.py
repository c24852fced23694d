"""Extracts: facts as the answering role sees them, in words of their passages that can be cited to the character."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tomewise.language.labels import read_labels
from tomewise.language.roles import NotedFact, Shown
from tomewise.loops.citing import locate
from tomewise.loops.evidence import find_labelled
from tomewise.loops.origins import PASSAGE
from tomewise.recall.ranking import as_evidence
from tomewise.types import Evidence, Passage, PassageId, content_id
from tomewise.working.ledger import Fact, read_number

EXTRACTS = "extracts"  # the layer of evidence that is words of passages
BETWEEN_QUOTES = " … "
NOTED = " (a reader's note, not to be quoted: "  # after a quotation; what follows is not in the passage


def check_fact(noted: NotedFact, passages: Sequence[Passage], shown: Sequence[Shown]) -> Fact:
    """The fact with the passage that has its quote: the one that it names first, else another one of these.

    `shown` are the passages as the reader saw them.
    """
    named = [
        piece.node
        for piece in find_labelled(read_labels(noted.label), [as_evidence(passage, 1.0) for passage in passages])
    ]
    places = {passage.id: _write_place(piece) for passage, piece in zip(passages, shown, strict=True)}
    text = noted.fact or noted.quote
    for passage in sorted(passages, key=lambda passage: passage.id not in named):
        if found := locate(noted.quote, passage):
            text = found.quote if text == noted.quote else text
            place = places[passage.id]
            return Fact(label="", text=text, passage=passage.id, quote=found.quote, place=place, in_text=True)
    where = named[0] if named else ""
    return Fact(label="", text=text, passage=where, quote=noted.quote, place=places.get(where, ""))


def _write_place(shown: Shown) -> str:
    return ", ".join(filter(None, (shown.title or shown.document, shown.place)))


def make_extracts(
    quoted: Mapping[PassageId, Sequence[Fact]], passages: Mapping[PassageId, Passage]
) -> Iterator[Evidence]:
    """The facts of each passage as one piece of evidence."""
    for rank, (passage_id, facts) in enumerate(quoted.items(), start=1):
        if passage := passages.get(passage_id):
            text = _write_extract(passage, facts)
            yield Evidence(
                node=content_id("extract", passage_id, text),
                layer=EXTRACTS,
                kind=PASSAGE,
                text=text,
                score=1 / rank,
                sources=(passage_id,),
                title=passage.title,
                place=passage.place,
            )


def _write_extract(passage: Passage, facts: Sequence[Fact]) -> str:
    """The quotations in the order of the passage, overlapping ones made one; after each what was noted of it."""
    starts = {fact.label: passage.text.find(fact.quote) for fact in facts}
    spans: list[tuple[int, int, list[str]]] = []
    for fact in sorted(facts, key=lambda fact: (starts[fact.label], read_number(fact))):
        start, notes = starts[fact.label], [] if fact.is_quote else [f"{NOTED}{fact.text})"]
        end = start + len(fact.quote)
        if spans and start < spans[-1][1]:
            start, last, earlier = spans.pop()
            end, notes = max(end, last), earlier + notes
        spans.append((start, end, notes))
    return BETWEEN_QUOTES.join(passage.text[start:end] + "".join(notes) for start, end, notes in spans)
