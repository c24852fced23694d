"""A database is shared with others: what they keep beside a tome is never moved or deleted with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.conftest import Ran
from tests.postgres_server import Server, run_sql
from tests.store.contract import add

from tomewise import Tome
from tomewise.errors import StoreError
from tomewise.server.app import make_app
from tomewise.server.library import Library
from tomewise.server.serve_options import ServerOptions
from tomewise.settings import Settings
from tomewise.store.address import find_database, find_tome_address
from tomewise.store.sql.sql_store import SqlStore
from tomewise.tome.open_store import copy_tome, delete_empty_store, delete_tome, list_tomes, move_tome
from tomewise.types import Document

# What others make in the schema of a tome, or rest on its tables, and how a message names it.
FOREIGN = {
    "table": ("CREATE TABLE novels.customers (id int)", "table customers"),
    "view": ("CREATE VIEW novels.report AS SELECT id FROM novels.documents", "view report"),
    "materialized view": ("CREATE MATERIALIZED VIEW novels.sums AS SELECT 1 AS x", "materialized view sums"),
    "function": ("CREATE FUNCTION novels.two() RETURNS int LANGUAGE sql AS 'SELECT 2'", "function two()"),
    "sequence": ("CREATE SEQUENCE novels.numbers", "sequence numbers"),
    "type": ("CREATE TYPE novels.mood AS ENUM ('sad')", "type mood"),
    "near table": ("CREATE TABLE novels.near_0123456789abcdef (id int)", "table near_0123456789abcdef"),
}
ELSEWHERE = {
    "view elsewhere": "CREATE VIEW app.report AS SELECT id FROM novels.documents",
    "key elsewhere": "CREATE TABLE app.notes (document bigint REFERENCES novels.documents (key))",
}


@pytest.fixture
def novels(database: str) -> Iterator[str]:
    """The address of a tome with a document."""
    with Tome.open(f"{database}#novels", embedder="hash") as tome:
        tome.add(Document(id="one", text="Ada kept the light."))
    return f"{database}#novels"


@pytest.fixture
def client(database: str) -> Iterator[TestClient]:
    """A server of the tomes of the database."""
    library = Library(Settings(embedder="hash"), (), find_database(database))
    with TestClient(make_app(library, ServerOptions()), base_url="http://127.0.0.1:8765") as client:
        yield client


def assert_is_whole(novels: str) -> None:
    with Tome.open(novels, embedder="hash") as tome:
        assert tome.search("Who kept the light?")[0].text == "Ada kept the light."


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_tome_with_things_of_others_in_its_schema_stays(
    kind: str, novels: str, database: str, client: TestClient, command: Callable[..., Ran]
) -> None:
    statement, name = FOREIGN[kind]
    run_sql(database, statement)
    place, new_place = find_tome_address(novels), find_tome_address(f"{database}#other")
    for verb, use in {"deleted": lambda: delete_tome(place), "renamed": lambda: move_tome(place, new_place)}.items():
        with pytest.raises(StoreError, match=rf"is not {verb}: others keep {re.escape(name)}"):
            use()
    ran = command("drop", "-m", novels, "--yes")
    assert (ran.code, f"others keep {name}" in ran.err) == (4, True)
    for reply in (
        client.delete("/api/tomes/novels", params={"confirm": "novels"}),
        client.post("/api/tomes/novels/rename", json={"name": "other"}),
    ):
        assert reply.status_code >= 400
        assert f"others keep {name}" in reply.json()["error"]["message"]
    with pytest.raises(StoreError, match="exists already"):
        copy_tome(place, place)
    assert_is_whole(novels)
    assert client.get("/api/tomes/novels").status_code == 200


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_a_tome_on_which_others_rest_is_not_deleted(kind: str, novels: str, database: str) -> None:
    run_sql(database, "CREATE SCHEMA app", ELSEWHERE[kind])
    with pytest.raises(StoreError, match=r"is not deleted: others use it .*app\."):
        delete_tome(find_tome_address(novels))
    assert_is_whole(novels)


@pytest.mark.parametrize("schema", ["public", "billing"])
def test_no_tome_is_made_in_a_schema_of_others(
    schema: str, database: str, client: TestClient, command: Callable[..., Ran]
) -> None:
    run_sql(database, "CREATE SCHEMA billing")
    with pytest.raises(StoreError, match="exists already, and a tome is made in a new one alone"):
        Tome.open(f"{database}#{schema}", embedder="hash")
    Path("a.txt").write_text("Ada kept the light.")
    assert "exists already" in command("add", "a.txt", "-m", f"{database}#{schema}").err
    assert client.post("/api/tomes", json={"name": schema, "embedder": "hash"}).status_code >= 400
    assert run_sql(database, f"SELECT count(*) FROM pg_class WHERE relnamespace = '{schema}'::regnamespace") == [(0,)]


def test_a_restored_tome_goes_and_leaves_the_schema_that_another_program_made(novels: str, database: str) -> None:
    run_sql(database, "CREATE SCHEMA restored")
    for (table,) in run_sql(database, "SELECT tablename FROM pg_tables WHERE schemaname = 'novels'"):
        run_sql(database, f"ALTER TABLE novels.{table} SET SCHEMA restored")
    place = find_tome_address(f"{database}#restored")
    with pytest.raises(StoreError, match="in a schema that another program made, which is not renamed"):
        move_tome(place, find_tome_address(f"{database}#other"))
    delete_tome(place)
    assert run_sql(database, "SELECT nspname FROM pg_namespace WHERE nspname = 'restored'") == [("restored",)]
    assert run_sql(database, "SELECT count(*) FROM pg_class WHERE relnamespace = 'restored'::regnamespace") == [(0,)]


def test_an_empty_tome_with_things_of_others_stays(database: str) -> None:
    place = find_tome_address(f"{database}#novels")
    SqlStore.open(place).close()
    run_sql(database, FOREIGN["table"][0])
    delete_empty_store(place)
    assert list(list_tomes(find_database(database))) == ["novels"]


def test_a_tome_goes_whole_with_its_schema(novels: str, database: str) -> None:
    run_sql(database, "ALTER DEFAULT PRIVILEGES IN SCHEMA novels GRANT SELECT ON TABLES TO postgres")
    delete_tome(find_tome_address(novels))
    assert run_sql(database, "SELECT nspname FROM pg_namespace WHERE nspname = 'novels'") == []


def test_a_copied_schema_does_not_change_what_the_original_answers(database: str) -> None:
    """Whoever may read a tome may copy its rows, identity and versions too, and put vectors in another order."""
    texts = {"a": "fog on the harbour", "b": "a dog on the mat", "c": "the lamp was sold"}
    mine = SqlStore.open(find_tome_address(f"{database}#mine"))
    add(mine, *(Document(id=name, text=text) for name, text in texts.items()))
    run_sql(database, "CREATE SCHEMA evil")
    for (table,) in run_sql(database, "SELECT tablename FROM pg_tables WHERE schemaname = 'mine'"):
        run_sql(
            database,
            f"CREATE TABLE evil.{table} (LIKE mine.{table} INCLUDING ALL)",
            f"INSERT INTO evil.{table} SELECT * FROM mine.{table}",
        )
    run_sql(
        database,
        "UPDATE evil.vectors v SET vector = o.vector FROM (SELECT key, space, lead(vector, 1, first_value) OVER w AS "
        "vector FROM (SELECT *, first_value(vector) OVER (PARTITION BY space ORDER BY key) FROM evil.vectors) x "
        "WINDOW w AS (PARTITION BY space ORDER BY key)) o WHERE v.key = o.key AND v.space = o.space",
    )
    evil = SqlStore.open(find_tome_address(f"{database}#evil"))
    assert evil.note("settings", "identity") == mine.note("settings", "identity")
    evil_rows = evil.arrays(["vectors/passages"])["vectors/passages"].rows
    fresh = SqlStore.open(find_tome_address(f"{database}#mine"))
    rows = fresh.arrays(["vectors/passages"])["vectors/passages"].rows
    assert not np.array_equal(rows, evil_rows)
    expected = run_sql(database, "SELECT vector FROM mine.vectors WHERE space = 'passages' ORDER BY key")
    assert np.array_equal(rows, np.array([np.frombuffer(vector, np.float32) for (vector,) in expected]))
    for store in (mine, evil, fresh):
        store.close()


def test_a_tome_of_a_backup_is_still_our_own(novels: str, postgres_server: Server, database: str) -> None:
    backup, place = str(postgres_server.folder / "novels.sql"), ("-h", str(postgres_server.folder), "-U", "postgres")
    postgres_server.run("pg_dump", *place, "-n", "novels", "-f", backup, "postgres")
    delete_tome(find_tome_address(novels))
    postgres_server.run("psql", *place, "-q", "-v", "ON_ERROR_STOP=1", "-f", backup, "postgres")
    move_tome(find_tome_address(novels), find_tome_address(f"{database}#other"))
    delete_tome(find_tome_address(f"{database}#other"))
    assert run_sql(database, "SELECT nspname FROM pg_namespace WHERE nspname IN ('novels', 'other')") == []


def test_a_server_that_does_not_say_which_it_is_serves_tomes(database: str) -> None:
    run_sql(database, "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC", "CREATE ROLE plain LOGIN")
    try:
        run_sql(database, "GRANT CREATE ON DATABASE postgres TO plain")
        with Tome.open(database.replace("user=postgres", "user=plain") + "#novels", embedder="hash") as tome:
            tome.add(Document(id="one", text="Ada kept the light."))
            assert tome.search("Who kept the light?")
            delete_tome(find_tome_address(database + "#novels"))
    finally:
        run_sql(
            database,
            "GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC",
            "DROP OWNED BY plain CASCADE",
            "DROP ROLE plain",
        )
