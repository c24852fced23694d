"""What an evaluation is made of: datasets and their items, what a system predicted, and the two side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tomewise.types import Document, DocumentId, PassageId, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Gold evidence by place: the characters `document.text[start:end]`."""

    document: DocumentId
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question with all the gold that its dataset gives; what it does not give is empty.

    `answers` are reference answers, any of which is right; `correct` is the letter of the right option.
    `supporting` are ids of gold documents, `spans` gold places. `documents` are what the question is asked over
    (empty: the whole corpus). `slices` are for breaking a table down: type, hops, length; claims that are scored
    in pairs share the value of the slice `pair`.
    """

    id: str
    question: Question
    answers: tuple[str, ...] = ()
    correct: str | None = None
    supporting: tuple[DocumentId, ...] = ()
    spans: tuple[Span, ...] = ()
    documents: tuple[DocumentId, ...] = ()
    slices: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Documents and the questions asked over them. `openie` is a file of given entities and triples, where there."""

    name: str
    documents: tuple[Document, ...]
    items: tuple[Item, ...]
    openie: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPassage:
    """A passage that was retrieved: the characters `document.text[start:end]`."""

    id: PassageId
    document: DocumentId
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a system made of one item; `Prediction()` is a question that failed, which every metric scores 0.

    `choice` is the letter it chose; without one, the letter is looked for in `answer`. `ranked` is best first. `shown`
    are the passages whose own text the answering call saw, `cited` the places that the answer quotes.
    """

    answer: str = ""
    choice: str | None = None
    ranked: tuple[RankedPassage, ...] = ()
    shown: tuple[RankedPassage, ...] = ()
    cited: tuple[RankedPassage, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row of results: an item and what was predicted for it."""

    item: Item
    prediction: Prediction
