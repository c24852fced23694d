"""What reads a tome through a transaction; its notes, what its layers have processed, and the traces of questions."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import wraps
from itertools import chain, islice
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from tomewise.errors import ConnectionLost
from tomewise.store.records import BUILDS, SESSIONS, SETTINGS, Intake
from tomewise.store.sql.dialects import Transaction
from tomewise.store.sql.row_values import Misfit
from tomewise.types import NodeId

# The table of each kind of notes, its column of names and that of notes.
NOTES = {
    SETTINGS: ("meta", "key", "value"),
    BUILDS: ("builds", "layer", "record"),
    SESSIONS: ("sessions", "name", "record"),
}
# In order, so that a database can read two indexes side by side instead of looking up each node.
_PENDING = """SELECT nodes.key
FROM nodes LEFT JOIN documents ON documents.key = nodes.document WHERE nodes.key IN (
  SELECT key FROM nodes WHERE layer IN :below EXCEPT SELECT node FROM intake WHERE failure = '' AND layer = :layer
  ORDER BY 1)
ORDER BY documents.id NULLS FIRST, nodes.layer, nodes.level, nodes.position, nodes.id"""
_TRACE = """SELECT traces.key AS number, traces.asked, traces.question, traces.record
FROM traces WHERE traces.key = :number"""
P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="StoredPart")


class StoredPart(Protocol):
    """What reads a tome: an open store, one moment of it, or a transaction that writes."""

    @abstractmethod
    def read(self) -> AbstractContextManager[Transaction]:
        """Begin to read."""


def reads(method: Callable[Concatenate[S, Transaction, P], T]) -> Callable[Concatenate[S, P], T]:
    """Give a method a transaction to read in. If the database ends it, the method runs once more in another one."""

    @wraps(method)
    def read(self: S, /, *given: P.args, **named: P.kwargs) -> T:
        args: Any = [list(each) if isinstance(each, Iterator) else each for each in given]  # which is read only once
        kwargs: Any = {name: list(each) if isinstance(each, Iterator) else each for name, each in named.items()}
        with suppress(ConnectionLost), self.read() as transaction:
            return method(self, transaction, *args, **kwargs)
        with self.read() as transaction:
            return method(self, transaction, *args, **kwargs)

    return read


class StoredNotes(StoredPart):
    """See `store.contract.Notes`."""

    @reads
    def notes(self, transaction: Transaction, kind: str) -> dict[str, Any]:
        """All notes of a kind, sorted by name."""
        table, name, note = NOTES[kind]
        return dict(transaction.fetch(f"SELECT {table}.{name}, {table}.{note}\nFROM {table} ORDER BY 1"))

    @reads
    def note_names(self, transaction: Transaction, kind: str) -> list[str]:
        """The names of all notes of a kind, sorted. A name that is not text is left out: nobody can ask for it."""
        return transaction.read_names(*NOTES[kind][:2])

    @reads
    def note(self, transaction: Transaction, kind: str, name: str) -> Any:
        """A note, None where it does not exist."""
        table, key, note = NOTES[kind]
        found = transaction.fetch(f"SELECT {table}.{note}\nFROM {table} WHERE {key} = :name", name=name)
        return next(found, (None,))[0]


class StoredRecords(StoredNotes):
    """See `store.contract.Records`."""

    @reads
    def intake(self, transaction: Transaction, layer: str, among: Iterable[int] | None = None) -> Intake:
        """What a layer has processed so far, of these nodes or of all."""
        values: dict[str, Any] = {"layer": layer}
        query = "SELECT {} FROM intake WHERE layer = :layer AND failure {} ''"
        if among is not None:
            values["keys"], query = list(among), f"{query} AND node IN :keys"
        # Rows as they are: a tome may have many nodes.
        done = frozenset(chain.from_iterable(transaction.ask(query.format("node", "="), **values)))
        failed = dict(transaction.ask(query.format("node, failure", "<>"), **values))
        if not {*map(type, done), *map(type, failed)} <= {int} or not {*map(type, failed.values())} <= {str}:
            raise Misfit("intake")
        return Intake(done=done, failed=failed)

    @reads
    def count_taken(self, transaction: Transaction, layer: str) -> int:
        """How many nodes a layer has processed, failures not included."""
        query = "SELECT count(*) FROM intake WHERE layer = :layer AND failure = ''"
        return int(transaction.ask(query, layer=layer).fetchone()[0])

    @reads
    def find_removed_ids(self, transaction: Transaction, layer: str) -> tuple[NodeId, ...]:
        """Ids of the nodes removed since the last build of a layer that it had processed, failures included, sorted."""
        query = "SELECT removals.node\nFROM removals WHERE layer = :layer ORDER BY node"
        return tuple(node for (node,) in transaction.fetch(query, layer=layer))

    @reads
    def find_pending_keys(self, transaction: Transaction, layer: str, below: Iterable[str]) -> list[int]:
        """Keys of the nodes of the layers `below` that this layer has yet to process, failures included.

        They are in document order.
        """
        return [key for (key,) in transaction.fetch(_PENDING, below=list(below), layer=layer)]

    @reads
    def layers(self, transaction: Transaction) -> dict[str, dict[str, int]]:
        """For each layer, the number of its nodes, and the number of nodes that it failed to process."""
        sizes = transaction.fetch("SELECT nodes.layer, count(*)\nFROM nodes GROUP BY nodes.layer ORDER BY 1")
        counts = {layer: {"nodes": count, "failed": 0} for layer, count in sizes}
        failures = "SELECT intake.layer, count(*)\nFROM intake WHERE failure <> '' GROUP BY intake.layer"
        for layer, count in transaction.fetch(failures):
            counts.setdefault(layer, {"nodes": 0, "failed": 0})["failed"] = count
        return counts


class StoredTraces(StoredPart):
    """See `store.contract.Traces`."""

    @abstractmethod
    def begin_append(self) -> AbstractContextManager[Transaction]:
        """One transaction for replies and traces; where the database allows it, it waits for no writer."""

    def save_trace(self, *, asked: str, question: str, record: dict[str, Any]) -> int:
        """Store the record of how a question was answered, and return its number."""
        with self.begin_append() as transaction:
            (key,) = transaction.find_new_keys("traces", 1)
            transaction.insert_rows("traces", [(key, asked, question, json.dumps(record))])
            return key

    @reads
    def trace_numbers(
        self, transaction: Transaction, limit: int | None = 20, *, before: int | None = None, matching: str = ""
    ) -> list[int]:
        """The numbers of the latest traces, newest first, before one of them, and with all these words."""
        words = matching.casefold().split()
        where = "" if before is None else "WHERE traces.key < :before"
        values = {} if before is None else {"before": before}
        if not words:
            most = "" if limit is None else f"LIMIT {limit:d}"
            query = f"SELECT traces.key\nFROM traces {where} ORDER BY traces.key DESC {most}"
            return [key for (key,) in transaction.fetch(query, **values)]
        # A database may fold the case of ASCII alone, so the texts are compared here.
        answer = " || ' ' || ".join(transaction.text_field.format("traces.record", name) for name in ("text", "quoted"))
        query = f"SELECT traces.key, traces.question, {answer} AS words FROM traces {where} ORDER BY traces.key DESC"
        rows = transaction.ask(query, **values)
        found = (key for key, question, text in rows if _holds_words(words, f"{question}\n{text}"))
        return list(islice(found, limit))

    @reads
    def trace(self, transaction: Transaction, number: int) -> dict[str, Any] | None:
        """The trace with this number, None where it does not exist."""
        for row in transaction.fetch_rows(_TRACE, number=number):
            record: dict[str, Any] = row.pop("record")
            return row | record
        return None

    def delete_trace(self, number: int) -> bool:
        """Delete a trace, and return whether it existed. Its number is not used again."""
        with self.begin_append() as transaction:
            return bool(transaction.ask("DELETE FROM traces WHERE key = :number", number=number).rowcount)


def _holds_words(words: Sequence[str], text: str) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)
