"""The cache of model calls: a reply that was paid for is on disk before it is used."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import TypeAlias

from tomewise.concurrency import wait_through
from tomewise.errors import Locked, StoreError
from tomewise.store.sql.dialects import Transaction
from tomewise.store.sql.row_values import Misfit
from tomewise.store.sql.stored_records import reads

Begin: TypeAlias = Callable[[], AbstractContextManager[Transaction]]

_ENOUGH = 8  # replies needed for a mean
_MOST_UNWRITTEN = 1_000  # replies that wait in memory for room on the disk
_REPLY = "SELECT calls.reply\nFROM calls WHERE calls.key = :key AND :since IN ('', calls.since)"
_Rows: TypeAlias = dict[str, dict[str, str]]  # by key


class StoredCalls:
    """Replies by key. `keep` returns once the reply is durable.

    The next transaction commits together all replies that arrive while one transaction runs. With many calls in flight,
    they share one commit and one flush of the disk. The last replies that could not be written stay in memory: they are
    found there, and the next commit writes them. Without `write` the store may only be read, and keeps nothing new.
    """

    def __init__(self, read: Begin, write: Begin | None) -> None:
        self.read = read
        self._write = write
        self._guard = threading.Lock()  # of these three
        self._open: Future[None] | None = None  # the commit that still takes replies
        self._batch: _Rows = {}  # what it has taken
        self._unwritten: _Rows = {}  # what no commit could write
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tomewise-calls")

    async def get(self, key: str, *, since: str = "") -> str | None:
        """The reply, or None; with `since`, only a reply that was stored under this mark."""
        with self._guard:
            row = self._unwritten.get(key)
        if row is not None:
            return row["reply"] if since in ("", row["since"]) else None
        return self._find(key, since)

    @reads
    def _find(self, transaction: Transaction, key: str, since: str) -> str | None:
        try:
            return next((reply for (reply,) in transaction.fetch(_REPLY, key=key, since=since)), None)
        except Misfit:
            return None  # damaged: the call is made again, and its reply replaces this one

    async def keep(self, key: str, *, role: str, model: str, reply: str, since: str = "") -> None:
        """Store a reply; it replaces an earlier reply of this key. Raises StoreError if it is in memory alone.

        If the caller is cancelled, CancelledError is raised only after the reply is written.
        """
        if self._write is None:
            return
        with self._guard:
            self._batch[key] = {"key": key, "role": role, "model": model, "reply": reply, "since": since}
            if self._open is None:
                self._open = self._writer.submit(self._commit, self._write)
            written = asyncio.wrap_future(self._open)
        try:
            await asyncio.shield(written)
        except asyncio.CancelledError:
            await wait_through(written)  # the next caller finds the reply
            raise

    async def drop(self, key: str) -> None:
        """Delete a reply."""
        if self._write is not None:
            with self._guard:
                self._unwritten.pop(key, None)
            await asyncio.to_thread(self._delete, key, self._write)

    @staticmethod
    def _delete(key: str, write: Begin) -> None:
        with write() as transaction:
            transaction.ask("DELETE FROM calls WHERE key = :key", key=key)

    @reads
    def mean_reply_bytes(self, transaction: Transaction, role: str, model: str) -> float | None:
        """The mean length of the model's replies in a role, or None while there are too few replies."""
        size = transaction.size.format("reply")
        query = f"SELECT count(*), avg({size}) FROM calls WHERE role = :role AND model = :model"
        count, mean = transaction.ask(query, role=role, model=model).fetchone()
        return float(mean) if count >= _ENOUGH else None

    def close(self) -> None:
        """Wait until everything is written."""
        self._writer.shutdown()

    def _commit(self, write: Begin) -> None:
        """Write the batch, and what was not written before; the batch alone once more if that fails."""
        batch: _Rows = {}
        for is_first in (True, False):
            try:
                with write() as transaction:
                    # Here, to include replies that arrived while this waited for its turn.
                    batch = batch or self._take_batch()
                    with self._guard:
                        written = self._unwritten | batch if is_first else batch
                    transaction.upsert("calls", list(written.values()))
                with self._guard:
                    self._unwritten = {key: row for key, row in self._unwritten.items() if key not in written}
                return
            except BaseException as error:
                # The connection may have been lost, or one of the earlier replies be the reason; a Locked has waited.
                if is_first and isinstance(error, StoreError) and not isinstance(error, Locked):
                    continue
                batch = batch or self._take_batch()  # callers of this batch get the error, later ones start a new batch
                if isinstance(error, StoreError):
                    with self._guard:
                        rows = self._unwritten | batch
                        self._unwritten = dict(list(rows.items())[-_MOST_UNWRITTEN:])
                raise

    def _take_batch(self) -> _Rows:
        """End the batch."""
        with self._guard:
            batch, self._open, self._batch = self._batch, None, {}
        return batch
