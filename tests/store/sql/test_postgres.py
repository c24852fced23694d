"""A tome in PostgreSQL holds what a tome in a file holds, and says clearly what is wrong."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import Ran
from tests.postgres_server import Server, run_server, run_sql
from tests.store.conftest import OpenStore
from tests.store.contract import add, assert_arrays_follow, remove

from tomewise import extras
from tomewise.errors import Locked, MissingDependency, ReadingError, StoreError, UsageError
from tomewise.server.library import Library
from tomewise.settings import Settings
from tomewise.store.address import find_database, find_tome_address
from tomewise.store.export import export
from tomewise.store.records import SETTINGS
from tomewise.store.rights import hold_session, work_alone
from tomewise.store.sql import local_words
from tomewise.store.sql.postgres_server import make_lock_key
from tomewise.store.sql.schema import FORMAT
from tomewise.store.sql.sql_store import SqlStore
from tomewise.tome.open_store import exists
from tomewise.types import Document

TEXTS = {"one": "the harbour lay in fog", "two": "a dog sat on the mat", "three": "Ada sold the lamp 潮"}


def fill(store: SqlStore) -> None:
    add(store, *(Document(id=name, text=text, title=name, metadata={"n": len(text)}) for name, text in TEXTS.items()))


CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "move"]), st.sampled_from("abcd"), st.sampled_from("abcd"),
              st.lists(st.sampled_from("tide lamp Ada rope tide! 潮 fog".split()), min_size=1, max_size=6)),
    min_size=1, max_size=6,
)  # fmt: skip


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES)
def test_any_changes_export_equally_from_both(
    changes: list[tuple[str, str, str, list[str]]], database: str, tmp_path: Path
) -> None:
    name = f"h{time.monotonic_ns()}"
    stores = [SqlStore.open(tmp_path / f"{name}.tome"), SqlStore.open(find_tome_address(f"{database}#{name}"))]
    for store in stores:
        add(store, Document(id="a", text="fog lay on the harbour"))
        for kind, first, second, words in changes:
            known = {record.id for record in store.documents()}
            if kind == "add":
                add(store, Document(id=first, text=" ".join(words)))
            elif kind == "remove":
                remove(store, first)
            elif first in known and (second == first or second not in known):
                former = store.document(first)
                with store.write() as change:
                    change.move_document(first, Document(id=second, text=former.text, source="moved"), "digest")
        assert_arrays_follow(store)
    file, database_store = stores
    assert list(export(file)) == list(export(database_store))
    assert scores(file) == scores(database_store)
    for store in stores:
        store.close()


def scores(store: SqlStore) -> list[tuple[str, float]]:
    """Each word's search by id of passage, since keys may differ."""
    found = []
    for word in ("tide", "lamp harbour", "潮", "Ada rope fog"):
        passages = store.passages()
        found += sorted((passages[key].id, round(score, 9)) for key, score in store.lexical(word, 50))
    return found


def test_a_copy_that_is_interrupted_leaves_no_tome(database: str) -> None:
    def lines() -> Iterator[bytes]:
        yield b'{"tomewise": %d}' % FORMAT
        yield b'{"table": "meta", "key": "embedder", "value": "hash"}'
        raise KeyboardInterrupt

    place = find_tome_address(f"{database}#half")
    with pytest.raises(KeyboardInterrupt):
        SqlStore.restore(place, lines())
    assert not exists(place)


def test_one_writer_at_a_time_and_replies_do_not_wait(make: OpenStore) -> None:
    first, second = make("shared"), make("shared")
    fill(first)
    with first.write() as change:
        change.put_note(SETTINGS, "held", "1")
        asyncio.run(second.calls.keep("k", role="answer", model="m", reply="r"))  # does not wait for the writer
        second.save_trace(asked="now", question="Who?", record={})
        waiting = threading.Thread(target=lambda: add(second, Document(id="late", text="late tide")))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive(), "the second writer waits for its turn"
    waiting.join(10)
    assert not waiting.is_alive()
    assert first.lexical("tide", 3)
    with work_alone(first, "build"), pytest.raises(Locked, match="try again"), second.hold("writer", "try again"):
        pass
    with second.hold("writer", "try again"):
        pass


WORKER = """
import sys
from tests.store.contract import add, remove
from tomewise.store.address import find_tome_address
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Document
store, number = SqlStore.open(find_tome_address(sys.argv[1])), sys.argv[2]
for turn in range(4):
    add(store, Document(id=f"d{number}-{turn}", text=f"{number} {turn} tide harbour lamp"))
    if turn % 2:
        remove(store, f"d{number}-{turn - 1}")
store.close()
"""


