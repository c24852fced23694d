"""A tome in one SQLite file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from sqlalchemy import Connection, Engine, select
from sqlalchemy.dialects.sqlite import insert

from tomewise.errors import StoreError
from tomewise.store.records import PASSAGES
from tomewise.store.sqlite import lexical
from tomewise.store.sqlite.arrays import Arrays
from tomewise.store.sqlite.call_cache import StoredCalls
from tomewise.store.sqlite.damage import (
    describe_damage,
    find_contradiction,
    find_damaged_index,
    find_damaged_row,
    name_damage,
)
from tomewise.store.sqlite.database import (
    begin_new,
    begin_write,
    connect,
    delete_files,
    move_file,
    translate_errors,
)
from tomewise.store.sqlite.mirror import Keys
from tomewise.store.sqlite.row_values import RESTORE, describe_value
from tomewise.store.sqlite.schema import TABLES, meta
from tomewise.store.sqlite.scope import ScopeKeys
from tomewise.store.sqlite.snapshot import StoredSnapshot
from tomewise.store.sqlite.spaces import StoredSpaces
from tomewise.store.sqlite.stored_records import StoredRecords
from tomewise.store.sqlite.texts import StoredTexts
from tomewise.store.sqlite.whole import fill, write_lines
from tomewise.store.sqlite.write import Write
from tomewise.types import Scope

_NUMBER = re.compile("[0-9]{0,7}"), "a number"  # an empty one counts as none
_FORMS = {
    "identity": (re.compile("[0-9a-f]{32}"), "32 hexadecimal digits"),  # the caches name it
    "dimensions": _NUMBER,
    "overlap": _NUMBER,
    "passage_tokens": (re.compile("[1-9][0-9]{0,6}|"), "a number above 0"),
}


class SqliteStore(StoredTexts, StoredSpaces, StoredRecords):
    """See `store.contract.Store`. Arrays are cached in a folder beside the file."""

    def __init__(self, path: Path, engine: Engine, identity: str, *, read_only: bool = False) -> None:
        super().__init__(path, engine)
        if read_only:
            self.read_only, self._remedy = True, "it was opened with read_only, so open it without that to change it"
        self._arrays = Arrays(self._cache, identity, self.read, lambda: self._begin_write(wait=False))
        self._scopes = ScopeKeys(self.read, self.edges)
        self.calls = StoredCalls(self.read, None if self.read_only else self._begin_write)

    @classmethod
    def open(cls, path: Path, *, create: bool = True, read_only: bool = False) -> SqliteStore:
        """Open a tome; if `create` is true, create it if it does not exist. Raises StoreError and Locked.

        With `read_only` nothing is written to the file: no trace and no reply is stored.
        """
        path = Path(path).absolute()
        engine = connect(path, create=create, read_only=read_only)
        try:
            return cls(path, engine, _read_identity(engine, path), read_only=read_only)
        except BaseException:
            engine.dispose()
            raise

    @classmethod
    def restore(
        cls, path: Path, lines: Iterable[bytes], check: Callable[[Mapping[str, str]], None] | None = None
    ) -> None:
        """Make a new tome of what `dump` wrote: whole, or not at all. Raises StoreError, also for hostile lines.

        `check` gets the rows of the table meta, and may raise.
        """
        path = Path(path).absolute()
        with begin_new(path) as connection:
            fill(connection, lines)
            _check_settings(connection, path)
            if check:
                check({row.key: row.value for row in connection.execute(select(meta.c.key, meta.c.value))})

    def delete(self) -> None:
        """Close the store, and delete the tome with its caches. Raises Locked while it is being written."""
        with self.alone("delete"):
            self.close()
            delete_files(self.path)
        self.delete_cache()

    def move(self, path: Path) -> None:
        """Close the store, and give the tome another path in its folder. Its caches are made again.

        Raises Locked while another program has it open, StoreError if there is something at that path.
        """
        with self.alone("rename"):
            self.close()
            move_file(self.path, path)
        self.delete_cache()

    def dump(self) -> Iterator[str]:
        """All that the tome holds, with keys, replies and traces, as JSON lines in one order: see `restore`."""
        with self.read() as connection:
            yield from write_lines(connection)

    @contextmanager
    def write(self) -> Iterator[Write]:
        """One transaction; the cached arrays are updated with its changes."""
        with self._begin_write() as connection:
            change = Write(connection)
            yield change
            self._arrays.apply_deltas(connection, change.finish())

    @contextmanager
    def snapshot(self) -> Iterator[StoredSnapshot]:
        """All content in one read transaction."""
        with self.read() as connection:
            yield StoredSnapshot(connection)

    def keys_within(self, scope: Scope | None, layer: str = PASSAGES) -> Keys | None:
        """The keys of the nodes of a layer within a scope. They are cached until what decides about them changes."""
        return None if scope is None or scope == Scope() else self._scopes.find(scope, layer)

    def lexical(self, query: str, limit: int, *, within: Scope | None = None) -> list[tuple[int, float]]:
        """Passage keys with their BM25 scores, best first."""
        with self.read() as connection:
            return lexical.search(connection, query, limit, within)

    def find_damage(self) -> str:
        """What is damaged: the file, the row, and the remedy; empty if nothing is. This reads the whole file.

        Cached arrays that do not belong to the tome are deleted and made again.
        """
        with self.read() as connection:
            found = (
                find_damaged_row(connection, TABLES.tables.values())
                or find_contradiction(connection)
                or find_damaged_index(connection)
            )
            if found:
                return describe_damage(self.path, found)
            is_stale = self._arrays.find_mismatch(connection)
        if not is_stale:
            return ""
        with suppress(StoreError, OSError):
            self.clear_cache()
        self._arrays.forget()
        return f"{self.cache_folder} held arrays of something else, and they were deleted: try again"

    def find_holders(self, words: Iterable[str], among: Keys) -> list[tuple[int, Keys]]:
        """For each word, how many passages hold it, and those of `among` that do."""
        with self.read() as connection:
            return lexical.find_holders(connection, words, among)

    def _finish(self) -> None:
        self.calls.close()


def _read_identity(engine: Engine, path: Path) -> str:
    """A random id: distinguishes this tome from another one that is later stored under the same path.

    The settings that are numbers are checked too. Raises StoreError for a damaged one.
    """
    with translate_errors(path), engine.connect() as connection, name_damage(connection, path):
        settings = _check_settings(connection, path)
    if "identity" not in settings:
        with begin_write(engine, path) as connection:
            row = {"key": "identity", "value": uuid4().hex}
            connection.execute(insert(meta).values(row).on_conflict_do_nothing())
            settings = _check_settings(connection, path)
    return settings["identity"]


def _check_settings(connection: Connection, path: Path) -> dict[str, str]:
    """The settings that have a form. Raises StoreError for one of another form."""
    query = select(meta.c.key, meta.c.value).where(meta.c.key.in_(_FORMS))
    settings: dict[str, str] = {row.key: row.value for row in connection.execute(query)}
    for key, value in settings.items():
        form, words = _FORMS[key]
        if form.fullmatch(value) is None:
            problem = f"the row {key!a} of the table meta is {describe_value(value)}, not {words}; {RESTORE}"
            raise StoreError(describe_damage(path, problem))
    return settings
