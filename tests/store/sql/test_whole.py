"""A whole tome as lines and back: equal, and never a tome from lines that are damaged or hostile."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.damages import QUESTION, make_tome

from tomewise.errors import StoreError
from tomewise.store.sql.schema import FORMAT
from tomewise.store.sql.sql_store import SqlStore
from tomewise.tome.open_store import export_all, import_all
from tomewise.tome.tome import Tome

_ANYTHING = (None, True, -1, 0, 1 << 70, 0.5, "x", "", "AAAA", [], {}, [1], {"model": 1}, {"marks": [["x", {}]]})


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """A sound tome with a graph, a tree, schemata, a session and traces."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "umap", None)  # it takes seconds to import
        make_tome(folder)
    return [line.encode() + b"\n" for line in export_all(folder / "a.tome")]


def restore(path: Path, lines: list[bytes]) -> None:
    SqlStore.restore(path, iter(lines))


def count_tables(lines: list[bytes]) -> set[str]:
    return {json.loads(line)["table"] for line in lines[1:]}


def test_export_import_export_is_equal_and_the_tome_answers_the_same(lines: list[bytes], tmp_path: Path) -> None:
    assert {"documents", "nodes", "edges", "vectors", "calls", "traces", "sessions", "builds"} <= count_tables(lines)
    path = tmp_path / "b.tome"
    restore(path, lines)
    assert [line.encode() + b"\n" for line in export_all(path)] == lines
    with Tome.open(path) as tome:
        assert tome.store.find_damage() == ""
        assert tome.ask(QUESTION, system="comorag").words
        assert tome.search(QUESTION, system="hybrid")
        assert [trace.number for trace in tome.traces.latest()]
        assert list(tome.sessions)


def change_row(line: bytes, choose: random.Random) -> bytes:
    row = json.loads(line)
    name = choose.choice(sorted(row))
    if choose.random() < 0.1:
        del row[name]
    else:
        row[name] = choose.choice(_ANYTHING)
    return json.dumps(row).encode() + b"\n"


@pytest.mark.parametrize("share", range(4))
def test_a_hundred_hostile_exports_are_refused_or_make_a_sound_tome(
    lines: list[bytes], tmp_path: Path, share: int
) -> None:
    for number in range(share * 25, share * 25 + 25):
        choose = random.Random(f"exports {number}")
        at = choose.randrange(len(lines))
        path = tmp_path / f"{number}.tome"
        try:
            restore(path, [*lines[:at], change_row(lines[at], choose), *lines[at + 1 :]])
        except StoreError:
            assert not path.exists(), number
            continue
        with Tome.open(path) as tome:
            assert tome.store.find_damage() == "", number


def replace_row(lines: list[bytes], table: str, **values: Any) -> list[bytes]:
    rows = [json.loads(line) for line in lines]
    chosen = next(row for row in rows if row.get("table") == table)
    chosen.update(values)
    return [json.dumps(row).encode() for row in rows]


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("vectors", {"vector": b64encode(b"\0\0\xc0\x7f" * 32).decode()}),
        ("vectors", {"vector": b64encode(b"\0" * 8).decode()}),
        ("vectors", {"vector": "no base64!"}),
        ("vectors", {"key": 999_999}),
        ("edges", {"a": 999_999}),
        ("edges", {"weight": float("inf")}),
        ("nodes", {"document": 999_999}),
        ("nodes", {"end": -1}),
        ("documents", {"metadata": []}),
        ("documents", {"text": "half \ud800"}),
        ("meta", {"key": "identity", "value": "../../x"}),
        ("meta", {"key": "passage_tokens", "value": "0"}),
        ("builds", {"record": {"model": 3}}),
        ("intake", {"node": 999_999}),
        ("sqlite_sequence", {"seq": 0}),
        ("sqlite_sequence", {"seq": (1 << 63) - 1}),
        ("sqlite_sequence", {"seq": "x"}),
        ("sqlite_sequence", {"seq": 1_000.0}),
        ("calls", {"reply": None}),
        ("spaces", {"space": "edges/x"}),
    ],
)
def test_what_a_tome_must_not_hold_is_not_imported(
    lines: list[bytes], tmp_path: Path, table: str, values: dict[str, Any]
) -> None:
    found = replace_row(lines, table, **values) if table != "spaces" else [*lines, b'{"table":"spaces","space":"x"}']
    with pytest.raises(StoreError):
        restore(tmp_path / "b.tome", found)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["[1]", "x", '{"a": 1}', '{"a": {"b": [{}]}}', '{"a": {"b": null}}'])
