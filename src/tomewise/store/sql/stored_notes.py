"""The notes of a tome: settings, builds and sessions, each kind in a table of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select

from tomewise.store.records import BUILDS, SESSIONS, SETTINGS
from tomewise.store.sql.schema import builds, meta, sessions

if TYPE_CHECKING:
    from tomewise.store.sql.dialects import Dialect

NOTES = {SETTINGS: meta, BUILDS: builds, SESSIONS: sessions}  # two columns each: the name, the note


class Reading(ABC):
    """What reads a tome through a connection: an open store, one moment of it, or a transaction."""

    dialect: Dialect

    @abstractmethod
    def read(self) -> AbstractContextManager[Connection]:
        """Begin to read."""


class StoredNotes(Reading):
    """See `store.write_contract.Notes`."""

    def notes(self, kind: str) -> dict[str, Any]:
        """All notes of a kind, sorted by name."""
        name, note = NOTES[kind].c
        with self.read() as connection:
            return {row[0]: row[1] for row in connection.execute(select(name, note).order_by(name))}

    def note_names(self, kind: str) -> list[str]:
        """The names of all notes of a kind, sorted. A name that is not text is left out: nobody can ask for it."""
        with self.read() as connection:
            return self.dialect.read_names(connection, next(iter(NOTES[kind].c)))

    def note(self, kind: str, name: str) -> Any:
        """A note, None where it does not exist."""
        key, note = NOTES[kind].c
        with self.read() as connection:
            return connection.scalar(select(note).where(key == name))
