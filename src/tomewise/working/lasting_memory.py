"""What a working memory must do to outlive its question. A session knows nothing else about it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import fields
from typing import Any, Protocol, TypeVar, runtime_checkable

from tomewise.errors import StoreError
from tomewise.types import Answer, Event, NodeId, Question
from tomewise.types.plain import describe_invalid, read_plain

T = TypeVar("T")


class WorkingMemory(Protocol):
    """What a loop knows after a question.

    `kind` names the type, such as "hypergraph"; a dump is loaded only by a loop with the same kind. `notes` are its
    entries as texts, one each, in the order in which they came.
    """

    @property
    def kind(self) -> str: ...
    @property
    def notes(self) -> tuple[str, ...]: ...

    def find_nodes(self) -> frozenset[NodeId]:
        """All nodes of the long-term memory that its entries rest on."""

    def forget(self, nodes: Collection[NodeId]) -> tuple[str, ...]:
        """Remove every entry that rests on one of these nodes. Returns the notes that left."""

    def shrink(self, most: int) -> tuple[str, ...]:
        """Remove entries until at most so many are left. Returns the notes that left."""

    def dump(self) -> dict[str, Any]:
        """The entries as plain JSON data."""


@runtime_checkable
class MemoryLoop(Protocol):
    """A loop that can go on with what it knew after an earlier question."""

    def open_memory(self, data: object = None) -> WorkingMemory:
        """A new working memory, or the one of which `dump` made `data`. Raises StoreError for damaged data."""

    def run(self, question: Question, memory: Any = None) -> AsyncIterator[Event | Answer]:
        """Events, then the answer. A `memory` that is given is used and changed."""


def make_damage_error(problem: str) -> StoreError:
    """The error of data from which no working memory can be made."""
    return StoreError(f"this working memory is damaged ({problem}): begin a new one")


def load_memory(kind: type[T], data: Any) -> T:
    """The dataclass of this kind that `data` is the JSON of, with all of its fields. Raises StoreError if it is not."""
    known: Any = kind
    if isinstance(data, dict) and (missing := sorted({each.name for each in fields(known)} - data.keys())):
        raise make_damage_error(f"it lacks {', '.join(missing)}")
    try:
        return read_plain(kind, data)
    except ValueError as error:
        raise make_damage_error(describe_invalid(error)) from None


def check_labels(labels: Sequence[str], letters: str, last: int) -> None:
    """Raise StoreError unless each label is one of these letters with a number up to the last, none of them twice."""
    numbers = [int(label[1:]) for label in labels if re.fullmatch(rf"[{letters}][1-9]\d{{0,8}}", label)]
    if len(numbers) < len(labels) or max(numbers, default=0) > last:
        raise make_damage_error(f"a label was never given (the last one is {last})")
    if len(set(numbers)) < len(numbers):
        raise make_damage_error("two entries have the same label")
