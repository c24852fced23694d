"""The layer of communities: a sound partition, and reports that are never older than their members."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.communities.test_partition import check_sound
from tests.recall.relation_tomes import EMBEDDER, list_relations
from tests.store.plain_store import PlainStore

from tomewise.errors import BadReply
from tomewise.language.cached import Cached
from tomewise.language.prompts import Prompts
from tomewise.memory.building import build, estimate
from tomewise.memory.communities import communities_layer
from tomewise.memory.communities.communities_layer import CommunitiesLayer
from tomewise.memory.communities.community_names import CommunityNames
from tomewise.memory.communities.community_state import load_state
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.memory.renewal import forget_memory
from tomewise.store.contract import Store
from tomewise.store.export import export
from tomewise.store.lookups import read_edges, read_sources, read_vectors
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import ScriptedModel, put_document
from tomewise.types import Document, Layer, LayerReport

NAMES = CommunityNames()


def write_report(given: Any) -> dict[str, object]:
    rows = [f"{row.source} with {row.target}: {row.description}" for row in given.relations]
    findings = [{"headline": text[:20], "explanation": text, "records": [f"R{n}"]} for n, text in enumerate(rows, 1)]
    links = [f"{row.name} has {row.degree} links: {row.description}" for row in given.entities]
    texts = [*rows, *given.reports, *links]
    return {"title": rows[0] if rows else "all", "summary": " | ".join(texts), "importance": 3, "findings": findings}


def make_layers(store: Store, model: ScriptedModel | None = None) -> list[Layer]:
    model = model or ScriptedModel({"extract_relations": list_relations, "write_report": write_report})
    cached = Cached(model, Prompts(), store.calls)
    graph = GraphLayer(store, cached, EMBEDDER, style="relations")
    return [graph, CommunitiesLayer(store, cached, EMBEDDER, graph.names)]


def add_text(store: Store, name: str, text: str) -> None:
    put_document(store, EMBEDDER, Document(id=name, text=text))


def remove_text(store: Store, name: str) -> None:
    with store.write() as change:
        change.remove_document(name)


async def build_all(store: Store, model: ScriptedModel | None = None) -> LayerReport:
    return (await build(make_layers(store, model), store, lambda _: None))[-1]


def write_text(pairs: Sequence[tuple[int, int]], mark: str) -> str:
    """A text that relates these people, in words that no other text has."""
    named = sorted({person for pair in pairs for person in pair})
    lines = [f"Name{a} ~ Name{b} ~ They met in {mark} once" for a, b in pairs if a != b]
    return "\n".join([*lines, *(f"Name{person} = Somebody of {mark}" for person in named)])


def check_state(store: Store, alive: Sequence[str]) -> None:
    """The partition is sound, every community with a relation has a report of now, and none tells of what is gone."""
    state = load_state(store, NAMES)
    check_sound(state.partition, state.graph)
    assert not state.touched
    inner = state.list_inner_pairs()
    digests = {number: state.make_digest(state.partition.communities[number], inner[number]) for number in inner}
    wanted = {*digests.values()}
    reports = store.nodes(NAMES.reports)
    texts = {node.data["digest"]: node.text.casefold() for node in reports.values()}
    for number, pairs in inner.items():
        degrees = Counter(vertex for pair in pairs for vertex in pair)
        for vertex, degree in degrees.items():
            assert f"{state.names[vertex].casefold()} has {degree} links" in texts[digests[number]]
    assert {node.data["digest"] for node in reports.values()} == wanted == state.reports.keys()
    marks = {word for node in reports.values() for word in node.text.split() if word.startswith("mark")}
    assert marks <= set(alive)
    assert {int(key) for key in read_edges(store, NAMES.about).rows[:, 0]} == reports.keys()
    assert sorted(read_vectors(store, NAMES.reports).keys.tolist()) == sorted(reports)
    facts = {node.id for node in store.nodes(NAMES.graph.facts).values()}
    for key, found in read_sources(store, reports, NAMES.reports).items():
        assert found, f"{reports[key].id} rests on nothing"
        assert all(fact in facts for finding in reports[key].data["findings"] for fact in finding["facts"])


pairs_of_text = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), min_size=1, max_size=9)


@given(steps=st.lists(st.one_of(pairs_of_text, st.integers(0, 9)), min_size=1, max_size=9))
@settings(max_examples=25, deadline=None)
def test_any_adds_and_removes_leave_a_sound_partition(steps: list[list[tuple[int, int]] | int]) -> None:
    async def run() -> None:
        store, alive = PlainStore(), dict[str, str]()
        first = [(a, b) for a in range(12) for b in (a // 4 * 4, (a + 5) % 12)]
        add_text(store, "mark0", write_text(first, "mark0"))
        alive["mark0"] = ""
        await build_all(store)
        check_state(store, [*alive])
        for number, step in enumerate(steps, start=1):
            if isinstance(step, list):
                add_text(store, f"mark{number}", write_text(step, f"mark{number}"))
                alive[f"mark{number}"] = ""
            elif alive:
                gone = [*alive][step % len(alive)]
                remove_text(store, gone)
                del alive[gone]
                assert not [node for node in store.nodes(NAMES.reports).values() if gone in node.text.split()]
            await build_all(store)
            check_state(store, [*alive])

    asyncio.run(run())


def fill_store(store: Store) -> None:
    ring = [(a, b) for group in range(4) for a in range(4 * group, 4 * group + 4) for b in range(a + 1, 4 * group + 4)]
    add_text(store, "mark1", write_text([*ring, (0, 4), (8, 12), (4, 8)], "mark1"))


async def test_equal_histories_give_equal_memories_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    exports, models = [], []
    for number in range(2):
        with closing(SqlStore.open(tmp_path / f"{number}.tome")) as store:
            models.append(ScriptedModel({"extract_relations": list_relations, "write_report": write_report}))
            fill_store(store)
            await build_all(store, models[-1])
            for name, pairs in (("mark2", [(1, 20), (20, 21), (21, 1)]), ("mark3", [(5, 9)])):
                add_text(store, name, write_text(pairs, name))
                await build_all(store, models[-1])
            remove_text(store, "mark3")
            report = await build_all(store, models[-1])
            assert (report.added > 0) <= bool(report.removed or report.notes)
            assert await build_all(store, models[-1]) == LayerReport(layer="communities")
            check_state(store, ["mark1", "mark2"])
            exports.append(list(export(store)))
    assert exports[0] == exports[1]


async def test_a_small_change_pays_for_few_reports(tmp_path: Path) -> None:
    with closing(SqlStore.open(tmp_path / "a.tome")) as store:
        fill_store(store)
        first = await build_all(store)
        add_text(store, "mark2", write_text([(0, 1)], "mark2"))
        layers = make_layers(store)
        await build(layers[:1], store, lambda _: None)
        (_, expected) = await estimate(layers, store)
        second = await build_all(store)
        assert first.added >= 4
        assert expected.calls == second.added < first.added / 2
        assert "kept and renewed" in second.notes[0]


async def test_again_makes_all_anew(tmp_path: Path) -> None:
    with closing(SqlStore.open(tmp_path / "a.tome")) as store:
        fill_store(store)
        report = await build_all(store)
        forget_memory(["communities"], make_layers(store), store)
        model = ScriptedModel({"extract_relations": list_relations, "write_report": write_report})
        again = await build_all(store, model)
        assert again.added == report.added
        assert "made anew" in again.notes[0]
        assert Counter(call.role for call in model.calls) == {"write_report": report.added}
        check_state(store, ["mark1"])


async def test_a_report_that_failed_is_asked_for_by_the_next_build(tmp_path: Path) -> None:
    def fail_once(given: Any) -> dict[str, object]:
        if any("Name0" in (row.source, row.target) for row in given.relations):
            raise BadReply("nothing")
        return write_report(given)

    with closing(SqlStore.open(tmp_path / "a.tome")) as store:
        fill_store(store)
        broken = ScriptedModel({"extract_relations": list_relations, "write_report": fail_once})
        report = await build_all(store, broken)
        assert report.failed
        assert report.added
        assert not any("Name0" in node.text for node in store.nodes(NAMES.reports).values())
        mended = await build_all(store)
        assert mended.added
        assert not mended.failed
        check_state(store, ["mark1"])


def write_short(given: Any) -> dict[str, object]:
    names = [row.name for row in given.entities] + [report.split()[0] for report in given.reports]
    return {"title": names[0], "summary": " ".join(names)}


async def test_a_report_waits_for_the_reports_of_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report that was written without a part whose report failed would never learn of it."""
    monkeypatch.setattr(communities_layer, "_PROMPT_TOKENS", 700)

    async def build_after(name: str, *writers: Callable[[Any], object]) -> tuple[list[LayerReport], dict[str, str]]:
        with closing(SqlStore.open(tmp_path / name)) as store:
            for group in range(30):
                people = range(4 * group, 4 * group + 4)
                pairs = [(a, b) for a in people for b in people if a < b]
                add_text(store, f"mark{group}", write_text([*pairs, (4 * group, 4 * group + 4)], f"mark{group}"))
            reports = [
                await build_all(store, ScriptedModel({"extract_relations": list_relations, "write_report": writer}))
                for writer in writers
            ]
            return reports, {node.data["digest"]: node.text for node in store.nodes(NAMES.reports).values()}

    def fail_parts(given: Any) -> dict[str, object]:
        if not given.reports and len(given.entities) < 10:
            raise BadReply("nothing")
        return write_short(given)

    _, undisturbed = await build_after("a.tome", write_short)
    (broken, mended), texts = await build_after("b.tome", fail_parts, write_short)
    assert broken.failed
    assert not mended.failed
    assert texts == undisturbed


