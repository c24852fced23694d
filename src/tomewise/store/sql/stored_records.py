"""What the layers of a tome have processed, and the traces of questions."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import chain, islice
from typing import Any

from sqlalchemy import Connection, delete, func, literal_column, select

from tomewise.store.records import Intake
from tomewise.store.sql.lists import list_keys
from tomewise.store.sql.row_values import Misfit
from tomewise.store.sql.schema import documents, intake, nodes, removals, traces
from tomewise.store.sql.stored_notes import Reading, StoredNotes, reads
from tomewise.types import NodeId

_TAKEN = select(intake.c.node).where(intake.c.failure == "")


class StoredRecords(StoredNotes):
    """See `store.contract.Records`."""

    @reads
    def intake(self, connection: Connection, layer: str, among: Iterable[int] | None = None) -> Intake:
        """What a layer has processed so far, of these nodes or of all."""
        tests = [intake.c.layer == layer]
        if among is not None:
            tests.append(intake.c.node.in_(list_keys(among)))
        # Bare rows: a tome may have many nodes.
        cursor: Any = connection.execute(_TAKEN.where(*tests)).cursor
        done = frozenset(chain.from_iterable(cursor))
        query = select(*intake.c["node", "failure"]).where(*tests, intake.c.failure != "")
        cursor = connection.execute(query).cursor
        failed = dict(cursor.fetchall())
        if not {*map(type, done), *map(type, failed)} <= {int} or not {*map(type, failed.values())} <= {str}:
            raise Misfit("intake", "a value of another type")
        return Intake(done=done, failed=failed)

    @reads
    def count_taken(self, connection: Connection, layer: str) -> int:
        """How many nodes a layer has processed, failures not included."""
        query = select(func.count()).select_from(_TAKEN.where(intake.c.layer == layer).subquery())
        return connection.scalar(query) or 0

    @reads
    def find_removed_ids(self, connection: Connection, layer: str) -> tuple[NodeId, ...]:
        """Ids of the nodes removed since the last build of a layer that it had processed, failures included, sorted."""
        query = select(removals.c.node).where(removals.c.layer == layer).order_by(removals.c.node)
        return tuple(connection.scalars(query))

    @reads
    def find_pending_keys(self, connection: Connection, layer: str, below: Iterable[str]) -> list[int]:
        """Keys of the nodes of the layers `below` that this layer has yet to process, failures included.

        They are in document order.
        """
        there = select(nodes.c.key).where(nodes.c.layer.in_(list(below)))
        # In order, so that a database can read two indexes side by side instead of looking up each node.
        pending = there.except_(_TAKEN.where(intake.c.layer == layer)).order_by(literal_column("1"))
        query = (
            select(nodes.c.key)
            .outerjoin(documents, documents.c.key == nodes.c.document)
            .where(nodes.c.key.in_(pending))
            .order_by(documents.c.id.nulls_first(), *nodes.c["layer", "level", "position", "id"])
        )
        return list(connection.scalars(query))

    @reads
    def layers(self, connection: Connection) -> dict[str, dict[str, int]]:
        """For each layer, the number of its nodes, and the number of nodes that it failed to process."""
        sizes = select(nodes.c.layer, func.count()).group_by(nodes.c.layer).order_by(nodes.c.layer)
        counts = {layer: {"nodes": count, "failed": 0} for layer, count in connection.execute(sizes)}
        failures = select(intake.c.layer, func.count()).where(intake.c.failure != "").group_by(intake.c.layer)
        for layer, count in connection.execute(failures):
            counts.setdefault(layer, {"nodes": 0, "failed": 0})["failed"] = count
        return counts


class StoredTraces(Reading):
    """See `store.contract.Traces`."""

    @abstractmethod
    def begin_append(self) -> AbstractContextManager[Connection]:
        """One transaction for replies and traces; where the database allows it, it waits for no writer."""

    def save_trace(self, *, asked: str, question: str, record: dict[str, Any]) -> int:
        """Store the record of how a question was answered, and return its number."""
        with self.begin_append() as connection:
            (key,) = self.dialect.find_new_keys(connection, traces, 1)
            self.dialect.insert_rows(connection, "traces", [(key, asked, question, json.dumps(record))])
            return key

    @reads
    def trace_numbers(
        self, connection: Connection, limit: int | None = 20, *, before: int | None = None, matching: str = ""
    ) -> list[int]:
        """The numbers of the latest traces, newest first, before one of them, and with all these words."""
        words = matching.casefold().split()
        query = select(traces.c.key).order_by(traces.c.key.desc())
        query = query if before is None else query.where(traces.c.key < before)
        if not words:
            return list(connection.scalars(query.limit(limit)))
        # A database may fold the case of ASCII alone, so the texts are compared here.
        answer = self.dialect.field(traces.c.record, "text")
        rows = connection.execute(query.add_columns(traces.c.question, answer))
        found = (row[0] for row in rows if _holds_words(words, f"{row[1]}\n{row[2]}"))
        return list(islice(found, limit))

    @reads
    def trace(self, connection: Connection, number: int) -> dict[str, Any] | None:
        """The trace with this number, None where it does not exist."""
        row = connection.execute(select(traces).where(traces.c.key == number)).mappings().first()
        if row is None:
            return None
        return {"number": number, "asked": row["asked"], "question": row["question"], **row["record"]}

    def delete_trace(self, number: int) -> bool:
        """Delete a trace, and return whether it existed. Its number is not used again."""
        with self.begin_append() as connection:
            return bool(connection.execute(delete(traces).where(traces.c.key == number)).rowcount)


def _holds_words(words: Sequence[str], text: str) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)
