"""Further links of the lowest level: between passages that see the same rare entity (CAM, section 5.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