def test_three_processes_add_and_remove_at_once(make: OpenStore, database: str, tmp_path: Path) -> None:
    make("many").close()
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, f"{database}#many", str(number)],
            env={**os.environ, "TOMEWISE_CACHE": str(tmp_path / str(number))},
        )
        for number in range(3)
    ]
    assert [worker.wait(120) for worker in workers] == [0] * 3
    alone = make("alone")
    for number in range(3):
        add(alone, *(Document(id=f"d{number}-{turn}", text=f"{number} {turn} tide harbour lamp") for turn in (1, 3)))
    many = make("many")
    assert list(export(many)) == list(export(alone))
    assert_arrays_follow(many)


def test_a_server_that_restarts_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOMEWISE_CACHE", str(tmp_path))
    with run_server() as server:
        store = SqlStore.open(find_tome_address(f"{server.url}#novels"))
        fill(store)
        server.stop(signal.SIGQUIT)
        with pytest.raises(StoreError, match="cannot be reached"):
            store.documents()
        server.start()
        assert len(store.documents()) == 3, "a lost connection is found before it is used"
        with pytest.raises(StoreError, match="cannot be reached or was lost"), store.write() as change:
            change.put_note(SETTINGS, "lost", str(server.stop(signal.SIGQUIT)))
        server.start()
        assert store.note(SETTINGS, "lost") is None
        store.close()


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("postgresql://127.0.0.1:1/db#novels", "cannot be reached"),
        ("postgresql:///nowhere?host=/nonexistent#novels", "cannot be reached"),
        ("postgresql://localhost/db?nonsense=1#t", r"the driver does not know this address, .*nonsense"),
        ("{nowhere}#novels", r"nowhere.* was not found"),
        ("{database}#novels", "found no tome at"),
        ("{database}#information_schema", "exists already"),
    ],
)
def test_what_cannot_be_opened_is_named(database: str, address: str, message: str) -> None:
    named = address.format(database=database, nowhere=database.replace("///postgres?", "///nowhere?"))
    with pytest.raises(StoreError, match=message):
        SqlStore.open(find_tome_address(named), create=False)