def test_stated_fields_must_be_fields_by_path(lines: list[bytes], tmp_path: Path, value: str) -> None:
    row = {"table": "meta", "key": "fields", "value": value}
    with pytest.raises(StoreError, match="no usable 'fields': export the tome again"):
        restore(tmp_path / "b.tome", [*lines, json.dumps(row).encode()])
    row["value"] = '{"a": {"b": ["x", 1, true]}}'
    restore(tmp_path / "b.tome", [*lines, json.dumps(row).encode()])


@pytest.mark.parametrize("key", ["embedder", "dimensions", "passage_tokens", "overlap"])
def test_documents_need_their_settings(lines: list[bytes], tmp_path: Path, key: str) -> None:
    found = [line for line in lines if (row := json.loads(line)).get("table") != "meta" or row["key"] != key]
    assert len(found) == len(lines) - 1
    with pytest.raises(StoreError, match=f"the table meta has no usable .{key}.: export the tome again"):
        restore(tmp_path / "b.tome", found)


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (b"", "does not name|is not JSON"),
        (b"[]", "is not a row"),
        (b'{"tomewise": 0}', "does not name"),
        (b'{"tomewise": true}', "does not name"),
        (b'{"tomewise": %d}' % (FORMAT + 1), "written by a newer Tomewise"),
        (b'{"tomewise": %d}' % (FORMAT - 1), "written by an earlier Tomewise"),
        (b'{"key": "embedder", "kind": "setting", "value": "hash"}', "name what `tome export --all` wrote"),
        (b"[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_no_export_is_named(first: bytes, reason: str, lines: list[bytes], tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=reason):
        restore(tmp_path / "b.tome", [first, *lines[1:]])
    assert not (tmp_path / "b.tome").exists()


def test_nothing_that_exists_is_replaced(lines: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "b.tome"
    restore(path, lines)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="holds something already"):
        restore(path, lines)
    assert path.read_bytes() == before
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "link.tome").symlink_to(tmp_path / "elsewhere.tome")
    for name in ("notes.txt", "link.tome", ".", "none/b.tome"):
        with pytest.raises(StoreError):
            restore(tmp_path / name, lines)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert not (tmp_path / "elsewhere.tome").exists()


@pytest.mark.parametrize("has_links", [True, False])
def test_of_two_imports_on_one_path_the_first_to_end_stays(
    lines: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    path = tmp_path / "b.tome"
    if not has_links:

        def refuse(*_: object) -> None:
            raise PermissionError(1, "no links")

        monkeypatch.setattr("os.link", refuse)

    def restore_meanwhile(end: bytes) -> Iterator[bytes]:
        yield from lines
        restore(path, lines)
        yield end

    for end in (b"no row", b""):  # the outer import fails by itself, or finds the place taken
        with pytest.raises(StoreError, match="not JSON" if end else "holds something already"):
            SqlStore.restore(path, (line for line in restore_meanwhile(end) if line))
        assert [line.encode() + b"\n" for line in export_all(path)] == lines
        assert [found.name for found in tmp_path.iterdir() if found.is_file()] == ["b.tome"]
        path.unlink()


def test_an_import_that_is_killed_leaves_no_tome_and_can_be_repeated(lines: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "b.tome"
    words = [sys.executable, "-m", "tomewise", "import", "-", "-m", str(path)]
    for share in (0.2, 0.5, 0.99):
        with subprocess.Popen(words, stdin=subprocess.PIPE, cwd=tmp_path) as running:
            assert running.stdin
            running.stdin.writelines(lines[: int(share * len(lines))])
            running.stdin.flush()
            running.send_signal(signal.SIGKILL)
        with pytest.raises(StoreError):
            SqlStore.open(path, create=False)
    source = tmp_path / "whole.jsonl"
    source.write_bytes(b"".join(lines))
    with source.open("rb") as file:
        import_all(path, str(source), file)
    assert [line.encode() + b"\n" for line in export_all(path)] == lines