async def test_a_report_shows_no_more_findings_than_it_was_asked_for(tmp_path: Path) -> None:
    with closing(SqlStore.open(tmp_path / "a.tome")) as store:
        fill_store(store)
        await build_all(store)
        for node in store.nodes(NAMES.reports).values():
            assert len(node.data["findings"]) <= 5
            assert len(node.text.splitlines()) == 2 + len(node.data["findings"])


async def test_a_moved_document_keeps_its_reports(tmp_path: Path) -> None:
    with closing(SqlStore.open(tmp_path / "a.tome")) as store:
        fill_store(store)
        await build_all(store)
        before = Counter(node.text for node in store.nodes(NAMES.reports).values())
        document = store.document("mark1")
        with store.write() as change:
            change.move_document("mark1", Document(id="elsewhere", text=document.text), "digest")
        assert await build_all(store) == LayerReport(layer="communities")
        add_text(store, "mark2", write_text([(30, 31)], "mark2"))
        assert (await build_all(store)).added == 1
        assert not before - Counter(node.text for node in store.nodes(NAMES.reports).values())
        check_state(store, ["mark1", "mark2"])


async def test_texts_without_relations_have_no_communities(tmp_path: Path) -> None:
    with closing(SqlStore.open(tmp_path / "a.tome")) as store:
        add_text(store, "mark1", "Ada = A keeper")
        report = await build_all(store)
        assert (report.added, report.failed) == (0, {})
        check_state(store, [])
        fill_store(store)
        await build_all(store)
        remove_text(store, "mark1")
        await build_all(store)
        assert not store.nodes(NAMES.reports)
        assert not store.nodes(NAMES.layer)


@pytest.mark.parametrize("words", [400, 2000])
@pytest.mark.parametrize("graph", [GraphNames("passages", "relations"), GraphNames("passages", "relations", 1, 2)])
def test_the_name_of_a_layer_says_its_graph_and_its_words(graph: GraphNames, words: int) -> None:
    names = CommunityNames(graph, words)
    assert CommunityNames.read(names.layer) == names


def test_the_usual_layer_has_a_short_name() -> None:
    assert (NAMES.layer, NAMES.reports) == ("communities", "reports")
