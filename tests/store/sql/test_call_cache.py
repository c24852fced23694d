"""Replies of models: on disk when put returns, shared commits, errors that reach all callers."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.patience import SOON

from tomewise.errors import Locked, StoreError
from tomewise.store.contract import Calls
from tomewise.store.records import SETTINGS
from tomewise.store.sql.call_cache import StoredCalls
from tomewise.store.sql.sql_store import SqlStore


def read_replies(path: Path) -> dict[str, str]:
    """The replies by key, read through another connection."""
    connection = sqlite3.connect(path)
    rows = dict(connection.execute("SELECT key, reply FROM calls").fetchall())
    connection.close()
    return rows


class Gate:
    """Transactions that wait for a signal, and then fail if an error is set. `count` counts them."""

    def __init__(self, store: SqlStore) -> None:
        self.store = store
        self.passes = Event()
        self.begun = Event()
        self.error: Exception | None = None
        self.errors: list[Exception] = []  # of the next transactions
        self.count = 0

    @contextmanager
    def write(self) -> Iterator[Any]:
        self.count += 1
        self.begun.set()
        assert self.passes.wait(SOON)
        if self.error or self.errors:
            raise self.error or self.errors.pop()
        with self.store.dialect.write() as transaction:
            yield transaction


@pytest.fixture
def gate(store: SqlStore) -> Gate:
    return Gate(store)


@pytest.fixture
def calls(gate: Gate) -> Iterator[StoredCalls]:
    made = StoredCalls(gate.store.read, gate.write)
    yield made
    gate.passes.set()
    made.close()


def keep(calls: Calls, *keys: str, reply: str = "x") -> list[asyncio.Task[None]]:
    return [asyncio.create_task(calls.keep(key, role="r", model="m", reply=reply)) for key in keys]


async def test_a_reply_is_on_disk_when_put_returns(store: SqlStore) -> None:
    for reply in ('{"text": "潮"}', "another"):
        await store.calls.keep("k", role="answer", model="m", reply=reply)
        assert read_replies(store.path) == {"k": reply}
    await store.calls.drop("k")
    assert read_replies(store.path) == {}


async def test_waiting_callers_share_a_commit(calls: StoredCalls, gate: Gate) -> None:
    puts = keep(calls, *map(str, range(200)))
    await asyncio.sleep(0)
    gate.passes.set()
    await asyncio.gather(*puts)
    assert len(read_replies(gate.store.path)) == 200
    assert gate.count <= 3


async def test_many_puts_from_many_loops(store: SqlStore) -> None:
    async def put_many(loop: int) -> None:
        await asyncio.gather(*keep(store.calls, *(f"{loop}-{n}" for n in range(50))))

    await asyncio.gather(*(asyncio.to_thread(asyncio.run, put_many(loop)) for loop in range(4)))
    assert len(read_replies(store.path)) == 200


async def test_an_error_reaches_all_waiting_callers_and_their_replies_are_written_later(
    calls: StoredCalls, gate: Gate
) -> None:
    gate.error = Locked("busy")
    puts = keep(calls, *"01234")
    await asyncio.to_thread(gate.begun.wait, SOON)
    gate.passes.set()
    results = await asyncio.gather(*puts, return_exceptions=True)
    assert [type(result) for result in results] == [Locked] * 5
    assert gate.count == 1, "it has waited, and is not tried again"
    assert read_replies(gate.store.path) == {}
    assert [await calls.get(str(n)) for n in range(5)] == ["x"] * 5
    gate.error = None
    await calls.drop("0")
    await keep(calls, "1", reply="new")[0]
    assert read_replies(gate.store.path) == {"1": "new", "2": "x", "3": "x", "4": "x"}


async def test_a_commit_that_fails_is_tried_once_more(calls: StoredCalls, gate: Gate) -> None:
    gate.passes.set()
    gate.errors = [StoreError("the connection was lost")]
    await keep(calls, "k")[0]
    assert read_replies(gate.store.path) == {"k": "x"}
    gate.errors = [StoreError("the connection was lost")] * 2
    with pytest.raises(StoreError):
        await keep(calls, "l")[0]
    assert gate.count == 4
    assert await calls.get("l") == "x"
    gate.errors = [StoreError("a reply of before cannot be written")]
    await keep(calls, "m")[0]
    assert read_replies(gate.store.path).keys() == {"k", "m"}
    await keep(calls, "n")[0]
    assert read_replies(gate.store.path).keys() == {"k", "l", "m", "n"}


async def test_a_caller_who_is_cancelled_loses_no_reply(calls: StoredCalls, gate: Gate) -> None:
    first, second = keep(calls, "first", "second")
    await asyncio.to_thread(gate.begun.wait, SOON)
    first.cancel()
    await asyncio.sleep(0)
    gate.passes.set()
    await second
    with pytest.raises(asyncio.CancelledError):
        await first
    assert set(read_replies(gate.store.path)) == {"first", "second"}


async def test_puts_wait_for_a_long_transaction_of_this_process(store: SqlStore) -> None:
    with store.write() as change:
        (put,) = keep(store.calls, "k")
        await asyncio.sleep(0.05)
        assert not put.done()
        change.put_note(SETTINGS, "a", "b")
    await put
    assert list(read_replies(store.path)) == ["k"]
