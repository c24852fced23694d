"""A tome behind a pooler: one that gives each transaction another connection, and one that does not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from tests.pooler import run_pooler
from tests.postgres_server import Server, run_sql
from tests.store.contract import add

from tomewise import Tome
from tomewise.errors import Locked, StoreError
from tomewise.store.address import DatabaseAddress, find_tome_address
from tomewise.store.rights import work_alone
from tomewise.store.sql.postgres_rows import PostgresTransaction
from tomewise.store.sql.sql_store import SqlStore
from tomewise.tome.open_store import delete_tome, move_tome
from tomewise.types import Document


@pytest.fixture(name="pooled", params=["transaction", "session"])
def serve_pooled(request: pytest.FixtureRequest, postgres_server: Server, database: str) -> Iterator[str]:
    """A database behind a pooler of each mode."""
    with run_pooler(postgres_server, request.param, 20) as url:
        yield url


@pytest.fixture(name="narrow", params=[1])
def serve_narrow(request: pytest.FixtureRequest, postgres_server: Server, database: str) -> Iterator[str]:
    """A database behind a pooler in transaction mode that has one connection for all, or as many as a test says."""
    with run_pooler(postgres_server, "transaction", request.param) as url:
        yield url


with_three = pytest.mark.parametrize("narrow", [3], indirect=True)


def find_locks(database: str) -> list[tuple[int, ...]]:
    return run_sql(database, "SELECT pid FROM pg_locks WHERE locktype = 'advisory'")


def test_one_connection_for_all_is_enough(narrow: str) -> None:
    with Tome.open(f"{narrow}#one", embedder="hash") as tome:
        tome.add(Document(id="log", text="Ada kept the light. Ole mended nets.", metadata={"year": 1911}))
        assert tome.within(where="year=1911").search("Who kept the light?")[0].text.startswith("Ada")
        assert tome.sessions["talk"].ask("Who kept the light?").words
        tome.remove("log")
        with pytest.raises(StoreError, match="keeps no right between two steps: name the server itself"):
            tome.build("raptor")
        assert not tome.documents()


@with_three
def test_a_writer_behind_the_pooler_waits_for_no_builder(narrow: str, database: str) -> None:
    with (
        Tome.open(f"{database}#tome", embedder="hash") as direct,
        Tome.open(f"{narrow}#tome", embedder="hash") as pooled,
    ):
        direct.add(Document(id="one", text="Ada kept the light."))
        with work_alone(direct.store, "build"), pytest.raises(Locked, match="is being written by another program"):
            pooled.add(Document(id="two", text="Ole mended nets."))
        pooled.add(Document(id="two", text="Ole mended nets."))
        assert [each.id for each in direct.documents()] == ["one", "two"]


@with_three
def test_a_tome_that_took_the_place_of_another_is_not_read(narrow: str, database: str) -> None:
    former = SqlStore.open(find_tome_address(f"{narrow}#tome"))
    add(former, Document(id="one", text="Ada kept the light."))
    SqlStore.open(find_tome_address(f"{database}#tome")).delete()
    later = SqlStore.open(find_tome_address(f"{database}#tome"))
    for use in (former.documents, lambda: add(former, Document(id="two", text="Ole mended nets."))):
        with pytest.raises(StoreError, match="is another tome by now"):
            use()
    assert not later.documents()
    former.close()
    later.close()


def test_what_another_client_left_on_a_connection_changes_nothing(narrow: str) -> None:
    tome = SqlStore.open(find_tome_address(f"{narrow}#tome"))
    add(tome, Document(id="one", text="Ada kept the light."))
    with psycopg.connect(narrow, autocommit=True) as client:
        client.execute("CREATE TEMP TABLE documents AS SELECT 'evil' AS id")
        client.execute("SET search_path = public")
        client.execute("SET default_transaction_read_only = on")
    assert [each.id for each in tome.documents()] == ["one"]
    again = SqlStore.open(find_tome_address(f"{narrow}#tome"))
    add(again, Document(id="two", text="Ole mended nets."))
    assert [each.id for each in tome.documents()] == ["one", "two"]
    tome.close()
    again.close()


@pytest.mark.parametrize("pooled", ["session"], indirect=True)
def test_a_build_keeps_its_right_through_a_pool_in_session_mode(pooled: str, database: str) -> None:
    with (
        Tome.open(f"{pooled}#tome", embedder="hash") as tome,
        Tome.open(f"{database}#tome", embedder="hash") as direct,
    ):
        tome.add(Document(id="one", text="Ada kept the light. Ole mended nets."))
        tome.build("raptor")
        with work_alone(tome.store, "build"), pytest.raises(Locked):
            direct.add(Document(id="two", text="Ada left."))
    assert not find_locks(database)


def test_a_read_that_lost_its_connection_is_tried_once_more(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqlStore.open(find_tome_address(f"{database}#tome"))
    add(store, Document(id="one", text="Ada kept the light."), Document(id="two", text="Ole mended nets."))
    losses = 1
    fetch = PostgresTransaction.fetch

    def lose(transaction: PostgresTransaction, query: Any, **values: Any) -> Any:
        nonlocal losses
        if losses:
            losses -= 1
            pid = transaction.read_value("SELECT pg_backend_pid()")
            with psycopg.connect(database, autocommit=True) as owner:
                owner.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        return fetch(transaction, query, **values)

    monkeypatch.setattr(PostgresTransaction, "fetch", lose)
    assert [each.id for each in store.documents(iter(["one", "two"]))] == ["one", "two"]
    losses = 2
    with pytest.raises(StoreError, match="was lost"):
        store.documents()
    assert len(store.documents()) == 2
    store.close()


def test_a_session_that_answered_elsewhere_meanwhile_keeps_that_turn(narrow: str, database: str) -> None:
    with (
        Tome.open(f"{narrow}#tome", embedder="hash") as pooled,
        Tome.open(f"{database}#tome", embedder="hash") as direct,
    ):
        pooled.add(Document(id="one", text="Ada kept the light. Ole mended nets."))
        asked: list[str] = []

        def ask_elsewhere(_: object) -> None:
            if not asked:
                asked.append(direct.sessions["talk"].ask("Who mended nets?").words)

        with pytest.warns(UserWarning, match="'talk' answered another question meanwhile"):
            answer = pooled.sessions["talk"].ask("Who kept the light?", on_event=ask_elsewhere)
        assert answer.words
        assert [turn.asked for turn in direct.sessions["talk"].read().turns] == ["Who mended nets?"]


@pytest.mark.parametrize("verb", [delete_tome, lambda place: move_tome(place, place.find_tome("other"))])
def test_nobody_deletes_or_renames_through_the_pooler_what_is_being_built(
    pooled: str, database: str, verb: Callable[[DatabaseAddress], None]
) -> None:
    direct = SqlStore.open(find_tome_address(f"{database}#tome"))
    with work_alone(direct, "build"), pytest.raises(Locked):
        verb(find_tome_address(f"{pooled}#tome"))
    assert direct.documents() == []
    direct.close()


def test_a_tome_that_somebody_has_just_filled_is_not_deleted_as_empty(narrow: str, database: str) -> None:
    empty, filled = (SqlStore.open(find_tome_address(f"{address}#tome")) for address in (narrow, database))
    add(filled, Document(id="one", text="Ada kept the light."))
    empty.dialect.delete(if_empty=True)
    assert [each.id for each in filled.documents()] == ["one"]
    empty.close()
    filled.close()


def test_a_connection_that_the_server_ends_behind_the_pooler_is_a_lost_one(pooled: str, database: str) -> None:
    """Whatever is asked meanwhile comes, or says in one sentence that the connection was lost."""
    with Tome.open(f"{pooled}#tome", embedder="hash") as tome, psycopg.connect(database, autocommit=True) as owner:
        tome.add(Document(id="one", text="Ada kept the light. Ole mended nets."))
        ended = threading.Event()

        def end_connections() -> None:
            query = (
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname <> ''"
            )
            while not ended.wait(0.1):
                owner.execute(query)

        killer = threading.Thread(target=end_connections)
        killer.start()
        try:
            answers = 0
            for _ in range(12):
                with suppress(StoreError):
                    answers += bool(tome.search("Who kept the light?", system="naive"))
        finally:
            ended.set()
            killer.join()
        assert answers >= 4
        assert tome.search("Who kept the light?")
