"""Approximate search for the nearest vectors of a large space, by pgvector in the database of the tome.

Each space above `exact_rows` has a table of its own, with its vectors in float16 and an HNSW index (Malkov and
Yashunin, "Efficient and robust approximate nearest neighbor search", 2018). It is derived from the table `vectors`, and
no part of exports and copies. `near_spaces` names it and the version of the space that it holds. A transaction that
changes the vectors changes it too; where one did not, the versions differ, so that nobody searches it, and the next
writer makes it anew under another name. What it finds is compared again in float32.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace

import psycopg
from sqlalchemy.exc import DBAPIError

from tomewise.store.records import SearchState
from tomewise.store.sql.mirror import Delta, Deltas
from tomewise.store.sql.near_search import (
    MOST_DIMENSIONS,
    NearTable,
    find_pgvector,
    round_to_half,
)
from tomewise.store.sql.postgres_arrays import load_vectors, write_columns
from tomewise.store.sql.postgres_server import make_lock_key
from tomewise.store.sql.transaction import SharedTransaction

_BULK_SHARE = 1 / 4  # of the rows: with more new ones, an index that is made anew is quicker
_DROP_SHARE = 1 / 2  # of `exact_rows`: with fewer rows, a table goes
LINKS, _EF_CONSTRUCTION = 24, 128  # neighbours of a row in the index, and candidates for them; pgvector has 16 and 64
_MEMORY = 1 << 30  # bytes that making an index may take, unless the server allows more
_ROW_MEMORY = 400 + 32 * LINKS  # bytes of a row in the memory of a build, without its numbers
_CANNOT = -1  # as the width of a space that pgvector cannot hold
_TOO_LARGE = f"pgvector holds up to {MOST_DIMENSIONS:,} numbers in each, of up to 65,504"
_MAKE_STATES = """
CREATE TABLE IF NOT EXISTS near_spaces (space text COLLATE "C" PRIMARY KEY, version bigint NOT NULL,
  rows bigint NOT NULL, name text COLLATE "C", width integer NOT NULL)
"""
_SET_STATE = """
INSERT INTO near_spaces (space, version, rows, name, width) VALUES ('vectors/' || %s::text, %s, %s, %s, %s)
ON CONFLICT (space) DO UPDATE
SET version = excluded.version, rows = excluded.rows, name = excluded.name, width = excluded.width
"""
_HAS_STATES = "SELECT coalesce(has_table_privilege(to_regclass('near_spaces'), %s), false)"
# A name comes from the database, which anybody may have filled, and stands in statements: it must be one of ours.
_READ_STATES = """
SELECT substr(s.space, 9), s.version, n.version, n.rows, n.name, n.width,
  EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = to_regclass(n.name) AND a.attname = 'vector'
    AND NOT a.attisdropped),
  to_regclass(n.name || '_index') IS NOT NULL, has_table_privilege(to_regclass(n.name), 'SELECT'),
  has_table_privilege(to_regclass(n.name), 'INSERT') AND has_table_privilege(to_regclass(n.name), 'DELETE'),
  coalesce(n.version = s.version, false)
FROM spaces s LEFT JOIN (SELECT space, version, rows, width,
  CASE WHEN name ~ '^near_[0-9a-f]{16}$' THEN name END AS name FROM near_spaces) n ON n.space = s.space
WHERE s.space LIKE 'vectors/%%'
"""
_READ_SPACES = """
SELECT substr(space, 9), version, NULL, NULL, NULL, NULL, false, false, false, false, false FROM spaces
WHERE space LIKE 'vectors/%%'
"""
_MAY_MAKE = """
SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)
  AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = to_regclass('near_spaces')
    AND NOT pg_has_role(c.relowner, 'USAGE'))
"""
_GIVE_MEMORY = """
SELECT set_config('maintenance_work_mem', greatest(%s, (SELECT setting::bigint FROM pg_settings
  WHERE name = 'maintenance_work_mem'))::text, true)
