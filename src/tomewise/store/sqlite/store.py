"""A tome in one SQLite file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from sqlalchemy import Engine, select
from sqlalchemy.dialects.sqlite import insert

from tomewise.store.records import PASSAGES
from tomewise.store.sqlite import lexical
from tomewise.store.sqlite.arrays import Arrays
from tomewise.store.sqlite.calls import StoredCalls
from tomewise.store.sqlite.database import begin_write, connect, translate_errors
from tomewise.store.sqlite.mirror import Keys
from tomewise.store.sqlite.records import StoredRecords
from tomewise.store.sqlite.schema import meta
from tomewise.store.sqlite.scope import ScopeKeys
from tomewise.store.sqlite.snapshot import StoredSnapshot
from tomewise.store.sqlite.spaces import StoredSpaces
from tomewise.store.sqlite.texts import StoredTexts
from tomewise.store.sqlite.write import Write
from tomewise.types import Scope


class SqliteStore(StoredTexts, StoredSpaces, StoredRecords):
    """See `store.contract.Store`. Arrays are cached in a folder beside the file."""

    def __init__(self, path: Path, engine: Engine, identity: str, *, read_only: bool = False) -> None:
        super().__init__(path, engine)
        if read_only:
            self.read_only, self._remedy = True, "it was opened with read_only, so open it without that to change it"
        self._arrays = Arrays(self.cache_folder, identity, self.read, lambda: self._begin_write(wait=False))
        self._scopes = ScopeKeys(self.read, self.edges)
        self.calls = StoredCalls(self.read, None if self.read_only else self._begin_write)

    @classmethod
    def open(cls, path: Path, *, create: bool = True, read_only: bool = False) -> SqliteStore:
        """Open a tome; if `create` is true, create it if it does not exist. Raises StoreError and Locked.

        With `read_only` nothing is written to the file: no trace and no reply is kept.
        """
        path = Path(path).absolute()
        engine = connect(path, create=create, read_only=read_only)
        try:
            return cls(path, engine, _identity(engine, path), read_only=read_only)
        except BaseException:
            engine.dispose()
            raise

    @contextmanager
    def write(self) -> Iterator[Write]:
        """One transaction; the cached arrays are updated with its changes."""
        with self._begin_write() as connection:
            change = Write(connection)
            yield change
            self._arrays.follow(connection, change.finish())

    @contextmanager
    def snapshot(self) -> Iterator[StoredSnapshot]:
        """All content in one read transaction."""
        with self.read() as connection:
            yield StoredSnapshot(connection)

    def keys_within(self, scope: Scope | None, layer: str = PASSAGES) -> Keys | None:
        """The keys of the nodes of a layer within a scope. They are kept until what decides about them changes."""
        return None if scope is None or scope == Scope() else self._scopes.find(scope, layer)

    def lexical(self, query: str, limit: int, *, within: Scope | None = None) -> list[tuple[int, float]]:
        """Passage keys with their BM25 scores, best first."""
        with self.read() as connection:
            return lexical.search(connection, query, limit, within)

    def find_holders(self, words: Iterable[str], among: Keys) -> list[tuple[int, Keys]]:
        """For each word, how many passages hold it, and those of `among` that do."""
        with self.read() as connection:
            return lexical.find_holders(connection, words, among)

    def _finish(self) -> None:
        self.calls.close()


def _identity(engine: Engine, path: Path) -> str:
    """A random id: distinguishes this tome from another one that is later stored under the same path."""
    query = select(meta.c.value).where(meta.c.key == "identity")
    with translate_errors(path), engine.connect() as connection:
        identity = connection.scalar(query)
    if identity is None:
        with begin_write(engine, path) as connection:
            row = {"key": "identity", "value": uuid4().hex}
            connection.execute(insert(meta).values(row).on_conflict_do_nothing())
            identity = connection.scalar(query)
    return str(identity)