SECRETS = (
    *("u:p%zzsecret@h/db#t", "u:p%00secret@h/db#t", "u:secret w@h/db#t"),
    *("u:12/secret@h/db#t", "u:12#secret@h/db#t", "u:12?secret@h/db#t", "h/db?password=secret%zz#t"),
)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        *((f"postgresql://{address}", "cannot be read: write it as") for address in SECRETS),
        *(
            (f"postgresql://host/db#{name}", "cannot name a tome in a database")
            for name in ('no"vels', "a" * 64, "pg_temp", "1st", "a b", "é" * 32)
        ),
        ("postgresql://host/db", "names no tome"),
        ("mysql://host/db#novels", "needs a store for mysql"),
    ],
)
def test_an_address_that_cannot_be_is_refused_and_shows_no_password(address: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        find_tome_address(address)
    assert "secret" not in str(caught.value)


def test_an_address_shows_no_password() -> None:
    place = find_tome_address("postgresql://ada:s3cret-word@host:5432/db?sslmode=require&password=other-word#novels")
    assert str(place) == "postgresql://ada@host:5432/db?sslmode=require#novels"
    assert "word" not in repr(place)


def test_a_replica_answers_and_keeps_nothing(
    database: str, make: OpenStore, postgres_server: Server, command: Callable[..., Ran]
) -> None:
    tome = postgres_server.url + "#novels"
    Path("a.txt").write_text("Ada Marsh kept the lighthouse at Skerry.")
    assert command("add", "a.txt", "-m", tome).code == 0
    with postgres_server.start_replica() as replica:
        there = f"{replica.url}#novels"
        asked = command("ask", "Who kept the lighthouse?", "-m", there)
        assert (asked.code, "Ada Marsh" in asked.out) == (0, True), asked
        store = SqlStore.open(find_tome_address(there))
        assert store.read_only
        assert store.trace_numbers() == []
        store.close()
        assert "may only be read" in command("add", "a.txt", "-m", there).err
        refused = command("add", "a.txt", "-m", f"{replica.url}#another")
        assert "may only be read" in refused.err, refused
        assert command("export", "-m", there).out == command("export", "-m", tome).out


def test_a_full_disk_is_named_and_loses_nothing(database: str, make: OpenStore) -> None:
    """The server says what it says when a table cannot grow."""
    store = make("full")
    fill(store)
    run_sql(
        database,
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
        """$$ BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$""",
        'CREATE TRIGGER full_disk BEFORE INSERT ON "full".vectors FOR EACH ROW EXECUTE FUNCTION full_disk()',
    )
    with pytest.raises(StoreError, match=r"has no space left .*make space on the disk of the server"):
        add(store, Document(id="more", text="a lamp"))
    run_sql(database, "DROP FUNCTION full_disk CASCADE")
    assert len(store.documents()) == 3
    assert_arrays_follow(store)
    add(store, Document(id="more", text="a lamp"))


def test_a_wrong_password_is_named_and_not_shown() -> None:
    with run_server() as server:
        run_sql(server.url, "CREATE ROLE ada LOGIN PASSWORD 'right-word'")
        (server.folder / "data" / "pg_hba.conf").write_text("local all ada scram-sha-256\nlocal all all trust\n")
        server.run("pg_ctl", "reload", "-D", str(server.folder / "data"))
        address = f"postgresql://ada:wrong-word@/postgres?host={server.folder}#novels"
        with pytest.raises(StoreError, match="did not let you in") as caught:
            SqlStore.open(find_tome_address(address))
        assert "wrong-word" not in str(caught.value)


def test_rights(database: str, make: OpenStore) -> None:
    fill(make("novels"))
    with suppress(psycopg.errors.DuplicateObject):
        run_sql(database, "CREATE ROLE reader LOGIN")
    run_sql(database, "GRANT USAGE ON SCHEMA novels TO reader", "GRANT SELECT ON ALL TABLES IN SCHEMA novels TO reader")
    with pytest.raises(StoreError, match=r"refused this .*GRANT CREATE ON DATABASE"):
        make("own", user="reader")
    store = make("novels", user="reader")
    assert store.read_only
    assert store.lexical("harbour", 3)
    assert len(store.nearest("passages", np.ones(4, np.float32), 3).keys)
    with pytest.raises(StoreError, match="may only be read"), store.write():
        pass
    run_sql(database, "GRANT CREATE ON DATABASE postgres TO reader")
    fill(make("own", user="reader"))
    run_sql(database, "REVOKE CREATE ON DATABASE postgres FROM reader")


def test_a_newer_format_is_refused(database: str, make: OpenStore) -> None:
    store = make("newer")
    run_sql(database, "UPDATE newer.tomewise SET format = 99")
    for use in (lambda: make("newer"), store.check):
        with pytest.raises(StoreError, match="written by a newer Tomewise"):
            use()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"text": "a\0b"}, "holds a NUL character"),
        ({"metadata": {"n": "\0"}}, "holds a NUL character"),
        *(
            ({"metadata": {"n": number}}, "holds no finite number as its 'n'")
            for number in (float("nan"), float("inf"), 10**400, [1, 10**400])
        ),
    ],
)
def test_what_no_row_can_hold_is_refused_with_the_name_of_the_document(
    make: OpenStore, given: dict[str, Any], message: str
) -> None:
    store = make()
    with pytest.raises(ReadingError, match=f"'bad' {message}"):
        add(store, Document(**{"id": "bad", "text": "fog", **given}))
    assert not store.holds_documents()


def test_damage_is_named(make: OpenStore, database: str) -> None:
    store = make("hurt")
    fill(store)
    assert store.find_damage() == ""
    run_sql(database, "UPDATE hurt.edges SET a = 999999 WHERE key = 1")
    assert "the row '1' of the table edges" in store.find_damage()


# ---------------------------------------------------------------- the command


def test_the_command_over_a_database(command: Callable[..., Ran], database: str) -> None:
    Path("a.txt").write_text("Ada Marsh kept the lighthouse at Skerry. Tom Hale sold the Heron in 1912.")
    tome = f"{database}#novels"
    assert command("add", "nowhere.txt", "-m", tome).code
    assert command("show", "-m", database, "--json").out == '{"tomes": []}\n'
    assert command("add", "a.txt", "-m", tome).code == 0
    assert "lighthouse" in command("ask", "Who kept the lighthouse?", "-m", tome).out
    assert "novels" in command("show", "-m", database).out
    assert "a.txt" in command("show", "-m", tome).out
    assert command("copy", tome, "copy.tome").code == 0
    assert command("export", "-m", tome).out == command("export", "-m", "copy.tome").out
    assert command("export", "--all", "-m", tome).out == command("export", "--all", "-m", "copy.tome").out
    assert "was made with" in command("add", "a.txt", "-m", tome, "--embedder", "hash:32").err
    assert "names no tome" in command("ask", "Who?", "-m", database).err
    assert "give --yes" in command("drop", "-m", tome).err
    assert command("drop", "-m", tome, "--yes").code == 0
    assert "found no tome" in command("ask", "Who?", "-m", tome).err


