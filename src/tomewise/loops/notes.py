"""What a relay writes down while it reads for one question, and what the answering role sees of that."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tomewise.calls import CallCount
from tomewise.loops.desk import Desk
from tomewise.loops.layout import Note
from tomewise.loops.steps import Skipped
from tomewise.reading.chunks import Chunk
from tomewise.recall.ranking import as_evidence
from tomewise.types import DocumentId, Event, Evidence, Passage, Question


@dataclass(frozen=True, slots=True)
class Findings:
    """What the answering role sees: words of passages, the most important first; and notes, the latest last.

    `questions` are those that the reading asked, by which passages are found to show beside.
    """

    extracts: tuple[Evidence, ...] = ()
    notes: tuple[Note, ...] = ()
    questions: tuple[str, ...] = ()


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

    def measure_room(self, question: Question) -> int:
        """The most tokens of a chunk. Raises UsageError if the window of the model is too small."""
        ...

    def count_calls(self, chunks: Sequence[Chunk]) -> int:
        """The most calls that reading these chunks takes."""
        ...

    def open(self, question: Question) -> Notes: ...


def list_passages(chunk: Chunk) -> list[Evidence]:
    """The passages of a chunk as evidence, in document order: E1, E2, ..."""
    return [as_evidence(passage, 1.0) for passage in chunk.passages]


def describe_chunk(chunk: Chunk, desk: Desk) -> str:
    """Where a chunk stands: "story.md, parts 12 to 30 of 59"; of several documents the first and the last part."""
    documents: dict[DocumentId, list[Passage]] = {}
    for passage in chunk.passages:
        documents.setdefault(passage.document, []).append(passage)
    runs = [*documents.values()]
    ends = [_describe_run(run, desk) for run in (runs[:1] if len(runs) == 1 else (runs[0], runs[-1]))]
    return " to ".join(ends) + (f" ({len(runs)} documents)" if len(runs) > 2 else "")


def _describe_run(passages: Sequence[Passage], desk: Desk) -> str:
    sources = tuple(passage.id for passage in passages)
    (shown,) = desk.show([Evidence(node=sources[0], layer="chunk", text="", score=1.0, sources=sources)])
    return ", ".join(filter(None, (passages[0].title or shown.document, shown.place)))
