"""The indices of keys in a sorted array of keys."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tomewise.store.nearest import Keys


def find_indices(keys: Keys, sorted_keys: Keys) -> Keys:
    """The indices in `sorted_keys` of those keys that are in it."""
    return find_known_indices(keys, sorted_keys)[0]


def find_known_indices(keys: Keys, sorted_keys: Keys) -> tuple[Keys, NDArray[np.bool_]]:
    """The indices in `sorted_keys` of those keys that are in it, and a flag for each key: whether it is in it."""
    if not len(sorted_keys):
        return np.empty(0, np.int64), np.zeros(len(keys), np.bool_)
    indices = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    is_known = sorted_keys[indices] == keys
    return indices[is_known], is_known
