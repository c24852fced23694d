"""The vectors and edges of a tome as arrays: held in memory, cached in files, and read from the database if needed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from tomewise.errors import Locked, StoreError
from tomewise.store.beside import FolderBeside
from tomewise.store.int8_rows import are_packed, are_worth_packing, have_bounds, pack_rows
from tomewise.store.sql.dialects import Transaction
from tomewise.store.sql.mirror import EDGE, Block, Columns, Delta, Deltas, Mirror, Rows, join_blocks
from tomewise.store.sql.row_values import Misfit, decode_plain

_NUMBERS = {"vectors": np.float32, "packed": np.int8, "kept": np.int8, "edges": np.float64}  # by kind of space
_VERSION = "SELECT spaces.version\nFROM spaces WHERE spaces.space = :space"


class Arrays:
    """The arrays of one tome by space (`vectors/NAME` or `edges/NAME`), whose files are in the folder `cache`.

    With `follows_steps` the files may lag, and lie where only the user writes, so that their version says enough.
    `begin_repair` begins a write transaction, or raises Locked if it would have to wait: the files may only be changed
    inside a write transaction. It gets the transaction that reads meanwhile, if one does.
    """

    def __init__(
        self,
        cache: FolderBeside,
        tome: str,
        begin_repair: Callable[[Transaction | None], AbstractContextManager[Transaction]],
        *,
        follows_steps: bool,
    ) -> None:
        self._cache = cache
        self._tome = tome
        self._begin_repair = begin_repair
        self._follows_steps = follows_steps
        self._guards: dict[str, threading.Lock] = {}
        self._columns: dict[str, Columns] = {}
        self._packed: dict[str, Columns] = {}
        self._checked: dict[str, int] = {}  # the version of a space at which its files were found to fit the tables

    def columns(self, space: str, transaction: Transaction) -> Columns:
        """The arrays of a space as a transaction sees them: from memory, else from the files, else from the tables."""
        with self._guards.setdefault(space, threading.Lock()):
            version = read_space_version(transaction, space)
            cached = self._columns.get(space)
            if cached is not None and cached.version == version and cached.is_whole:
                return cached
            found = self._make_mirror(space).read(version) or self._follow(space, version, transaction)
            is_checked = self._follows_steps or self._checked.get(space) == version
            missing = found is None or not (is_checked or self._fits(found, transaction, space))
            if found is None or missing:
                found = Columns(version, *load_rows(transaction, space))
            if missing and len(found.stored_keys):
                found = self._repair(space, found, transaction)
            self._columns[space], self._checked[space] = found, version
            return found

    def _follow(self, space: str, version: int, transaction: Transaction) -> Columns | None:
        """The arrays at this version from earlier ones and what came and went since; None where that is not known."""
        if not self._follows_steps:
            return None
        kind, mirror = space.split("/", 1)[0], self._make_mirror(space)
        width = EDGE if kind == "edges" else _find_dimensions(transaction)
        for former in filter(None, (mirror.read(), self._columns.get(space))):
            is_same_width = former.stored_rows.shape[1] == width
            changes = transaction.load_changes(space, former.version, width) if is_same_width else None
            if changes is None:
                continue
            removed, came = changes
            keys, rows = join_blocks(came, width, _NUMBERS[kind])
            _check_rows(kind, rows, transaction)
            delta = Delta(keys, rows, removed)
            with suppress(StoreError, OSError), self._begin_repair(transaction) as now:
                is_done = mirror.has(version) or self._apply(space, former.version, version, delta)
                if not is_done and read_space_version(now, space) == version:
                    changed = former.change(version, delta)  # the files are of a step that was rolled back
                    mirror.write(version, changed.keys, changed.rows)
            return mirror.read(version) or former.change(version, delta)
        return None

    def find_packed(self, space: str, found: Columns) -> Columns | None:
        """The vectors `found` of a space packed, with the same keys; None if they are few, or cannot be written now."""
        if not are_worth_packing(len(found.stored_keys)):
            return None
        with self._guards.setdefault(_name_packed(space), threading.Lock()):
            packed = self._packed.get(space)
            if packed is None or packed.version != found.version or not packed.is_whole:
                packed = self._make_mirror(_name_packed(space)).read(found.version)
                if packed is None or not _fit_packed(packed, found):
                    packed = self._pack(space, found)
                if packed is None:
                    return None
                self._packed[space] = packed
            return packed if len(packed.stored_keys) else None

    def find_kept(self, name: str, versions: Mapping[str, int]) -> NDArray[np.int8] | None:
        """See `contract.Spaces`. The bytes are those of one row of a mirror."""
        found = self._make_mirror(f"kept/{name}").read(_join_versions(versions))
        return None if found is None or len(found.stored_rows) != 1 else found.stored_rows[0]

    def keep(self, name: str, versions: Mapping[str, int], content: NDArray[np.int8]) -> None:
        """See `contract.Spaces`."""
        mirror = self._make_mirror(f"kept/{name}")
        with suppress(StoreError, OSError), self._begin_repair(None):
            mirror.write(_join_versions(versions), np.zeros(1, np.int64), content[None])

    def apply_deltas(self, transaction: Transaction, deltas: Deltas) -> None:
        """Update the files with the changes of a write transaction that is about to commit.

        If the transaction is rolled back, readers ignore the files, because their version was never committed.
        """
        for space, (before, after, delta) in deltas.items():
            try:
                if before and self._apply(space, before, after, delta):
                    if self._checked.get(space) == before:
                        self._checked[space] = after
                    continue
                if before and self._follows_steps:
                    continue  # the files are of an earlier version, or not there: a later reader brings them up to date
                rows = load_rows(transaction, space) if before else (delta.added_keys, delta.added_rows)
                self._make_mirror(space).write(after, *rows)
            except OSError:
                continue  # for example a full disk: the files are out of date, and a later reader writes them again

    def find_mismatch(self, transaction: Transaction) -> bool:
        """Whether arrays in memory, which may come from files, are not those of the tables. This reads them all."""
        for space, found in self._columns.items():
            if found.version == (version := read_space_version(transaction, space)):
                keys, rows = load_rows(transaction, space)
                if not np.array_equal(found.keys, keys) or not np.array_equal(found.rows, rows):
                    return True
                packed = self._packed.get(space)
                if packed is None or packed.version != version or not len(packed.stored_keys):
                    continue
                if not np.array_equal(packed.keys, keys) or not are_packed(packed.rows, rows):
                    return True
        return False

    def delete_kept(self) -> None:
        """Delete what was kept with `keep`, if that can be done now: nothing here can tell whether it is right."""
        with suppress(StoreError, OSError), self._begin_repair(None):
            for name in self._cache.list_names():
                if name.startswith("kept%2F"):
                    self._cache.delete(name)

    def forget(self) -> None:
        """Forget the arrays in memory, so that they are read again."""
        self._columns.clear()
        self._packed.clear()
        self._checked.clear()

    @staticmethod
    def _fits(found: Columns, transaction: Transaction, space: str) -> bool:
        """Whether arrays from files have the keys and the width that the tables have, and edges the nodes.

        The sum of the keys is compared, since reading them all takes longer than reading the files.
        """
        kind, name = space.split("/", 1)
        query = f"SELECT count(*), coalesce(sum(key), 0) FROM {kind} WHERE space = :space"
        count, total = transaction.ask(query, space=name).fetchone()
        keys = found.keys
        if len(keys) != int(count) or int(keys.sum()) != int(total) or (keys[1:] <= keys[:-1]).any():
            return False
        if kind == "vectors":
            return not count or found.stored_rows.shape[1] == _find_dimensions(transaction)
        return found.stored_rows.shape[1] == EDGE and _are_edges(found.rows, transaction)

    def _repair(self, space: str, found: Columns, transaction: Transaction) -> Columns:
        mirror = self._make_mirror(space)
        try:
            with self._begin_repair(transaction) as now:
                if read_space_version(now, space) == found.version:
                    mirror.write(found.version, found.stored_keys, found.stored_rows)
        except (StoreError, OSError):  # another writer is active, or writing is not allowed: a later reader repairs
            return found
        return mirror.read(found.version) or found

    def _pack(self, space: str, found: Columns) -> Columns | None:
        """Pack vectors and write them; without keys where nothing can be written, None if another writer is active."""
        mirror = self._make_mirror(_name_packed(space))
        try:
            with self._begin_repair(None) as now:
                if read_space_version(now, space) == found.version:
                    packed = pack_rows(found.stored_rows, found.indices, found.release_memory)
                    mirror.write(found.version, found.keys, packed)
        except Locked:
            return None
        except (StoreError, OSError):  # a tome to be read alone, a full disk: tried again when the space has changed
            return Columns(found.version, np.empty(0, np.int64), np.empty((0, 0), np.int8))
        return mirror.read(found.version)

    def _apply(self, space: str, before: int, after: int, delta: Delta) -> bool:
        """Change the files of a space, and its packed copy if it has one; False if they have not the version before."""
        if space.startswith("vectors/"):
            packed = self._make_mirror(_name_packed(space))
            with suppress(OSError):  # the copy is out of date, and is made again
                if packed.has(before):
                    packed.apply(Delta(delta.added_keys, pack_rows(delta.added_rows), delta.removed), before, after)
        return self._make_mirror(space).apply(delta, before, after)

    def _make_mirror(self, space: str) -> Mirror:
        return Mirror(self._cache, space, self._tome, np.dtype(_NUMBERS[space.split("/", 1)[0]]))


def read_space_version(transaction: Transaction, space: str) -> int:
    """The version of a space; 0 if nothing was ever stored in it."""
    version: int = next(transaction.fetch(_VERSION, space=space), (0,))[0]
    return version


def load_rows(transaction: Transaction, space: str) -> Block:
    """The arrays of a space, read from the tables, keys ascending."""
    kind, name = space.split("/", 1)
    if kind == "vectors":
        width = _find_dimensions(transaction)
        keys, rows = join_blocks(transaction.load_vectors(name, width), width, np.float32)
    else:
        keys, rows = join_blocks(transaction.load_edges(name), EDGE, np.float64)
    _check_rows(kind, rows, transaction)
    return keys, rows


def _check_rows(kind: str, rows: Rows, transaction: Transaction) -> None:
    """Raise Misfit for rows from the tables that can be no vectors, or no edges."""
    if kind == "edges" and not _are_edges(rows, transaction):
        raise Misfit("edges")
    with np.errstate(invalid="ignore"):
        if kind == "vectors" and not np.isfinite(rows.sum(dtype=np.float64)):  # a flag for each would need much memory
            raise Misfit("vectors")


def _find_dimensions(transaction: Transaction) -> int:
    """The width of all vectors: the tome's setting, else the width of any stored vector."""
    setting = next(transaction.fetch("SELECT meta.value\nFROM meta WHERE meta.key = 'dimensions'"), ("",))[0]
    with decode_plain("meta"):
        return int(setting or transaction.read_value("SELECT length(vector) / 4 FROM vectors LIMIT 1") or 0)


def _join_versions(versions: Mapping[str, int]) -> int:
    """One number for several versions."""
    stated = json.dumps(sorted(versions.items())).encode()
    return int.from_bytes(sha256(stated).digest()[:8], "little")


def _fit_packed(packed: Columns, found: Columns) -> bool:
    """Whether packed rows from files have the keys and the width of the vectors, and numbers that give bounds."""
    width = pack_rows(found.stored_rows[:0]).shape[1]
    if packed.stored_rows.shape[1] != width or not np.array_equal(packed.keys, found.keys):
        return False
    return have_bounds(packed.stored_rows)


def _name_packed(space: str) -> str:
    """The space of the packed copy of `vectors/NAME`."""
    return f"packed/{space.split('/', 1)[1]}"


def _are_edges(rows: Rows, transaction: Transaction) -> bool:
    """Whether these can be edges: both ends are keys that a node can have, and the weight is finite."""
    last = transaction.read_value("SELECT max(key) FROM nodes") or 0
    ends, weights = rows[:, :2], rows[:, 2]
    return bool(((ends >= 1) & (ends <= last)).all() and np.isfinite(weights).all())
