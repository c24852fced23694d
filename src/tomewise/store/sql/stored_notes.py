"""The notes of a tome: settings, builds and sessions, each kind in a table of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy import Connection, select

from tomewise.errors import ConnectionLost
from tomewise.store.records import BUILDS, SESSIONS, SETTINGS
from tomewise.store.sql.schema import builds, meta, sessions

if TYPE_CHECKING:
    from tomewise.store.sql.dialects import Dialect

NOTES = {SETTINGS: meta, BUILDS: builds, SESSIONS: sessions}  # two columns each: the name, the note


P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="Reading")


class Reading(Protocol):
    """What reads a tome through a connection: an open store, one moment of it, or a transaction."""

    dialect: Dialect

    @abstractmethod
    def read(self) -> AbstractContextManager[Connection]:
        """Begin to read."""


def reads(method: Callable[Concatenate[S, Connection, P], T]) -> Callable[Concatenate[S, P], T]:
    """Give a method a connection to read with. If the database ends it, the method runs once more with another one."""

    @wraps(method)
    def read(self: S, /, *given: P.args, **named: P.kwargs) -> T:
        args: Any = [list(each) if isinstance(each, Iterator) else each for each in given]  # which is read only once
        kwargs: Any = {name: list(each) if isinstance(each, Iterator) else each for name, each in named.items()}
        with suppress(ConnectionLost), self.read() as connection:
            return method(self, connection, *args, **kwargs)
        with self.read() as connection:
            return method(self, connection, *args, **kwargs)

    return read


class StoredNotes(Reading):
    """See `store.write_contract.Notes`."""

    @reads
    def notes(self, connection: Connection, kind: str) -> dict[str, Any]:
        """All notes of a kind, sorted by name."""
        name, note = NOTES[kind].c
        return {row[0]: row[1] for row in connection.execute(select(name, note).order_by(name))}

    @reads
    def note_names(self, connection: Connection, kind: str) -> list[str]:
        """The names of all notes of a kind, sorted. A name that is not text is left out: nobody can ask for it."""
        return self.dialect.read_names(connection, next(iter(NOTES[kind].c)))

    @reads
    def note(self, connection: Connection, kind: str, name: str) -> Any:
        """A note, None where it does not exist."""
        key, note = NOTES[kind].c
        return connection.scalar(select(note).where(key == name))
