"""Which inputs are asked about in one call: neighbours in their document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Generic, TypeAlias, TypeVar

from pydantic import BaseModel

from tomewise.memory.ask_each import Replies
from tomewise.types import DocumentId, Layer, LayerReport

K = TypeVar("K")
R = TypeVar("R")
Position: TypeAlias = tuple[DocumentId, int]  # a document, and the position of a passage in it


@dataclass(frozen=True)
class Groups(Generic[K]):
    """Keys that are asked about together. `copies` have the same input as another key, and share its reply."""

    keys: tuple[tuple[K, ...], ...]
    copies: Mapping[K, K]

    def share(self, replies: Replies[K, R], order: Iterable[K]) -> Replies[K, R]:
        """The replies of all keys in this order; a copy has the reply or the failure of the key with the same input."""
        shared: Replies[K, R] = Replies()
        for key in order:
            first = self.copies.get(key, key)
            if first in replies:
                shared[key] = replies[first]
            else:
                shared.failed[key] = replies.failed[first]
        return shared


def group_neighbours(inputs: Mapping[K, BaseModel], positions: Mapping[K, Position], together: int) -> Groups[K]:
    """Group inputs by their positions: 0 to N-1, N to 2N-1 and so on in each document.

    So the groups of a document do not depend on the other documents, nor on the order of adding.
    """
    first: dict[bytes, K] = {}  # by the digest of an input: the inputs of a whole corpus may be long
    copies: dict[K, K] = {}
    groups: dict[Position, list[K]] = {}
    for key in sorted(inputs, key=lambda each: positions[each]):
        same = first.setdefault(sha256(inputs[key].model_dump_json().encode("utf-8", "surrogatepass")).digest(), key)
        if same != key:
            copies[key] = same
            continue
        document, position = positions[key]
        groups.setdefault((document, position // together), []).append(key)
    return Groups(tuple(map(tuple, groups.values())), copies)


def add_size(record: Mapping[str, Any], together: int) -> list[int]:
    """All sizes of calls with which a layer was read, from its earlier build record and this size."""
    return sorted({*record.get("together", ()), together})


def note_sizes(
    reports: Iterable[LayerReport], layers: Iterable[Layer], records: Mapping[str, Mapping[str, Any]]
) -> Iterator[LayerReport]:
    """The reports, with a note on each layer of which a part was read with another size of calls than it has now."""
    notes = {layer.name: describe_sizes(layer, records.get(layer.name, {})) for layer in layers}
    for report in reports:
        yield replace(report, notes=(*report.notes, *notes.get(report.layer, ())))


def describe_sizes(layer: Layer, record: Mapping[str, Any]) -> list[str]:
    """A note on memory that was read with another size of calls than the layer has; empty without any."""
    size = getattr(layer, "together", 1)
    others = " and ".join(f"together={number}" for number in record.get("together", ()) if number != size)
    if not others:
        return []
    return [
        f"{others} read what was there, and it stays; for together={size} in all of it, build with --again {layer.name}"
    ]
