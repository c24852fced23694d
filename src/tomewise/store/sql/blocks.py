"""Rows of vectors or edges as they are read from a database: in blocks, which one pair of arrays takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from tomewise.store.sql.mirror import Keys, Rows

Block: TypeAlias = tuple[Keys, Rows]  # keys (n,) and their rows (n, width)
EDGE = 3  # numbers of the row of an edge: a, b, weight
_GROWTH = 1.25


def join_blocks(blocks: Iterable[Block], width: int, dtype: DTypeLike) -> Block:
    """All rows, keys ascending. The arrays grow in place: a list of all blocks would need the memory of both."""
    keys, rows, count = np.empty(0, np.int64), np.empty((0, width), dtype), 0
    for some_keys, some_rows in blocks:
        end = count + len(some_keys)
        if end > len(keys):
            _resize(keys, rows, max(end, int(len(keys) * _GROWTH)))
        keys[count:end], rows[count:end] = some_keys, some_rows
        count = end
    _resize(keys, rows, count)
    if (keys[1:] > keys[:-1]).all():
        return keys, rows
    order = np.argsort(keys, kind="stable")
    return keys[order], rows[order]


def _resize(keys: Keys, rows: Rows, count: int) -> None:
    keys.resize(count, refcheck=False)
    rows.resize((count, rows.shape[1]), refcheck=False)
