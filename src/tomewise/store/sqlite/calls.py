"""The cache of model calls: what was paid for is on disk before it is used."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

from sqlalchemy import Connection, LargeBinary, cast, delete, func, select
from sqlalchemy.dialects.sqlite import insert

from tomewise.store.sqlite.schema import calls

_ENOUGH = 8  # replies whose mean says something
Begin = Callable[[], AbstractContextManager[Connection]]


@dataclass(frozen=True, slots=True)
class _Batch:
    rows: list[dict[str, str]]
    written: Future[None]


class StoredCalls:
    """Replies by key. `put` returns once the reply is durable.

    Replies that arrive while a transaction is under way are committed together by the next one: with many calls in
    flight a commit, and the disk's flush with it, is shared by all who wait.
    """

    def __init__(self, read: Begin, write: Begin) -> None:
        self._read = read
        self._write = write
        self._guard = threading.Lock()
        self._open: _Batch | None = None  # not yet being written
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tomewise-calls")

    async def get(self, key: str, *, since: str = "") -> str | None:
        """The reply, or None; with a mark, only a reply that was put under it."""
        query = select(calls.c.reply).where(calls.c.key == key)
        with self._read() as connection:
            return connection.scalar(query.where(calls.c.since == since) if since else query)

    async def keep(self, key: str, *, role: str, model: str, reply: str, since: str = "") -> None:
        """Keep a reply in place of an earlier one.

        A caller who is cancelled meanwhile learns of that only when it is written.
        """
        with self._guard:
            if self._open is None:
                self._open = _Batch([], self._writer.submit(self._commit))
            self._open.rows.append({"key": key, "role": role, "model": model, "reply": reply, "since": since})
            written = asyncio.wrap_future(self._open.written)
        try:
            await asyncio.shield(written)
        except asyncio.CancelledError:
            await asyncio.wait([written])  # what comes next finds the reply in its place
            raise

    async def drop(self, key: str) -> None:
        """Forget a reply."""
        await asyncio.to_thread(self._drop, key)

    def _drop(self, key: str) -> None:
        with self._write() as connection:
            connection.execute(delete(calls).where(calls.c.key == key))

    def mean_reply_bytes(self, role: str, model: str) -> float | None:
        """How long the model's replies in a role were on average, once there are enough to tell."""
        held = select(func.count(), func.avg(func.length(cast(calls.c.reply, LargeBinary))))
        with self._read() as connection:
            count, mean = connection.execute(held.where(calls.c.role == role, calls.c.model == model)).one()
        return float(mean) if count >= _ENOUGH else None

    def close(self) -> None:
        """Wait until everything is written."""
        self._writer.shutdown()

    def _commit(self) -> None:
        taken = None
        try:
            with self._write() as connection:
                taken = self._take()  # only now, so that what arrived while this waited for its turn goes along
                statement = insert(calls)
                fresh = {name: statement.excluded[name] for name in ("role", "model", "reply", "since")}
                connection.execute(statement.on_conflict_do_update(index_elements=["key"], set_=fresh), taken)
        finally:
            if taken is None:
                self._take()  # those who wait learn of the error; those who come later begin anew

    def _take(self) -> list[dict[str, str]]:
        with self._guard:
            batch, self._open = self._open, None
        assert batch is not None
        return batch.rows
