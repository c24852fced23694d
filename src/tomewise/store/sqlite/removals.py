"""The log of removals: which nodes that a layer had processed were removed since the last build of that layer.

It is a note for the next build and no part of the memory, so it is not exported. A layer has at most one entry for each
node that it processed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import Connection, delete, select

from tomewise.store.sqlite.schema import removals
from tomewise.types import NodeId

# CROSS JOIN keeps this order: from each removed node to its few rows in the intake.
_LOG = """
INSERT OR IGNORE INTO removals (layer, node) SELECT intake.layer, nodes.id
FROM json_each(?) AS removed CROSS JOIN nodes ON nodes.key = removed.value
CROSS JOIN intake ON intake.node = removed.value
"""


def log_removals(connection: Connection, keys: Sequence[int]) -> None:
    """Log the removal of these nodes for each layer that has processed them or failed to.

    Call it while the nodes and their intake still exist.
    """
    connection.exec_driver_sql(_LOG, (json.dumps(keys, default=int),))


def read_removals(connection: Connection, layer: str) -> tuple[NodeId, ...]:
    """The ids of the removed nodes that this layer had processed, sorted."""
    query = select(removals.c.node).where(removals.c.layer == layer).order_by(removals.c.node)
    return tuple(connection.scalars(query))


def clear_removals(connection: Connection, layer: str) -> None:
    """Delete the log of a layer that has processed its removals."""
    connection.execute(delete(removals).where(removals.c.layer == layer))
