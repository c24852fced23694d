"""One write transaction in PostgreSQL: what it counts in memory, and writes down when it ends.

A row that a transaction updates a thousand times has a thousand versions until it commits, and each update searches
them. So the last keys, the step and the mark of the words are written once.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection

from tomewise.store.sql.row_values import read_value

_TURN = "tomewise turn"
# The default of the column `step` is this setting: see the tables in `postgres_server`.
_BEGIN = "SELECT set_config('tomewise.step', (step + 1)::text, true)::bigint FROM tomewise"
_LAST = "SELECT seq FROM last_keys WHERE name = %s"


@dataclass(slots=True)
class Turn:
    """The number of this step, the last keys by table as they are by now, and what has changed."""

    step: int
    last_keys: dict[str, int] = field(default_factory=dict)
    changes_words: bool = False
    changes_arrays: bool = False

    def take_keys(self, connection: Connection, table: str, count: int) -> range:
        """Ascending keys for so many rows, which no row ever had."""
        if table not in self.last_keys:
            self.last_keys[table] = int(read_value(connection, _LAST, table))
        first = self.last_keys[table] + 1
        self.last_keys[table] += count
        return range(first, first + count)


@contextmanager
def take_turn(connection: Connection, *, is_first: bool = False) -> Iterator[None]:
    """Count in memory inside, and write it at the end; with `is_first` there are no tables at the beginning."""
    begin = "SELECT set_config('tomewise.step', '1', true)::bigint" if is_first else _BEGIN
    kept = connection.info  # of the driver's connection, which may be lost inside
    turn = kept[_TURN] = Turn(int(read_value(connection, begin)))
    try:
        yield
        for name, last in turn.last_keys.items():
            connection.exec_driver_sql("UPDATE last_keys SET seq = %s WHERE name = %s", (last, name))
        if turn.changes_words:
            connection.exec_driver_sql("UPDATE tomewise SET words = %s", (secrets.randbits(62) + 1,))
        if turn.changes_arrays:
            connection.exec_driver_sql("UPDATE tomewise SET step = %s", (turn.step,))
    finally:
        del kept[_TURN]


def find_turn(connection: Connection) -> Turn:
    """The turn of a write transaction."""
    turn: Turn = connection.info[_TURN]
    return turn
