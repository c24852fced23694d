"""A tome in a database that belongs to a stranger: nothing of his is run with the rights of whoever uses it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest
from tests.postgres_server import run_sql
from tests.store.contract import add

from tomewise.errors import StoreError
from tomewise.store.address import find_tome_address
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Document


@pytest.fixture
def theirs(database: str) -> Iterator[SqlStore]:
    """A tome of the owner of the database."""
    store = SqlStore.open(find_tome_address(f"{database}#theirs"))
    add(store, Document(id="one", text="the harbour lay in fog"))
    yield store
    store.close()


SPRING = "CREATE FUNCTION {}.spring() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"
TRAPS = {
    "trigger": (
        SPRING.format("elsewhere"),
        "CREATE TRIGGER t BEFORE INSERT ON theirs.nodes FOR EACH ROW EXECUTE FUNCTION elsewhere.spring()",
    ),
    "function": (SPRING.format("theirs"),),
    "rule": ("CREATE RULE r AS ON UPDATE TO theirs.traces DO ALSO SELECT 1",),
    "default": ("ALTER TABLE theirs.calls ALTER since SET DEFAULT upper('x')",),
    "constraint": ("ALTER TABLE theirs.traces ADD CHECK (length(question) >= 0)",),
    "index": ("CREATE INDEX ON theirs.documents (upper(id))",),
    "part of an index": ("CREATE INDEX ON theirs.documents (id) WHERE upper(id) = 'X'",),
    "child": ("CREATE TABLE elsewhere.child () INHERITS (theirs.nodes)",),
    "computed column": ("ALTER TABLE theirs.nodes ADD c text GENERATED ALWAYS AS (upper(id)) STORED",),
    "type": ("CREATE DOMAIN theirs.word AS text CHECK (length(VALUE) > 0)",),
    "type of elsewhere": (
        "CREATE DOMAIN elsewhere.word AS text CHECK (length(VALUE) > 0)",
        "ALTER TABLE theirs.nodes ALTER id TYPE elsewhere.word",
    ),
    "operator": ("CREATE OPERATOR theirs.= (FUNCTION = texteq, LEFTARG = text, RIGHTARG = text)",),
    "view": (
        "ALTER TABLE theirs.traces RENAME TO hidden",
        "CREATE VIEW theirs.traces WITH (security_invoker = true) AS SELECT * FROM theirs.hidden",
    ),
}


def open_as_reader(database: str) -> SqlStore:
    """The same tome as another user opens it, who may read and write it."""
    with suppress(psycopg.errors.DuplicateObject):
        run_sql(database, "CREATE ROLE reader LOGIN")
    run_sql(
        database,
        "GRANT USAGE ON SCHEMA theirs TO reader",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA theirs TO reader",
    )
    return SqlStore.open(find_tome_address(database.replace("user=postgres", "user=reader") + "#theirs"))


@pytest.fixture
def elsewhere(database: str) -> Iterator[None]:
    """A schema beside that of the tome."""
    run_sql(database, "CREATE SCHEMA elsewhere")
    yield
    run_sql(database, "DROP SCHEMA elsewhere CASCADE")


@pytest.mark.parametrize("kind", TRAPS)
@pytest.mark.usefixtures("elsewhere", "theirs")
def test_a_tome_with_a_trap_is_not_used(database: str, kind: str) -> None:
    store = open_as_reader(database)
    add(store, Document(id="mine", text="a lamp"))
    run_sql(database, *TRAPS[kind])
    with pytest.raises(StoreError, match=r"belongs to postgres, and its .+ does more than hold rows"):
        open_as_reader(database)
    for use in (
        lambda: add(store, Document(id="more", text="a lamp")),
        lambda: store.save_trace(asked="now", question="Who?", record={}),
        lambda: store.lexical("lamp", 3),
    ):
        with pytest.raises(StoreError, match=r"does more than hold rows|refused this|non-system view"):
            use()
    store.close()
    own = SqlStore.open(find_tome_address(f"{database}#theirs"))
    add(own, Document(id="own", text="its owner may have what he wants"))
    own.close()


@pytest.mark.usefixtures("elsewhere", "theirs")
def test_nothing_is_read_before_the_tables_are_checked(database: str) -> None:
    """A comparison with a column of this type would look for an operator of the stranger."""
    run_sql(
        database,
        "CREATE TYPE elsewhere.name AS ENUM ('identity', 'dimensions')",
        "ALTER TABLE theirs.meta ALTER key TYPE elsewhere.name USING key::elsewhere.name",
    )
    with pytest.raises(StoreError, match="meta does more than hold rows"):
        open_as_reader(database)
    run_sql(database, "DROP SCHEMA theirs CASCADE")


@pytest.mark.usefixtures("theirs")
def test_policies_are_not_run(database: str) -> None:
    store = open_as_reader(database)
    run_sql(
        database, "ALTER TABLE theirs.nodes ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON theirs.nodes USING (true)"
    )
    with pytest.raises(StoreError, match=r"refused this .*row-level security policy"):
        store.nodes("words")
    store.close()


def test_a_view_in_place_of_a_table_is_not_read(database: str, theirs: SqlStore) -> None:
    """The server refuses it, so nobody can put it there between a check and a statement."""
    run_sql(
        database,
        "ALTER TABLE theirs.nodes RENAME TO hidden",
        "CREATE VIEW theirs.nodes AS SELECT * FROM theirs.hidden",
    )
    with pytest.raises(StoreError, match="access to non-system view"):
        theirs.nodes("words")