def test_the_file_of_a_folder_may_name_no_address(command: Callable[..., Ran]) -> None:
    Path("tomewise.toml").write_text('tome = "postgresql://elsewhere/db#mine"')
    assert "sets tome, and only you may do that" in command("show").err


def test_without_the_extra_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match=r"tomewise\[postgres\]"):
        SqlStore.open(find_tome_address("postgresql://host/db#novels"))


def test_a_right_that_was_lost_is_noticed_before_a_write(make: OpenStore, postgres_server: Server) -> None:
    store = make()
    ended = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE ((classid::bigint << 32) | objid::bigint) = %s"
    with work_alone(store, "add"), psycopg.connect(postgres_server.url, autocommit=True) as owner:
        add(store, Document(id="one", text="Ada kept the light."))
        tome = find_database(store.address).tome
        assert owner.execute(ended, (make_lock_key(tome, "writer"),)).fetchall() == [(True,)]
        with pytest.raises(StoreError, match="was lost that kept others from writing"):
            add(store, Document(id="two", text="Bob had lit it."))
    add(store, Document(id="two", text="Bob had lit it."))
    assert [record.id for record in store.documents()] == ["one", "two"]


async def test_two_servers_share_a_database(database: str) -> None:
    first, second = (Library(Settings(embedder="hash"), (), find_database(database)) for _ in range(2))
    await first.create("novels")
    stores = [(await library.open("novels")).store for library in (first, second)]
    with hold_session(stores[0], "chat"), pytest.raises(Locked), hold_session(stores[1], "chat"):
        pass
    assert first.measure()["novels"] > 0
    with pytest.raises(UsageError, match="there is a tome 'novels' already"):
        await second.create("novels")
    await second.rename("novels", "tales")
    with pytest.raises(StoreError, match="is not there any more"):
        await first.open("novels")
    await second.delete("tales")
    assert first.names() == []
    await first.close()
    await second.close()


END_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
)


def search_ids(store: SqlStore, word: str) -> list[str]:
    passages = store.passages()
    return sorted(passages[key].document for key, _ in store.lexical(word, 9))


def test_a_connection_that_is_lost_while_words_are_read_is_made_again(
    make: OpenStore, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make("words")
    fill(store)
    bring_up, losses = local_words._bring_up, []

    def lose_the_connection(transaction: Any, source: local_words.Source) -> None:
        mark, read_stamps, read_texts = source
        if not losses:
            read_stamps()
            with psycopg.connect(postgres_server.url, autocommit=True) as owner:
                losses.append(owner.execute(END_OTHERS).fetchall())
        bring_up(transaction, (mark, read_stamps, read_texts))

    monkeypatch.setattr(local_words, "_bring_up", lose_the_connection)
    assert search_ids(store, "dog") == ["two"]
    assert losses


def test_a_damaged_file_of_words_is_made_again(make: OpenStore) -> None:
    store = make("words")
    fill(store)
    assert search_ids(store, "dog") == ["two"]
    store.close()
    file = store.cache_folder / "words.sqlite"
    file.write_bytes(b"no database" * 1000)
    reopened = make("words")
    assert search_ids(reopened, "dog") == ["two"]
    assert file.read_bytes().startswith(b"SQLite format 3")


@pytest.mark.parametrize(
    ("table", "field", "value"), [("nodes", "key", "x"), ("nodes", "level", 1.5), ("nodes", "text", 5)]
)
def test_lines_with_a_value_of_another_kind_are_refused(
    make: OpenStore, database: str, table: str, field: str, value: object
) -> None:
    store = make("source")
    fill(store)
    rows = [json.loads(line) for line in store.dump()]
    lines = [json.dumps(row | ({field: value} if row.get("table") == table else {})).encode() for row in rows]
    with pytest.raises(StoreError, match="hold a row that cannot be written"):
        SqlStore.restore(find_tome_address(f"{database}#target"), lines)
    assert not exists(find_tome_address(f"{database}#target"))
