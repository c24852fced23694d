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
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import psycopg
from sqlalchemy.exc import DBAPIError

from tomewise.errors import Locked, StoreError
from tomewise.store.sql.mirror import Delta, Deltas, Keys
from tomewise.store.sql.near_search import (
    MOST_DIMENSIONS,
    Halfvec,
    NearTable,
    find_halfvec,
    round_to_half,
)
from tomewise.store.sql.postgres_arrays import write_columns
from tomewise.store.sql.postgres_rows import PostgresTransaction
from tomewise.store.sql.postgres_server import make_lock_key

if TYPE_CHECKING:
    from tomewise.store.nearest import Nearest, Vectors

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
  has_table_privilege(to_regclass(n.name), 'INSERT') AND has_table_privilege(to_regclass(n.name), 'DELETE')
FROM spaces s LEFT JOIN (SELECT space, version, rows, width,
  CASE WHEN name ~ '^near_[0-9a-f]{16}$' THEN name END AS name FROM near_spaces) n ON n.space = s.space
WHERE s.space LIKE 'vectors/%%'
"""
_READ_SPACES = """
SELECT substr(space, 9), version, NULL, NULL, NULL, NULL, false, false, false, false FROM spaces
WHERE space LIKE 'vectors/%%'
"""
_MAY_MAKE = """
SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)
  AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = to_regclass('near_spaces')
    AND NOT pg_has_role(c.relowner, 'USAGE'))
