"""What a working memory must do to outlive its question. A session knows nothing else about it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Any, Protocol, runtime_checkable

from tomewise.errors import StoreError
from tomewise.types import Answer, Event, NodeId, Question


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


def is_issued(label: str, letter: str, last: int) -> bool:
    """Whether this is the letter with a number from 1 to the last one that was issued."""
    number = label.removeprefix(letter)
    return label == f"{letter}{number}" and number.isdecimal() and len(number) < 10 and 0 < int(number) <= last
