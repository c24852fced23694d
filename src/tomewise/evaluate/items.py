"""What an evaluation reads and scores: datasets and their items, the predictions of systems, and judgements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tomewise.types import Document, DocumentId, PassageId, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Gold evidence: the characters `document.text[start:end]`."""

    document: DocumentId
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question with the gold of its dataset; fields are empty where the dataset has no such gold.

    `answers` are reference answers; each of them is right. `correct` is the letter of the right option. `supporting`
    are ids of gold documents, `spans` gold text. The question is asked over `documents` (empty: the whole corpus).
    `slices` (type, hops, ...) split a table into parts; claims that are scored as a pair share the value of `pair`.
    """

    id: str
    """Unique within its dataset."""
    question: Question
    """What systems are asked."""
    answers: tuple[str, ...] = ()
    correct: str | None = None
    supporting: tuple[DocumentId, ...] = ()
    spans: tuple[Span, ...] = ()
    documents: tuple[DocumentId, ...] = ()
    slices: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Documents and the questions asked over them. `openie` is a file of published entities and triples, if any."""

    name: str
    """The name under which experiments are kept."""
    documents: tuple[Document, ...]
    """What a tome is made of."""
    items: tuple[Item, ...]
    """The questions."""
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
    """The answer of a system to one item. A question that failed has `Prediction()`, which every metric scores 0.

    `choice` is the letter that the system chose; without one, metrics look for a letter in `answer`. `ranked` is best
    first. `shown` are the passages whose own text the answering call saw, `cited` the text that the answer quotes.
    """

    answer: str = ""
    choice: str | None = None
    ranked: tuple[RankedPassage, ...] = ()
    shown: tuple[RankedPassage, ...] = ()
    cited: tuple[RankedPassage, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """An item and the prediction for it."""

    item: Item
    """The question and its gold."""
    prediction: Prediction
    """What a system answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The score of a judge, and in `detail` its reasons. A judge that failed gives the score 0 and an `error`."""

    score: float
    """From 0 to 1."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
