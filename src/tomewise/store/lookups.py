"""What many parts look up, by the methods of any store."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from tomewise.errors import StoreError, UnknownName
from tomewise.store.records import SETTINGS, DocumentRecord, list_source_spaces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.contract import End, Notes, Readable, SpaceRows, Spaces, Store, Texts
    from tomewise.store.nearest import Nearest, Vectors
    from tomewise.types import DocumentId, NodeId, PassageId, Scope


def read_setting(store: Notes, name: str) -> str | None:
    """A setting of the tome, such as its embedder."""
    value: str | None = store.note(SETTINGS, name)
    return value


def read_by_path(store: Store, name: str) -> dict[str, dict[str, Any]]:
    """The fields that the tome keeps by path in a setting. Raises StoreError for anything else."""
    try:
        by_path = json.loads(read_setting(store, name) or "{}")
        values = chain.from_iterable(fields.values() for fields in by_path.values())
        if not all(isinstance(value, str | int | float | list) for value in values):
            raise ValueError("not fields by path")
    except (ValueError, AttributeError, RecursionError) as error:
        raise StoreError(
            f"{store.address} is damaged: the row {name!r} of the table meta holds no fields ({error}); restore it "
            "from a copy, or add the documents to a new file"
        ) from None
    return dict(by_path)


def read_record(store: Store, document: DocumentId) -> DocumentRecord:
    """A document without its text. Raises UnknownName."""
    for record in store.documents([document]):
        return record
    raise UnknownName(f"no document {document!r} in {store.address}: `tome show` lists them")


def find_keys(store: Texts, ids: Iterable[NodeId]) -> dict[NodeId, int]:
    """The keys of the nodes that exist among these ids."""
    return {node: found.key for node, found in store.find(ids).items()}


def read_places(store: Texts, passages: Iterable[PassageId]) -> dict[PassageId, tuple[DocumentId, int]]:
    """The document and the position of each of these passages that exists."""
    found = store.find(passages)
    return {name: (each.document, each.position) for name, each in found.items() if each.document is not None}


def read_sources(store: Spaces, keys: Iterable[int], layer: str) -> dict[int, list[int]]:
    """For each node of a layer, the keys of the nodes that it was made from, in document order."""
    return _list_ends(store, list_source_spaces(layer), keys, "a")


def select_within(store: Readable, keys: set[int], within: Scope | None) -> set[int]:
    """Those of these passages that are within a scope."""
    allowed = store.keys_within(within)
    return keys if allowed is None else keys & set(allowed.tolist())


def find_nearest(store: Readable, space: str, vector: Vectors, limit: int, within: Scope | None) -> Nearest:
    """The nodes of a space within a scope that are nearest to a vector (d,), with all that tie with the last."""
    return store.nearest(space, vector, limit, among=store.keys_within(within, space))


def name_sources(
    store: Readable, keys: Iterable[int], layer: str, within: Scope | None
) -> dict[int, tuple[PassageId, ...]]:
    """For each node of a layer, the ids of the passages within a scope that it was made from, in document order."""
    sources = read_sources(store, keys, layer)
    passages = store.passages(select_within(store, {key for found in sources.values() for key in found}, within))
    return {key: tuple(passages[each].id for each in found if each in passages) for key, found in sources.items()}


def find_derived(store: Spaces, keys: Iterable[int], space: str) -> dict[int, list[int]]:
    """For each node, the keys of the nodes that were made from it; `space` is such as `made-of:gists`."""
    return _list_ends(store, [space], keys, "b")


def _list_ends(store: Spaces, spaces: list[str], keys: Iterable[int], end: End) -> dict[int, list[int]]:
    """For each node at this end of edges, the keys of the nodes at the other end."""
    found: dict[int, list[int]] = {key: [] for key in keys}
    columns = (0, 1) if end == "a" else (1, 0)
    for near, far in store.edges_at(spaces, found, end)[:, columns].astype(int).tolist():
        found[near].append(far)
    return found


def read_vectors(store: Spaces, space: str) -> SpaceRows:
    """The vectors of a space: rows (n, d) float32 under node keys."""
    name = f"vectors/{space}"
    return store.arrays([name])[name]


def read_edges(store: Spaces, space: str) -> SpaceRows:
    """The edges of a space: rows (n, 3) float64 of node key, node key, weight, under keys of their own."""
    name = f"edges/{space}"
    return store.arrays([name])[name]


def read_pairs(store: Spaces, space: str) -> NDArray[np.int64]:
    """The edges of a space without their weights: pairs (n, 2) of node keys."""
    return read_edges(store, space).rows.reshape(-1, 3)[:, :2].astype(np.int64)
