"""Tomes of earlier versions (`tests/files/README.md`): they open, answer, grow, shrink and are exported."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tomewise.events import Recalled, Stopped, Tried
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.store.lookups import read_edges
from tomewise.store.records import BUILDS
from tomewise.store.sql.database import connect
from tomewise.store.sql.schema import LATEST
from tomewise.tome.tome import Tome
from tomewise.types import Document

OLD = sorted((Path(__file__).parent / "files").glob("format-*.tome"))
BUILT = ("comorag", "cogitorag")
QUESTION = "Who sold the Heron to Ida Poe?"
LATE = Document(id="late", text="Zoe Quill forged the Vellum Codex in Bruges.")
SYSTEMS = (
    *("naive", "hybrid", "full_context", "hipporag2", "associative", "cogitorag", "raptor", "comorag"),
    *("raptor+probe", "hipporag2+probe", "hybrid+probe", "auto"),
    *("raptor+interleave", "hipporag2+interleave", "hybrid+interleave", "hybrid+stepwise"),
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)  # the tree was clustered on PCA


@pytest.fixture(params=OLD, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copy(request.param, tmp_path / "old.tome"))


@pytest.fixture
def old(path: Path) -> Iterator[Tome]:
    with Tome.open(path) as tome:
        yield tome


def kinds(tome: Tome) -> set[tuple[str, str]]:
    """What lines an export has, by kind and by layer or space; each is of nodes that are there."""
    rows = [json.loads(line) for line in tome.export()]
    ids = {row["id"] for row in rows if row["kind"] == "node"}
    assert {row[end] for row in rows for end in ("a", "b", "node") if end in row} <= ids
    return {(row["kind"], row.get("layer") or row.get("space") or "") for row in rows}


def test_there_is_one_of_every_format_before_this_one():
    assert [path.stem for path in OLD][: LATEST - 1] == [f"format-{number}" for number in range(1, LATEST)]


def test_it_is_brought_to_the_latest_format(path):
    engine = connect(path, create=False)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA user_version").scalar_one() == LATEST
    engine.dispose()


@pytest.mark.parametrize("path", [path for path in OLD if path.stem < "format-4"], indirect=True)  # 4 has a log
def test_a_removal_that_no_build_has_followed_is_not_forgotten(path):
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(
            "DELETE FROM intake WHERE layer = 'gists' AND node = (SELECT max(node) FROM intake WHERE layer = 'gists')"
        )
    with Tome.open(path) as tome:
        assert tome.store.find_removed_ids("gists") == ("",)
        assert tome.store.find_removed_ids("tree") == ()
        assert not any("seen" in record for record in tome.store.notes(BUILDS).values())


def test_its_graphs_are_known_by_what_they_write(old):
    records = old.store.notes(BUILDS)
    graph = GraphLayer(old.kit.store, old.kit.model, old.kit.embedder, source="gists")
    gone = {f"descriptions:{graph.names.instance}"}  # merged descriptions, which nothing read
    assert set(records[graph.name]["writes"]) - gone == set(graph.writes)
    assert "writes" not in records["gists"]


@pytest.mark.parametrize("path", [path for path in OLD if path.stem == "format-5"], indirect=True)
def test_schemata_of_before_are_made_anew_at_a_cost_that_is_said_before(old):
    assert not any("schemata" in name for name in (*old.store.layers(), *old.store.notes(BUILDS)))
    assert not len(read_edges(old.store, "schemata-links:0").rows)
    (planned,) = old.estimate("cam")
    report = old.build("cam")
    assert report.usage.total.calls == planned.calls > 0
    assert old.ask(QUESTION, system="cam").evidence


@pytest.mark.parametrize("system", SYSTEMS)
def test_it_is_asked_without_being_built_again(old, system):
    answer = old.ask(QUESTION, system=system)
    assert any("Tom Hale sold the Heron" in piece.text for piece in answer.evidence)


def test_what_was_asked_of_it_is_still_told(old):
    traces = old.traces(5)
    assert {trace.question.text for trace in traces} >= {QUESTION, "Why did Ada Marsh burn the map?"}
    assert all(trace.answer.events and trace.answer.usage.roles for trace in traces)
    kinds_of_events = [type(event) for event in old.trace(1).answer.events]
    assert kinds_of_events == [Recalled, Recalled, Recalled, Tried, Stopped]
    assert old.draw_trace(1).title == "Pool"


def test_it_grows_and_asks_for_nothing_but_what_is_new(old):
    old.add(LATE)
    report = old.build("hipporag2")
    assert report.usage.roles["extract_facts"].calls == 1
    for system in BUILT:
        old.build(system)
        answer = old.ask("Who forged the Vellum Codex?", system=system)
        assert any(LATE.text in piece.text for piece in answer.evidence)


def test_it_shrinks(old):
    old.remove("council")
    for system in BUILT:
        old.build(system)
    assert "Rosa Lind" not in "".join(old.export())
    assert old.ask(QUESTION, system="cogitorag").evidence


def test_it_is_exported_with_the_kinds_of_lines_that_a_tome_made_today_has(old, tmp_path):
    old.add(LATE)
    for system in BUILT:
        old.build(system)
    with Tome.open(tmp_path / "new.tome", embedder="hash:32", passage_tokens=32) as new:
        new.add(*(old.document(record.id) for record in old.documents()))
        for system in BUILT:
            new.build(system)
        assert kinds(old) == kinds(new)
