"""Edges of one space found by their pairs of node keys, to change or remove them."""

from __future__ import annotations

import json

import numpy as np
from sqlalchemy import Connection

from tomewise.store.sqlite.mirror import Keys, Rows

# CROSS JOIN: the pairs come first, each with one look-up in the index. SQLite cannot know how few they are.
_FIND = """
SELECT edges.key, given.key FROM json_each(?) AS given
CROSS JOIN edges INDEXED BY edges_forward ON edges.space = ? AND edges.a = json_extract(given.value, '$[0]')
  AND edges.b = json_extract(given.value, '$[1]')
"""


def find_edges(connection: Connection, space: str, pairs: Keys) -> tuple[Keys, Keys]:
    """The keys of the edges between these pairs (n, 2), and for each of them the row of its pair.

    A pair without an edge is left out.
    """
    values = json.dumps(np.asarray(pairs, np.int64).reshape(-1, 2).tolist())
    found = connection.exec_driver_sql(_FIND, (values, space)).all()
    table = np.array([tuple(row) for row in found], np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def set_weights(connection: Connection, keys: Keys, weights: Rows) -> None:
    """Set the weights of the edges with these keys."""
    rows = list(zip(weights.tolist(), keys.tolist(), strict=True))
    if rows:
        connection.exec_driver_sql("UPDATE edges SET weight = ? WHERE key = ?", rows)
