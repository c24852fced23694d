from __future__ import annotations

import sys

import pytest

from tomewise.errors import Locked, StoreError
from tomewise.evaluate.journal import Journal


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "rows.jsonl"


def test_records_come_back_in_order(path):
    journal = Journal(path)
    assert journal.read() == []
    with journal.open_to_append():
        for number in range(3):
            journal.append({"kind": "row", "text": "\u2028 \ud800 ä", "number": number})
    assert [record["number"] for record in journal.read()] == [0, 1, 2]
    assert journal.read()[0]["text"] == "\u2028 \ud800 ä"


@pytest.mark.parametrize("whole", ["", '{"kind": "row", "number": 0}\n'], ids=["first", "second"])
@pytest.mark.parametrize("torn", ['{"kind": "row", "nu', "x" * 200_000], ids=["short", "long"])
def test_a_torn_last_line_does_not_count(path, whole, torn):
    path.parent.mkdir()
    path.write_text(whole + torn)
    assert len(Journal(path).read()) == len(whole.splitlines())
    journal = Journal(path)
    with journal.open_to_append():
        journal.append({"kind": "row"})
    assert path.read_text() == whole + '{"kind":"row"}\n'


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of the size of files")
def test_a_record_without_room_leaves_no_part_of_it(path):
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    journal = Journal(path)
    with journal.open_to_append():
        journal.append({"kind": "row", "number": 0})
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, before[1]))
        try:
            with pytest.raises(StoreError, match="make space on the disk"):
                journal.append({"kind": "row", "number": 1})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        journal.append({"kind": "row", "number": 2})
    assert [record["number"] for record in journal.read()] == [0, 2]


def test_a_damaged_line_is_named(path):
    path.parent.mkdir()
    path.write_text('{"kind": "row"}\nnonsense\n{"kind": "row"}\n')
    with pytest.raises(StoreError, match="line 2 is damaged"):
        Journal(path).read()


def test_one_program_appends_at_a_time(path):
    second = Journal(path).open_to_append()
    with Journal(path).open_to_append(), pytest.raises(Locked, match="wait for it"), second:
        pass


def test_records_are_synced_to_disk_about_once_a_second(path, monkeypatch):
    synced: list[int] = []
    monkeypatch.setattr("os.fsync", synced.append)
    now = [0.0]
    journal = Journal(path, clock=lambda: now[0])
    with journal.open_to_append():
        for _ in range(40):
            now[0] += 0.1
            journal.append({"kind": "row"})
    assert 4 <= len(synced) <= 5
