"""The state of the schemata as the store keeps it: links and labels as edges between nodes, level by level.

The space `SchemataNames.links(L)` has the links of level L with their scores. `labels(L)` has, for each ordered pair
of linked vertices v and u, the label of the replica of v that holds u: the key of the node of its cluster, or the key
of v itself if the cluster has no other vertex.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tomewise.memory.schemata.levels import FIRST_LABEL, Level, SlotLabels
from tomewise.memory.schemata.network import Links, Passages, match_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.memory.schemata.schemata_names import SchemataNames
    from tomewise.store.contract import Store
    from tomewise.store.write_contract import Write


@dataclass(frozen=True, slots=True, eq=False)
class BaseLevel:
    """The passages of the lowest level in document order, by key, and the links among those that are not `fresh`."""

    keys: NDArray[np.int64]
    passages: Passages
    links: Links
    fresh: NDArray[np.int64]


def load_base_level(store: Store, names: SchemataNames, known: frozenset[int], fresh: frozenset[int]) -> BaseLevel:
    """Load the `known` passages with their links, and the `fresh` ones."""
    order, documents, positions = store.passage_order()
    is_known, is_fresh = _find_wanted(order, known), _find_wanted(order, fresh)
    used = is_known | is_fresh
    keys = order[used]
    columns = store.vectors("passages")
    passages = Passages(columns.rows, np.searchsorted(columns.keys, keys), documents[used], positions[used])
    table = store.edges(names.links(0)).rows
    indices = np.where(is_known[used], np.arange(len(keys)), -1)
    a, b = find_indices(keys, indices, table[:, 0]), find_indices(keys, indices, table[:, 1])
    both = (a >= 0) & (b >= 0)
    return BaseLevel(keys, passages, Links.from_pairs(a[both], b[both], table[both, 2]), np.flatnonzero(is_fresh[used]))


def _find_wanted(keys: NDArray[np.int64], wanted: frozenset[int]) -> NDArray[np.bool_]:
    """Which of the keys are wanted."""
    return np.isin(keys, np.fromiter(wanted, np.int64, len(wanted)), kind="table")


def load_labels(store: Store, names: SchemataNames, levels: int) -> list[SlotLabels]:
    """The labels of each level after the last update."""
    found = []
    for level in range(levels):
        table = store.edges(names.labels(level)).rows.astype(np.int64)
        found.append(SlotLabels(table[:, 0], table[:, 1], table[:, 2]))
    return found


def find_indices(
    keys: NDArray[np.int64], indices: NDArray[np.int64], wanted: NDArray[np.float64] | NDArray[np.int64]
) -> NDArray[np.int64]:
    """The indices (n,) that belong to `keys` (n,), which are in any order, for each key wanted; -1 for other keys."""
    wanted = wanted.astype(np.int64)
    table = np.full(1 + max(int(keys.max(initial=0)), int(wanted.max(initial=0))), -1, np.int64)
    table[keys] = indices
    return table[wanted]


def load_shared(store: Store, entities: str, keys: NDArray[np.int64], most: int) -> Links:
    """Links without weight between the indices of `keys` that see the same entity, see `pair_passages`."""
    table = store.edges(f"seen-in:{entities}").rows.astype(np.int64)
    indices = find_indices(keys, np.arange(len(keys)), table[:, 1])
    a, b = pair_passages(table[indices >= 0, 0], indices[indices >= 0], most)
    return Links.from_pairs(a, b, np.zeros(len(a)))


def pair_passages(
    entities: NDArray[np.int64], passages: NDArray[np.int64], most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All pairs of passages that see the same entity, for entities that 2 to `most` passages see.

    `entities` and `passages` (n,) say which passage sees which entity; no pair of these comes twice. An entity of more
    passages says little of each of them. (The paper does not state its rule.) A pair may be found more than once.
    """
    order = np.lexsort((passages, entities))
    entities, passages = entities[order], passages[order]
    _, groups, sizes = np.unique(entities, return_inverse=True, return_counts=True)
    is_rare = sizes[groups] <= most
    groups, passages = groups[is_rare], passages[is_rare]
    firsts, seconds = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for gap in range(1, most):
        is_pair = groups[gap:] == groups[:-gap]
        firsts.append(passages[:-gap][is_pair])
        seconds.append(passages[gap:][is_pair])
    return np.concatenate(firsts), np.concatenate(seconds)


def write_levels(
    change: Write, store: Store, names: SchemataNames, levels: list[Level], before: int, keys: Mapping[int, int]
) -> None:
    """Store links and labels; `keys` are those of new clusters by label, `before` the number of levels until now."""
    for number, level in enumerate(levels):
        vertices = _replace(level.names, keys)
        a, b = vertices[level.links.a], vertices[level.links.b]
        low, high = np.minimum(a, b), np.maximum(a, b)
        write_edges(change, store, names.links(number), low, high, level.links.weights)
        slots = level.slots
        owners, others = _replace(slots.vertices, keys), _replace(slots.neighbours, keys)
        labels = _replace(slots.labels, keys).astype(np.float64)
        write_edges(change, store, names.labels(number), owners, others, labels)
    for number in range(len(levels), before):
        change.remove_edges(names.links(number))
        change.remove_edges(names.labels(number))


def write_edges(
    change: Write,
    store: Store,
    space: str,
    a: NDArray[np.int64],
    b: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> None:
    """Make the edges of a space equal to these; only what differs is written."""
    old = store.edges(space).rows
    old_a, old_b = old[:, 0].astype(np.int64), old[:, 1].astype(np.int64)
    at = match_pairs(old_a, old_b, a, b)
    is_new = at < 0
    is_gone = np.ones(len(old), np.bool_)
    is_gone[at[~is_new]] = False
    change.remove_edges(space, np.column_stack((old_a, old_b))[is_gone])
    is_changed = ~is_new
    is_changed[~is_new] = old[at[~is_new], 2] != weights[~is_new]
    change.reweight_edges(space, np.column_stack((a, b))[is_changed], weights[is_changed])
    change.put_edges(space, a[is_new], b[is_new], weights[is_new])


def _replace(values: NDArray[np.int64], keys: Mapping[int, int]) -> NDArray[np.int64]:
    """The values, with keys in place of the labels of new clusters."""
    is_label = values >= FIRST_LABEL
    replaced = values.copy()
    known, indices = np.unique(values[is_label], return_inverse=True)
    replaced[is_label] = np.array([keys[label] for label in known.tolist()], np.int64)[indices]
    return replaced
