"""Settings, intakes, builds, sessions and traces of a tome in SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import delete, func, literal_column, select
from sqlalchemy.dialects.sqlite import insert

from tomewise.store.records import Intake
from tomewise.store.sqlite.connections import Session
from tomewise.store.sqlite.removals import read_removals
from tomewise.store.sqlite.row_values import Misfit
from tomewise.store.sqlite.schema import builds, documents, intake, meta, nodes, sessions, traces
from tomewise.types import NodeId

_ANSWER = "CASE WHEN json_valid(record) THEN coalesce(json_extract(record, '$.answer'), '') ELSE '' END"


class StoredRecords(Session):
    """See `store.contract.Records`."""

    def meta(self, key: str) -> str | None:
        """A setting of this tome, such as its embedder."""
        with self.read() as connection:
            return connection.scalar(select(meta.c.value).where(meta.c.key == key))

    def intake(self, layer: str) -> Intake:
        """What a layer has processed so far."""
        query = "SELECT node, failure FROM intake WHERE layer = ?"
        with self.read() as connection:
            cursor: Any = connection.exec_driver_sql(query, (layer,)).cursor  # bare rows: a tome may have many nodes
            rows = dict(cursor.fetchall())
            if not all(type(node) is int for node in rows) or not all(type(reason) is str for reason in rows.values()):
                raise Misfit("intake", "a value of another type")
        failed = {node: failure for node, failure in rows.items() if failure}
        return Intake(done=frozenset(rows.keys() - failed.keys() if failed else rows), failed=failed)

    def count_intake(self, layer: str) -> int:
        """The number of nodes that a layer has processed, without those that failed."""
        query = select(func.count()).where(intake.c.layer == layer, intake.c.failure == "")
        with self.read() as connection:
            return connection.execute(query).scalar_one()

    def find_removed_ids(self, layer: str) -> tuple[NodeId, ...]:
        """Ids of the nodes removed since the last build of a layer that it had processed, failures included, sorted."""
        with self.read() as connection:
            return read_removals(connection, layer)

    def find_pending_keys(self, layer: str, below: Iterable[str]) -> list[int]:
        """Keys of the nodes of the layers `below` that this layer has yet to process, failures included.

        They are in document order.
        """
        taken = select(intake.c.node).where(intake.c.layer == layer, intake.c.failure == "")
        query = (
            select(nodes.c.key)
            .outerjoin(documents, documents.c.key == nodes.c.document)
            .where(nodes.c.layer.in_(list(below)), nodes.c.key.not_in(taken))
            .order_by(documents.c.id, nodes.c.layer, nodes.c.level, nodes.c.position, nodes.c.id)
        )
        with self.read() as connection:
            return list(connection.scalars(query))

    def layers(self) -> dict[str, dict[str, int]]:
        """For each layer, the number of its nodes, and the number of nodes that it failed to process."""
        with self.read() as connection:
            sizes = select(nodes.c.layer, func.count()).group_by(nodes.c.layer).order_by(nodes.c.layer)
            counts = {layer: {"nodes": count, "failed": 0} for layer, count in connection.execute(sizes)}
            failures = select(intake.c.layer, func.count()).where(intake.c.failure != "").group_by(intake.c.layer)
            for layer, count in connection.execute(failures):
                counts.setdefault(layer, {"nodes": 0, "failed": 0})["failed"] = count
        return counts

    def builds(self) -> dict[str, dict[str, Any]]:
        """The record of the last build of each layer."""
        with self.read() as connection:
            return {row.layer: row.record for row in connection.execute(select(builds).order_by(builds.c.layer))}

    def session_names(self) -> list[str]:
        """The names of all sessions, sorted. A name that is not text is left out: nobody can ask under it."""
        query = "SELECT CAST(name AS BLOB) FROM sessions WHERE typeof(name) = 'text' ORDER BY name"
        with self.read() as connection:
            names = [name for (name,) in connection.exec_driver_sql(query)]
        return [text for name in names if (text := name.decode(errors="replace")).encode() == name]

    def session(self, name: str) -> dict[str, Any] | None:
        """The record of a session, None where it does not exist."""
        with self.read() as connection:
            return connection.scalar(select(sessions.c.record).where(sessions.c.name == name))

    def save_trace(self, *, asked: str, question: str, record: dict[str, Any]) -> int:
        """Store the record of how a question was answered, and return its number."""
        with self._begin_write() as connection:
            row = insert(traces).values(asked=asked, question=question, record=json.dumps(record))
            return int(connection.execute(row.returning(traces.c.key)).scalar_one())

    def trace_numbers(self, limit: int | None = 20, *, before: int | None = None, matching: str = "") -> list[int]:
        """The numbers of the latest traces, newest first, before one of them, and with all these words."""
        words = matching.casefold().split()
        query = select(traces.c.key).order_by(traces.c.key.desc())
        query = query if before is None else query.where(traces.c.key < before)
        with self.read() as connection:
            if not words:
                return list(connection.scalars(query.limit(limit)))
            # SQLite folds the case of ASCII alone, so the texts are compared here.
            rows = connection.execute(query.add_columns(traces.c.question, literal_column(_ANSWER)))
            found = (row[0] for row in rows if _holds_words(words, f"{row[1]}\n{row[2]}"))
            return list(islice(found, limit))

    def trace(self, number: int) -> dict[str, Any] | None:
        """The trace with this number, None where it does not exist."""
        with self.read() as connection:
            row = connection.execute(select(traces).where(traces.c.key == number)).mappings().first()
            return None if row is None else _make_trace(row)

    def delete_trace(self, number: int) -> bool:
        """Delete a trace, and return whether it existed. Its number is not used again."""
        with self._begin_write() as connection:
            return bool(connection.execute(delete(traces).where(traces.c.key == number)).rowcount)


def _holds_words(words: Sequence[str], text: str) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)


def _make_trace(row: Mapping[Any, Any]) -> dict[str, Any]:
    fields = {"number": row["key"], "asked": row["asked"], "question": row["question"]}
    return {**fields, **row["record"]}