"""
_WIDTH = "SELECT length(vector) / 4 FROM vectors WHERE space = %s LIMIT 1"
# More rows than the table can have: each takes at least its numbers.
_BOUND = "SELECT pg_table_size('vectors') / greatest(4, (SELECT length(vector) FROM vectors LIMIT 1))"


class Transactions(Protocol):
    """The transactions of a tome: `append` does not keep others from writing."""

    @property
    def address(self) -> str: ...
    def read(self) -> AbstractContextManager[PostgresTransaction]: ...
    def write(self) -> AbstractContextManager[PostgresTransaction]: ...
    def append(self) -> AbstractContextManager[PostgresTransaction]: ...


@dataclass(frozen=True, slots=True)
class SearchState:
    """How the nearest vectors of a tome are searched."""

    exact_rows: int
    """Above so many vectors a space may be searched approximately; 0: none is."""
    approximate: Mapping[str, int]
    """The spaces that are, with their vectors."""
    exact: Mapping[str, int]
    """The spaces above `exact_rows` that are searched exactly all the same, with their vectors."""
    because: str
    """Why, with the remedy; empty where no space is."""


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

    @property
    def is_current(self) -> bool:
        """Whether the table and the number of the rows are those of the space as it is."""
        return self.recorded == self.version

    @property
    def is_searchable(self) -> bool:
        return self.is_current and self.has_index and self.may_read


class NearRows:
    """The tables and indexes by which a tome is searched approximately. `tome` names the locks."""

    def __init__(self, tome: str, exact_rows: int) -> None:
        self.exact_rows = exact_rows
        self._tome = tome
        self.has_work = False  # vectors were changed since somebody last let `tend` look after them
        self._failed: set[str] = set()  # the spaces for which this process tried in vain
        self._is_hopeless = False  # as the disk was full

    # ------------------------------------------------------------ to search

    def may_search(self, loaded: int) -> bool:
        """Whether to ask the database for an index of a space of which so many rows are in memory.

        One that was small when it was last read is read again, so that its questions cost no statement more.
        """
        return bool(self.exact_rows) and not 0 < loaded <= self.exact_rows

    def search(
        self, transaction: PostgresTransaction, space: str, queries: Vectors, limit: int, among: Keys | None
    ) -> Nearest | None:
        """See `contract.Spaces.nearest`; None where the space is to be searched exactly."""
        table = self.find_table(transaction, space)
        return None if table is None else table.search(transaction.driver, queries, limit, among)

    def find_table(self, transaction: PostgresTransaction, space: str) -> NearTable | None:
        """The table by which a space is searched; None where it is to be searched exactly."""
        if not self.exact_rows or not _have_states(transaction):
            return None
        for state in _read_states(transaction, [f"vectors/{space}"]):
            if state.is_searchable and state.rows > self.exact_rows and state.name is not None:
                halfvec = find_halfvec(transaction)
                if isinstance(halfvec, Halfvec):
                    return NearTable(state.name, space, state.rows, state.width, halfvec)
        return None

    def describe(self, transaction: PostgresTransaction) -> SearchState:
        """How the spaces of the tome are searched."""
        states = _read_states(transaction)
        counts = {each.space: each.rows if each.is_current else -1 for each in states}
        if self.exact_rows and (-1 in counts.values()) and transaction.read_value(_BOUND) > self.exact_rows:
            counts |= {space: _count(transaction, space) for space, count in counts.items() if count < 0}
        halfvec = find_halfvec(transaction)
        large = {space: count for space, count in counts.items() if self.exact_rows and count > self.exact_rows}
        usable = {each.space for each in states if each.is_searchable and isinstance(halfvec, Halfvec)}
        approximate = {space: count for space, count in large.items() if space in usable}
        exact = {space: count for space, count in large.items() if space not in usable}
        because = _explain(transaction, self._tome, states, halfvec) if exact else ""
        return SearchState(self.exact_rows, approximate, exact, because)

    # ------------------------------------------------------------ to keep what is there, in each write transaction

    def keep(self, transaction: PostgresTransaction, deltas: Deltas) -> None:
        """Apply the changes of a write transaction to the tables."""
        changed = [space for space in deltas if space.startswith("vectors/")]
        if changed and _have_states(transaction, "UPDATE"):
            for state in _read_states(transaction, changed):
                before, after, delta = deltas[f"vectors/{state.space}"]
                if state.recorded == before:
                    self._apply(transaction, state, after, delta)
        self.has_work |= bool(changed)

    def _apply(self, transaction: PostgresTransaction, state: _State, after: int, delta: Delta) -> None:
        rows = state.rows + len(delta.added_keys) - len(delta.removed)
        name = state.name
        if name is not None:
            halves = round_to_half(delta.added_rows) if len(delta.added_keys) else delta.added_rows
            if not state.has_table or not state.may_write or halves is None:
                return  # the versions differ from now on
            is_bulk = len(delta.added_keys) > max(1, _BULK_SHARE * state.rows)
            if is_bulk or (len(delta.added_keys) and halves.shape[1] != state.width):
                return
            if not _lock_at_once(transaction, name):  # its index is being made, and has no place for more rows
                return
            if len(delta.removed):
                query = f"DELETE FROM {name} WHERE key = ANY(%s::bigint[])"
                transaction.run(query, (delta.removed.tolist(),))
            if len(delta.added_keys):
                write_columns(transaction.driver, name, {"key": delta.added_keys, "vector": halves})
        transaction.run(_SET_STATE, (state.space, after, rows, name, state.width))

    # ------------------------------------------------------------ to make what is missing, after a commit

    def tend(self, tome: Transactions) -> None:
        """Make the tables and indexes that are missing, and drop those of spaces that became small.

        What was committed before stays, whatever happens. A failure is a warning, and the space is searched exactly.
        """
        if not self.exact_rows:
            return
        try:
            with tome.read() as transaction:
                needs_tables, without_index = self._find_work(transaction)
            if needs_tables:
                with tome.write() as transaction:
                    without_index = self._make_tables(transaction)
        except (StoreError, DBAPIError, psycopg.Error) as error:
            cause = error.__cause__ if isinstance(error, StoreError) else error
            cause = cause.orig if isinstance(cause, DBAPIError) else cause
            self._is_hopeless = isinstance(cause, psycopg.errors.DiskFull | psycopg.errors.OutOfMemory)
            _warn(tome, "tables for approximate search", error)
            return
        for state in without_index:
            self._attempt(tome, state)

    def _find_work(self, transaction: PostgresTransaction) -> tuple[bool, list[_State]]:
        """Whether tables have to be made or dropped, and the tables that only lack an index."""
        if self._is_hopeless:
            return False, []
        has_states = _have_states(transaction)
        if not has_states and transaction.read_value(_BOUND) <= self.exact_rows:
            return False, []
        if isinstance(find_halfvec(transaction), str) or not transaction.read_value(_MAY_MAKE):
            return False, []
        states = [each for each in _read_states(transaction) if each.space not in self._failed]
        needs_tables = any(self._needs_table(each) or self._is_to_drop(each) for each in states)
        return needs_tables, [each for each in states if each.is_current and each.name and not each.has_index]

    def _needs_table(self, state: _State) -> bool:
        if not state.is_current or (state.name and not state.has_table):
            return True
        return state.name is None and state.width != _CANNOT and state.rows > self.exact_rows

    def _is_to_drop(self, state: _State) -> bool:
        return state.name is not None and state.is_current and state.rows < _DROP_SHARE * self.exact_rows

    def _make_tables(self, transaction: PostgresTransaction) -> list[_State]:
        """Count the spaces whose number of vectors is not known, and fill and drop tables, in a write transaction."""
        transaction.run(_MAKE_STATES)
        halfvec = find_halfvec(transaction)
        made = []
        for state in _read_states(transaction):
            if state.space in self._failed or isinstance(halfvec, str):
                continue
            rows = state.rows if state.is_current else _count(transaction, state.space)
            name, width = state.name, state.width
            if self._needs_table(state) or self._is_to_drop(state):
                name, width = None, 0
                if rows > self.exact_rows:
                    name, width = self._fill(transaction, state.space, halfvec)
                if state.name:  # last, since whoever searches by it waits from now on
                    transaction.run(f"DROP TABLE IF EXISTS {state.name}")
                transaction.run(_SET_STATE, (state.space, state.version, rows, name, width))
            if name and not (name == state.name and state.has_index):
                made.append(replace(state, recorded=state.version, rows=rows, name=name, width=width, has_index=False))
        return made

    def _fill(self, transaction: PostgresTransaction, space: str, halfvec: Halfvec) -> tuple[str | None, int]:
        """Make a table with the vectors of a space. Returns its name and the width of the vectors."""
        name = f"near_{secrets.token_hex(8)}"
        width = int(transaction.read_value(_WIDTH, space))
        if not 0 < width <= MOST_DIMENSIONS:
            return _give_up(space)
        transaction.run(f"CREATE TABLE {name} (key bigint PRIMARY KEY, vector {halfvec.type}({width}) NOT NULL)")
        for keys, rows in transaction.load_vectors(space, width):
            if (halves := round_to_half(rows)) is None:
                transaction.run(f"DROP TABLE {name}")
                return _give_up(space)
            write_columns(transaction.driver, name, {"key": keys, "vector": halves})
        transaction.run(f"ANALYZE {name}")
        return name, width

    def _attempt(self, tome: Transactions, state: _State) -> None:
        """Make an index; without parallel workers where these lack shared memory."""
        for is_parallel in (True, False):
            try:
                with tome.append() as transaction:
                    self._make_index(transaction, state, is_parallel=is_parallel)
                return
            except (StoreError, DBAPIError, psycopg.Error) as error:
                if not is_parallel:
                    if not isinstance(error, Locked):
                        self._failed.add(state.space)
                    _warn(tome, f"the index of {state.space}", error)

    def _make_index(self, transaction: PostgresTransaction, state: _State, *, is_parallel: bool) -> None:
        # Not as the writer of the tome: others may write all but vectors of this space meanwhile.
        key = make_lock_key(self._tome, f"near vectors/{state.space}")
        is_first = transaction.read_value("SELECT pg_try_advisory_xact_lock(%s)", key)
        halfvec = find_halfvec(transaction)
        query = "SELECT to_regclass(%s) IS NULL OR to_regclass(%s) IS NOT NULL"
        is_made = transaction.read_value(query, state.name, f"{state.name}_index")
        if not is_first or is_made or isinstance(halfvec, str):
            return
        memory = min(_MEMORY, state.rows * (2 * state.width + _ROW_MEMORY)) >> 10
        transaction.run(
            "SELECT set_config('maintenance_work_mem', greatest(%s, (SELECT setting::bigint FROM pg_settings "
            "WHERE name = 'maintenance_work_mem'))::text, true)",
            (memory,),
        )
        if not is_parallel:
            transaction.run("SET LOCAL max_parallel_maintenance_workers = 0")
        transaction.run(
            f"CREATE INDEX {state.name}_index ON {state.name} USING hnsw (vector {halfvec.index_class}) "
            f"WITH (m = {LINKS}, ef_construction = {_EF_CONSTRUCTION})"
        )


def _give_up(space: str) -> tuple[None, int]:
    warnings.warn(f"the vectors of {space} are searched exactly: {_TOO_LARGE}", stacklevel=2)
    return None, _CANNOT


def _lock_at_once(transaction: PostgresTransaction, name: str) -> bool:
    """Lock a table as writing does; False where one would have to wait."""
    savepoint = transaction.connection.begin_nested()
    try:
        transaction.run(f"LOCK TABLE {name} IN ROW EXCLUSIVE MODE NOWAIT")
    except DBAPIError as error:
        savepoint.rollback()
        if isinstance(error.orig, psycopg.errors.LockNotAvailable):
            return False
        raise
    savepoint.commit()
    return True


def _warn(tome: Transactions, what: str, error: Exception) -> None:
    reason = " ".join(str(error).split())
    warnings.warn(
        f"{tome.address}: all was written, but {what} could not be made ({reason}): search is exact until a later "
        "command makes it",
        stacklevel=2,
    )


def _have_states(transaction: PostgresTransaction, right: str = "SELECT") -> bool:
    """Whether there is a table of the states, with this right."""
    return bool(transaction.read_value(_HAS_STATES, right))


def _read_states(transaction: PostgresTransaction, spaces: Iterable[str] | None = None) -> list[_State]:
    """The states of these spaces of vectors, or of all, sorted. Without `near_spaces` nothing is known of them."""
    query, values = (_READ_STATES, ()) if spaces is None else (f"{_READ_STATES} AND s.space = ANY(%s)", (list(spaces),))
    if spaces is None and not _have_states(transaction):
        query = _READ_SPACES
    return [_State(*row) for row in transaction.run(f"{query} ORDER BY 1", values)]


def _count(transaction: PostgresTransaction, space: str) -> int:
    return int(transaction.read_value("SELECT count(*) FROM vectors WHERE space = %s", space))


def _explain(transaction: PostgresTransaction, tome: str, states: Iterable[_State], halfvec: Halfvec | str) -> str:
    """Why a large space is searched exactly."""
    if isinstance(halfvec, str):
        return halfvec
    if any(each.is_current and each.has_index and not each.may_read for each in states):
        return (
            f'you may not read its index: its owner runs `GRANT SELECT ON ALL TABLES IN SCHEMA "{tome}" TO` you again'
        )
    if any(each.is_current and each.width == _CANNOT for each in states):
        return _TOO_LARGE
    if not transaction.read_value(_MAY_MAKE):
        return "you may not make an index: the next command of its owner that adds or removes makes it"
    return "it has no index of what it holds now: the next command that adds or removes makes it"
