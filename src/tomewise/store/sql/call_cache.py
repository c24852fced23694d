"""The cache of model calls: a reply that was paid for is on disk before it is used."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection, bindparam, delete, func, select

from tomewise.store.sql.row_values import Misfit
from tomewise.store.sql.schema import calls

if TYPE_CHECKING:
    from tomewise.store.sql.dialects import Dialect

_ENOUGH = 8  # replies needed for a mean
_REPLY = select(calls.c.reply).where(calls.c.key == bindparam("wanted"))
_REPLY_SINCE = _REPLY.where(calls.c.since == bindparam("mark"))
Begin = Callable[[], AbstractContextManager[Connection]]


@dataclass(frozen=True, slots=True)
class _Batch:
    rows: list[dict[str, str]]
    written: Future[None]


class StoredCalls:
    """Replies by key. `keep` returns once the reply is durable.

    The next transaction commits together all replies that arrive while one transaction runs. With many calls in flight,
    they share one commit and one flush of the disk. Without `write` the store may only be read, and keeps nothing new.
    """

    def __init__(self, dialect: Dialect, read: Begin, write: Begin | None) -> None:
        self._dialect = dialect
        self._read = read
        self._write = write
        self._guard = threading.Lock()
        self._open: _Batch | None = None  # the batch that still takes replies
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tomewise-calls")

    async def get(self, key: str, *, since: str = "") -> str | None:
        """The reply, or None; with `since`, only a reply that was stored under this mark."""
        with self._read() as connection:
            try:
                found = list(self._dialect.fetch(connection, _REPLY_SINCE if since else _REPLY, wanted=key, mark=since))
            except Misfit:
                return None  # damaged: the call is made again, and its reply replaces this one
        return found[0][0] if found else None

    async def keep(self, key: str, *, role: str, model: str, reply: str, since: str = "") -> None:
        """Store a reply; it replaces an earlier reply of this key.

        If the caller is cancelled, CancelledError is raised only after the reply is written.
        """
        if self._write is None:
            return
        with self._guard:
            if self._open is None:
                self._open = _Batch([], self._writer.submit(self._commit, self._write))
            self._open.rows.append({"key": key, "role": role, "model": model, "reply": reply, "since": since})
            written = asyncio.wrap_future(self._open.written)
        try:
            await asyncio.shield(written)
        except asyncio.CancelledError:
            await asyncio.wait([written])  # the next caller finds the reply
            raise

    async def drop(self, key: str) -> None:
        """Delete a reply."""
        if self._write is not None:
            await asyncio.to_thread(self._delete, key, self._write)

    def _delete(self, key: str, write: Begin) -> None:
        with write() as connection:
            connection.execute(delete(calls).where(calls.c.key == key))

    def mean_reply_bytes(self, role: str, model: str) -> float | None:
        """The mean length of the model's replies in a role, or None while there are too few replies."""
        query = select(func.count(), func.avg(self._dialect.count_bytes(calls.c.reply)))
        with self._read() as connection:
            count, mean = connection.execute(query.where(calls.c.role == role, calls.c.model == model)).one()
        return float(mean) if count >= _ENOUGH else None

    def close(self) -> None:
        """Wait until everything is written."""
        self._writer.shutdown()

    def _commit(self, write: Begin) -> None:
        rows = None
        try:
            with write() as connection:
                rows = self._close_batch()  # only now, to include replies that arrived while this waited for its turn
                self._dialect.upsert(connection, calls, rows)
        finally:
            if rows is None:
                self._close_batch()  # callers of this batch get the error; later callers start a new batch

    def _close_batch(self) -> list[dict[str, str]]:
        with self._guard:
            batch, self._open = self._open, None
        assert batch is not None
        return batch.rows
