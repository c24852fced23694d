"""What a piece of evidence is and where it stands, in the words of a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tomewise.store.records import PASSAGES
from tomewise.types import DocumentId, Evidence

PASSAGE = "passage"  # the only kind that may be quoted
EXTRACTS = "extracts"  # the layer of evidence that is words of passages


@dataclass(frozen=True, slots=True)
class Origin:
    """`document` is the last part of its id, `place` as "part 12 of 59". Both may be empty."""

    document: str = ""
    place: str = ""


def name_kind(piece: Evidence) -> str:
    """What a piece of evidence is: as its layer declares it, else the name of the layer."""
    return piece.kind or (PASSAGE if piece.layer == PASSAGES else piece.layer)


def describe_origin(places: Sequence[tuple[DocumentId, int]], totals: Mapping[DocumentId, int]) -> Origin:
    """Where passages stand: their documents, and positions from 0. `totals` counts the passages of each document."""
    documents = list(dict.fromkeys(document for document, _ in places))
    if len(documents) != 1:
        return Origin(place=f"{len(documents)} documents" if documents else "")
    (document,) = documents
    name, total = document.rstrip("/").rsplit("/", 1)[-1], totals.get(document, 0)
    parts = sorted({position + 1 for _, position in places})
    if total < 2:
        return Origin(name)
    if len(parts) == 1:
        return Origin(name, f"part {parts[0]} of {total}")
    gaps = "" if parts[-1] - parts[0] + 1 == len(parts) else ", with gaps"
    return Origin(name, f"parts {parts[0]} to {parts[-1]} of {total}{gaps}")
