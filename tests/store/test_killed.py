"""A writer that is killed at any moment leaves all that it had committed, and a tome that still works."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.store.conftest import OpenStore
from tests.store.contract import add, assert_arrays_follow, remove

from tomewise.store.export import export
from tomewise.store.rights import work_alone
from tomewise.types import Document

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
from tests.store.contract import add, remove
from tomewise.store.address import find_tome_address
from tomewise.store.rights import work_alone
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Document
store = SqlStore.open(find_tome_address(sys.argv[1]))
with work_alone(store, "add"):
    print("ready", flush=True)
    for number in range(int(sys.argv[2]), 10_000):
        add(store, Document(id=f"d{number:04}", text=f"text number {number} of many"))
        print(number, flush=True)
        if number % 3 == 2:
            remove(store, f"d{number - 1:04}")
"""


@pytest.mark.parametrize("kind", ["file", "database"])
def test_a_writer_that_is_killed_loses_nothing_that_was_committed(kind: str, request: pytest.FixtureRequest) -> None:
    open_store: OpenStore = request.getfixturevalue("open_store" if kind == "file" else "make")
    address = open_store("test").address
    chance = random.Random(4)
    finished = -1
    for _ in range(4 if kind == "file" else 2):
        command = [sys.executable, "-c", SCRIPT, address, str(finished + 1)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            printed = [int(writer.stdout.readline()) for _ in range(chance.randint(1, 8))]
            time.sleep(chance.uniform(0, 0.03))
            writer.kill()
            printed += [int(line) for line in writer.stdout.read().split("\n")[:-1]]
        finished = max(printed)
        store = open_store("test")
        documents = {record.id for record in store.documents()}
        assert {f"d{number:04}" for number in printed if number % 3 != 1} <= documents
        assert_arrays_follow(store)
        with work_alone(store, "add"):
            add(store, Document(id="d0000", text="text number 0 of many"))
        assert store.find_damage() == ""
    undisturbed = open_store("undisturbed")
    for record in store.documents():
        add(undisturbed, store.document(record.id))
    assert list(export(store)) == list(export(undisturbed))
    for record in store.documents():
        remove(store, record.id)
    assert_arrays_follow(store)
    assert store.layers() == {}
