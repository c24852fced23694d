"""The changes of a write transaction to settings, sessions, the intake of layers, and the records of their builds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from tomewise.store.sqlite.removals import clear_removals
from tomewise.store.sqlite.schema import builds, intake, meta, sessions

_FIELDS_OF_ALL_BUILDS = ("replies", "writes")  # of the record of a build, when a new one replaces it
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True)


class BuildRecords:
    """What a transaction records about builds and sessions; `Write` adds the changes of the memory itself."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def set_meta(self, key: str, value: str) -> None:
        """Record a setting of the tome."""
        row = {"key": key, "value": value}
        self._connection.execute(insert(meta).values(row).on_conflict_do_update(index_elements=["key"], set_=row))

    def put_session(self, name: str, record: Mapping[str, Any]) -> None:
        """Store the record of a session; it replaces an earlier record of this name."""
        row = {"name": name, "record": encode_json(record)}
        statement = insert(sessions).values(row)
        self._connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=row))

    def remove_session(self, name: str) -> bool:
        """Remove a session, and return whether it existed."""
        return bool(self._connection.execute(delete(sessions).where(sessions.c.name == name)).rowcount)

    def record_build(self, layer: str, record: Mapping[str, Any]) -> None:
        """Record the last build of a layer. It has processed all removals, so their log is emptied.

        What `count_replies` and `record_writes` stays, and so are the other models of earlier builds, as
        `former_models`; a mark to ask for replies again is removed, since that is done. A layer that commits once a
        batch calls it with the first batch that follows the removals.
        """
        before = self._read_build(layer)
        fields = {name: value for name, value in before.items() if name in _FIELDS_OF_ALL_BUILDS}
        former = {*before.get("former_models", ()), str(before.get("model", ""))} - {"", str(record.get("model", ""))}
        if former:
            fields["former_models"] = sorted(former)
        self._put_build(layer, {**record, **fields})
        clear_removals(self._connection, layer)

    def record_writes(self, layer: str, writes: Sequence[str]) -> None:
        """Record which node layers a layer writes, for layers above that are built without it."""
        self._put_build(layer, {**self._read_build(layer), "writes": list(writes)})

    def count_replies(self, layer: str, counts: Mapping[str, int]) -> None:
        """Add to the counts of replies, by kind, in the layer's record; they cover all builds."""
        record = self._read_build(layer)
        total = Counter(record.get("replies", {})) + Counter(counts)
        self._put_build(layer, {**record, "replies": dict(sorted(total.items()))})

    def mark_again(self, layer: str, mark: str) -> None:
        """Mark a layer: until its next build succeeds, its calls are repeated (see `Run.fresh_mark`)."""
        self._put_build(layer, {**self._read_build(layer), "again": mark})

    def _read_build(self, layer: str) -> dict[str, Any]:
        record = self._connection.scalar(select(builds.c.record).where(builds.c.layer == layer))
        return record or {}

    def _put_build(self, layer: str, record: Mapping[str, Any]) -> None:
        row = {"layer": layer, "record": encode_json(record)}
        self._connection.execute(insert(builds).values(row).on_conflict_do_update(index_elements=["layer"], set_=row))

    def record_intake(self, layer: str, taken: Iterable[int], failed: Mapping[int, str] | None = None) -> None:
        """Record which nodes a layer has processed, and which failed, each with its reason."""
        rows = [{"layer": layer, "node": key, "failure": ""} for key in taken]
        rows += [{"layer": layer, "node": key, "failure": reason} for key, reason in (failed or {}).items()]
        if rows:
            statement = insert(intake)
            keep = {"failure": statement.excluded.failure}
            self._connection.execute(statement.on_conflict_do_update(index_elements=["layer", "node"], set_=keep), rows)

    def forget_layer(self, layer: str) -> None:
        """Delete the intake and the records of a layer, so that the next build processes all nodes again."""
        clear_removals(self._connection, layer)
        self._connection.execute(delete(intake).where(intake.c.layer == layer))
        self._connection.execute(delete(builds).where(builds.c.layer == layer))


def encode_json(data: Mapping[str, Any]) -> str:
    """Data as JSON, equal for equal data."""
    return _ENCODER.encode(data) if data else "{}"
