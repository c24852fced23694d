"""The layer of communities: a sound partition, and reports that are never older than their members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.communities.test_partition import check_sound
from tests.memory.memories import build_layer, build_layers, keep_replies, remove_documents
from tests.recall.relation_tomes import EMBEDDER, list_relations
from tests.store.plain_store import PlainStore

from tomewise.errors import BadReply
from tomewise.language.roles import make_report_role
from tomewise.language.roles.community_roles import REPORT_WORDS
from tomewise.memory.building import estimate
from tomewise.memory.communities.communities_layer import CommunitiesLayer
from tomewise.memory.communities.community_names import CommunityNames
from tomewise.memory.communities.community_state import load_state
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.store.contract import Store
from tomewise.store.export import export
from tomewise.store.lookups import read_edges, read_sources, read_vectors
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import ScriptedModel, put_document
from tomewise.types import Document, Layer, LayerReport

NAMES = CommunityNames(GraphNames("passages", "relations"))


def write_report(given: Any) -> dict[str, object]:
    rows = [f"{row.source} with {row.target}: {row.description}" for row in given.relations]
    findings = [{"headline": text[:20], "explanation": text, "records": [f"R{n}"]} for n, text in enumerate(rows, 1)]
    links = [f"{row.name} has {row.degree} links: {row.description}" for row in given.entities]
    texts = [*rows, *given.reports, *links]
    return {"title": rows[0] if rows else "all", "summary": " | ".join(texts), "importance": 3, "findings": findings}


def write_short(given: Any) -> dict[str, object]:
    names = [row.name for row in given.entities] + [report.split()[0] for report in given.reports]
    return {"title": names[0], "summary": " ".join(names)}


def make_model(write: Callable[[Any], object] = write_report, **more: Any) -> ScriptedModel:
    return ScriptedModel({"extract_relations": list_relations, "write_report": write}, **more)


def make_layers(store: Store, model: ScriptedModel | None = None) -> list[Layer]:
    cached = keep_replies(model or make_model(), store)
    graph = GraphLayer(store, cached, EMBEDDER, style="relations")
    return [graph, CommunitiesLayer(store, cached, EMBEDDER, graph.names)]


def add_text(store: Store, mark: str, pairs: Sequence[tuple[int, int]]) -> None:
    """Add a text that relates these people, in words that no other text has."""
    named = sorted({person for pair in pairs for person in pair})
    lines = [f"Name{a} ~ Name{b} ~ They met in {mark} once" for a, b in pairs if a != b]
    text = "\n".join([*lines, *(f"Name{person} = Somebody of {mark}" for person in named)])
    put_document(store, EMBEDDER, Document(id=mark, text=text))


async def build_all(store: Store, model: ScriptedModel | None = None) -> LayerReport:
    return (await build_layers(make_layers(store, model), store))[-1]


def check_state(store: Store, alive: Sequence[str]) -> None:
    """The partition is sound, every community with a relation has a report of now, and none tells of what is gone."""
    state = load_state(store, NAMES)
    check_sound(state.partition, state.graph)
    assert not state.touched
    inner = state.list_inner_pairs()
    digests = {number: state.make_digest(state.partition.communities[number], inner[number]) for number in inner}
    reports = store.nodes(NAMES.reports)
    texts = {node.data["digest"]: node.text.casefold() for node in reports.values()}
    for number, pairs in inner.items():
        degrees = Counter(vertex for pair in pairs for vertex in pair)
        for vertex, degree in degrees.items():
            assert f"{state.entities[vertex].text.casefold()} has {degree} links" in texts[digests[number]]
    assert texts.keys() == set(digests.values()) == state.reports.keys()
    marks = {word for node in reports.values() for word in node.text.split() if word.startswith("mark")}
    assert marks <= set(alive)
    assert {int(key) for key in read_edges(store, NAMES.about).rows[:, 0]} == reports.keys()
    assert sorted(read_vectors(store, NAMES.reports).keys.tolist()) == sorted(reports)
    facts = {node.id for node in store.nodes(NAMES.graph.facts).values()}
    for key, found in read_sources(store, reports, NAMES.reports).items():
        assert found, f"{reports[key].id} rests on nothing"
        findings = reports[key].data["findings"]
        assert all(fact in facts for finding in findings for fact in finding["facts"])
        assert len(findings) <= 10, "a report shows no more findings than it was asked for"
        assert len(reports[key].text.splitlines()) == 2 + len(findings)


pairs_of_text = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), min_size=1, max_size=9)


@given(steps=st.lists(st.one_of(pairs_of_text, st.integers(0, 9)), min_size=1, max_size=9))
@settings(max_examples=20)
async def test_any_adds_and_removes_leave_a_sound_partition(steps: list[list[tuple[int, int]] | int]) -> None:
    store, alive = PlainStore(), ["mark0"]
    add_text(store, "mark0", [(a, b) for a in range(12) for b in (a // 4 * 4, (a + 5) % 12)])
    await build_all(store)
    check_state(store, alive)
    for number, step in enumerate(steps, start=1):
        if isinstance(step, list):
            add_text(store, f"mark{number}", step)
            alive.append(f"mark{number}")
        elif alive:
            gone = alive.pop(step % len(alive))
            remove_documents(store, gone)
            assert not [node for node in store.nodes(NAMES.reports).values() if gone in node.text.split()]
        await build_all(store)
        check_state(store, alive)


RING = [(a, b) for group in range(4) for a in range(4 * group, 4 * group + 4) for b in range(a + 1, 4 * group + 4)]


@pytest.fixture
def store(open_store: Callable[[], SqlStore]) -> SqlStore:
    return fill_store(open_store())


def fill_store(store: SqlStore) -> SqlStore:
    add_text(store, "mark1", [*RING, (0, 4), (8, 12), (4, 8)])
    return store


async def test_equal_histories_give_equal_memories_and_nothing_is_asked_twice(
    open_store: Callable[[], SqlStore],
) -> None:
    exports = []
    for store in (fill_store(open_store()), fill_store(open_store())):
        await build_all(store)
        for name, pairs in (("mark2", [(1, 20), (20, 21), (21, 1)]), ("mark3", [(5, 9)])):
            add_text(store, name, pairs)
            await build_all(store)
        remove_documents(store, "mark3")
        report = await build_all(store)
        assert (report.added > 0) <= bool(report.removed or report.notes)
        model = make_model()
        assert await build_all(store, model) == LayerReport(layer=NAMES.layer)
        assert not model.calls
        check_state(store, ["mark1", "mark2"])
        exports.append(list(export(store)))
    assert exports[0] == exports[1]


async def test_a_small_change_pays_for_few_reports(store: SqlStore) -> None:
    first = await build_all(store)
    add_text(store, "mark2", [(0, 1)])
    layers = make_layers(store)
    await build_layer(layers[0], store)
    (_, expected) = await estimate(layers, store)
    second = await build_all(store)
    assert first.added >= 4
    assert expected.cost.calls == second.added < first.added / 2
    assert "kept and renewed" in second.notes[0]


async def test_a_report_waits_for_the_reports_of_its_parts(open_store: Callable[[], SqlStore]) -> None:
    """A report that was written without a part whose report failed would never learn of it."""

    def fail_parts(given: Any) -> object:
        return write_short(given) if given.reports or len(given.entities) >= 10 else BadReply("nothing")

    async def build_after(*writers: Callable[[Any], object]) -> tuple[list[LayerReport], dict[str, str]]:
        store = open_store()
        for group in range(30):
            people = range(4 * group, 4 * group + 4)
            pairs = [(a, b) for a in people for b in people if a < b]
            add_text(store, f"mark{group}", [*pairs, (4 * group, 4 * group + 4)])
        # The relations of a large community do not fit into the two thirds of 1050 tokens that they may fill.
        window = 1050 + make_report_role(REPORT_WORDS).output_tokens
        reports = [await build_all(store, make_model(writer, window=window)) for writer in writers]
        return reports, {node.data["digest"]: node.text for node in store.nodes(NAMES.reports).values()}

    _, undisturbed = await build_after(write_short)
    (broken, mended), texts = await build_after(fail_parts, write_short)
    assert broken.failed
    assert not mended.failed
    assert texts == undisturbed


async def test_a_moved_document_keeps_its_reports(store: SqlStore) -> None:
    await build_all(store)
    before = Counter(node.text for node in store.nodes(NAMES.reports).values())
    with store.write() as change:
        change.move_document("mark1", Document(id="elsewhere", text=store.document("mark1").text), "digest")
    assert await build_all(store) == LayerReport(layer=NAMES.layer)
    add_text(store, "mark2", [(30, 31)])
    assert (await build_all(store)).added == 1
    assert not before - Counter(node.text for node in store.nodes(NAMES.reports).values())
    check_state(store, ["mark1", "mark2"])
