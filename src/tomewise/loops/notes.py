"""What a relay writes down while it reads for one question, and what the answering role sees of that."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tomewise.calls import CallCount
from tomewise.loops.desk import Desk
from tomewise.loops.steps import Skipped
from tomewise.reading.chunks import Chunk
from tomewise.recall.ranking import as_evidence
from tomewise.types import Event, Evidence, Question

EXTRACTS = "extracts"  # the layer of evidence that is words of passages
BETWEEN_QUOTES = " … "


@dataclass(frozen=True, slots=True)
class Findings:
    """What the answering role sees: exact words of passages, and notes; of each the most important first."""

    extracts: tuple[Evidence, ...] = ()
    notes: tuple[str, ...] = ()


class Notes(Protocol):
    """What one reading writes down: its working memory. `unread` are the chunks whose call failed."""

    unread: list[Chunk]
    skipped: Skipped

    def read(self, chunks: Sequence[Chunk]) -> AsyncIterator[Event]:
        """Read all chunks, in the order given."""
        ...

    def collect(self) -> Findings:
        """What the answering role is to see."""
        ...

    def conclude(self, answer: str) -> Mapping[str, Any] | None:
        """Note the answer. Returns the whole ledger as plain data, or None."""
        ...


class Reading(Protocol):
    """A way of reading: opens empty notes for a question."""

    @property
    def calls(self) -> CallCount:
        """The calls of one reading."""
        ...

    def open(self, question: Question) -> Notes: ...


def list_passages(chunk: Chunk) -> list[Evidence]:
    """The passages of a chunk as evidence, in document order: E1, E2, ..."""
    return [as_evidence(passage, 1.0) for passage in chunk.passages]


def describe_chunk(chunk: Chunk, desk: Desk) -> str:
    """Where a chunk stands: "story.md, parts 12 to 30 of 59"."""
    piece = as_evidence(chunk.passages[0], 1.0)
    sources = tuple(passage.id for passage in chunk.passages)
    (shown,) = desk.show([Evidence(node=piece.node, layer="chunk", text="", score=1.0, sources=sources)])
    return ", ".join(filter(None, (piece.title or shown.document, shown.place)))