"""
_WIDTH = "SELECT length(vector) / 4 FROM vectors WHERE space = %s LIMIT 1"
# More rows than the table can have: each takes at least its numbers.
_BOUND = "SELECT pg_table_size('vectors') / greatest(4, (SELECT length(vector) FROM vectors LIMIT 1))"


@dataclass(frozen=True, slots=True)
class _State:
    """What is known of a space of vectors, and of its table."""

    space: str  # its name alone
    version: int
    recorded: int | None  # the version at which it had `rows` vectors, and the table held these
    rows: int
    name: str | None  # of the table
    width: int  # of its vectors; `_CANNOT` if no table can hold them
    has_table: bool
    has_index: bool
    may_read: bool
    may_write: bool
    is_current: bool  # whether the table and the number of the rows are those of the space as it is


class NearRows:
    """The tables and indexes by which a tome is searched approximately. `tome` names the locks."""

    def __init__(self, tome: str, exact_rows: int) -> None:
        self.exact_rows = exact_rows
        self._tome = tome
        self.has_work = False  # vectors were changed since somebody last looked after the indexes
        self.failed: set[str] = set()  # the spaces for which this process tried in vain
        self.is_hopeless = False  # as the disk was full

    # ------------------------------------------------------------ to search

    def may_search(self, loaded: int) -> bool:
        """Whether to ask the database for an index of a space of which so many rows are in memory.

        One that was small when it was last read is read again, so that its questions cost no statement more.
        """
        return bool(self.exact_rows) and not 0 < loaded <= self.exact_rows

    def find_table(self, transaction: SharedTransaction, space: str) -> NearTable | None:
        """The table by which a space is searched; None where it is to be searched exactly."""
        if not self.exact_rows or not _have_states(transaction):
            return None
        for state in _read_states(transaction, [f"vectors/{space}"]):
            if state.name is not None and state.rows > self.exact_rows and self._may_search_by(state):
                schema, _ = find_pgvector(transaction)
                if schema:
                    return NearTable(state.name, space, state.rows, state.width, schema)
        return None

    def describe(self, transaction: SharedTransaction) -> SearchState:
        """How the spaces of the tome are searched."""
        schema, reason = find_pgvector(transaction)
        approximate, exact = dict[str, int](), dict[str, int]()
        states = _read_states(transaction)
        if self.exact_rows and transaction.read_value(_BOUND) > self.exact_rows:
            for state in states:
                rows = state.rows if state.is_current else _count(transaction, state.space)
                if rows > self.exact_rows:
                    (approximate if schema and self._may_search_by(state) else exact)[state.space] = rows
        because = (reason or _explain(transaction, self._tome, states)) if exact else ""
        return SearchState(self.exact_rows, approximate, exact, because)

    @staticmethod
    def _may_search_by(state: _State) -> bool:
        return state.is_current and state.has_index and state.may_read

    # ------------------------------------------------------------ to keep what is there, in each write transaction

    def keep(self, transaction: SharedTransaction, deltas: Deltas) -> None:
        """Apply the changes of a write transaction to the tables."""
        changed = [space for space in deltas if space.startswith("vectors/")]
        if changed and _have_states(transaction, "UPDATE"):
            for state in _read_states(transaction, changed):
                before, after, delta = deltas[f"vectors/{state.space}"]
                if state.recorded == before:
                    self._apply(transaction, state, after, delta)
        self.has_work |= bool(changed)

    @staticmethod
    def _apply(transaction: SharedTransaction, state: _State, after: int, delta: Delta) -> None:
        count, name = len(delta.added_keys), state.name
        if name is not None:
            halves = round_to_half(delta.added_rows) if count else delta.added_rows
            is_bulk = count > max(1, _BULK_SHARE * state.rows)
            if not state.has_table or not state.may_write or halves is None or is_bulk:
                return  # the versions differ from now on
            if count and halves.shape[1] != state.width:
                return
            if not _lock_at_once(transaction, name):  # its index is being made, and has no place for more rows
                return
            if len(delta.removed):
                transaction.run(f"DELETE FROM {name} WHERE key = ANY(%s::bigint[])", (delta.removed.tolist(),))
            if count:
                write_columns(transaction.driver, name, {"key": delta.added_keys, "vector": halves})
        rows = state.rows + count - len(delta.removed)
        transaction.run(_SET_STATE, (state.space, after, rows, name, state.width))

    # ------------------------------------------------------------ to make what is missing, after a commit

    def find_work(self, transaction: SharedTransaction) -> tuple[bool, list[_State]]:
        """Whether tables have to be made or dropped, and the tables that only lack an index."""
        if self.is_hopeless or not self.exact_rows:
            return False, []
        if not _have_states(transaction) and transaction.read_value(_BOUND) <= self.exact_rows:
            return False, []
        if not find_pgvector(transaction)[0] or not transaction.read_value(_MAY_MAKE):
            return False, []
        states = [each for each in _read_states(transaction) if each.space not in self.failed]
        lacking = [each for each in states if each.is_current and each.name and not each.has_index]
        return any(map(self._is_outdated, states)), lacking

    def _is_outdated(self, state: _State) -> bool:
        """Whether a space needs a table, another one, or none any more."""
        if not state.is_current or (state.name and not state.has_table):
            return True
        if state.name:
            return state.rows < _DROP_SHARE * self.exact_rows
        return state.width != _CANNOT and state.rows > self.exact_rows

    def make_tables(self, transaction: SharedTransaction) -> list[_State]:
        """Count the spaces whose number of vectors is not known, and fill and drop tables, in a write transaction.

        Returns the tables that lack an index.
        """
        transaction.run(_MAKE_STATES)
        schema, _ = find_pgvector(transaction)
        made = []
        for state in _read_states(transaction) if schema else ():
            if state.space in self.failed:
                continue
            rows = state.rows if state.is_current else _count(transaction, state.space)
            name, width = state.name, state.width
            if self._is_outdated(state):
                name, width = None, 0
                if rows > self.exact_rows:
                    name, width = self._fill(transaction, state.space, schema)
                if state.name:  # last, since whoever searches by it waits from now on
                    transaction.run(f"DROP TABLE IF EXISTS {state.name}")
                transaction.run(_SET_STATE, (state.space, state.version, rows, name, width))
            if name and not (name == state.name and state.has_index):
                made.append(replace(state, rows=rows, name=name, width=width))
        return made

    def _fill(self, transaction: SharedTransaction, space: str, schema: str) -> tuple[str | None, int]:
        """Make a table with the vectors of a space. Returns its name and the width of the vectors."""
        name = f"near_{secrets.token_hex(8)}"
        width = int(transaction.read_value(_WIDTH, space))
        if not 0 < width <= MOST_DIMENSIONS:
            return _give_up(space)
        transaction.run(f"CREATE TABLE {name} (key bigint PRIMARY KEY, vector {schema}.halfvec({width}) NOT NULL)")
        for keys, rows in load_vectors(transaction.driver, space, width):
            if (halves := round_to_half(rows)) is None:
                transaction.run(f"DROP TABLE {name}")
                return _give_up(space)
            write_columns(transaction.driver, name, {"key": keys, "vector": halves})
        transaction.run(f"ANALYZE {name}")
        return name, width

    def make_index(self, transaction: SharedTransaction, state: _State, *, is_parallel: bool) -> None:
        """Make the index of a table, unless it is there or being made; with parallel workers, which share memory."""
        # Not as the writer of the tome: others may write all but vectors of this space meanwhile.
        key = make_lock_key(self._tome, f"near vectors/{state.space}")
        is_first = transaction.read_value("SELECT pg_try_advisory_xact_lock(%s)", key)
        schema, _ = find_pgvector(transaction)
        query = "SELECT to_regclass(%s) IS NULL OR to_regclass(%s) IS NOT NULL"
        if not is_first or not schema or transaction.read_value(query, state.name, f"{state.name}_index"):
            return
        transaction.run(_GIVE_MEMORY, (min(_MEMORY, state.rows * (2 * state.width + _ROW_MEMORY)) >> 10,))
        if not is_parallel:
            transaction.run("SET LOCAL max_parallel_maintenance_workers = 0")
        transaction.run(
            f"CREATE INDEX {state.name}_index ON {state.name} USING hnsw (vector {schema}.halfvec_ip_ops) "
            f"WITH (m = {LINKS}, ef_construction = {_EF_CONSTRUCTION})"
        )


def _give_up(space: str) -> tuple[None, int]:
    warnings.warn(f"the vectors of {space} are searched exactly: {_TOO_LARGE}", stacklevel=2)
    return None, _CANNOT


def _lock_at_once(transaction: SharedTransaction, name: str) -> bool:
    """Lock a table as writing does; False where one would have to wait."""
    try:
        with transaction.connection.begin_nested():
            transaction.run(f"LOCK TABLE {name} IN ROW EXCLUSIVE MODE NOWAIT")
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.errors.LockNotAvailable):
            return False
        raise
    return True


def _have_states(transaction: SharedTransaction, right: str = "SELECT") -> bool:
    """Whether there is a table of the states, with this right."""
    return bool(transaction.read_value(_HAS_STATES, right))


def _read_states(transaction: SharedTransaction, spaces: Iterable[str] | None = None) -> list[_State]:
    """The states of these spaces of vectors, or of all, sorted. Without `near_spaces` nothing is known of them."""
    query, values = (_READ_STATES, ()) if spaces is None else (f"{_READ_STATES} AND s.space = ANY(%s)", (list(spaces),))
    if spaces is None and not _have_states(transaction):
        query = _READ_SPACES
    return [_State(*row) for row in transaction.run(f"{query} ORDER BY 1", values)]


def _count(transaction: SharedTransaction, space: str) -> int:
    return int(transaction.read_value("SELECT count(*) FROM vectors WHERE space = %s", space))


def _explain(transaction: SharedTransaction, tome: str, states: Iterable[_State]) -> str:
    """Why a large space is searched exactly, though there is pgvector."""
    if any(each.is_current and each.has_index and not each.may_read for each in states):
        return (
            f'you may not read its index: its owner runs `GRANT SELECT ON ALL TABLES IN SCHEMA "{tome}" TO` you again'
        )
    if any(each.is_current and each.width == _CANNOT for each in states):
        return _TOO_LARGE
    if not transaction.read_value(_MAY_MAKE):
        return "you may not make an index: the next command of its owner that adds or removes makes it"
    return "it has no index of what it holds now: the next command that adds or removes makes it"
