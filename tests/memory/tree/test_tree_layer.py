"""The tree: new and kept summaries, failing calls, and estimates."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tomewise.errors import BadReply, BudgetExceeded
from tomewise.language.cached import Cached
from tomewise.language.prompts import Prompts
from tomewise.language.roles import SummaryIn
from tomewise.memory.build_records import forget_layer
from tomewise.memory.building import build, estimate, find_backlog, find_changes
from tomewise.memory.tree.clustering import Reduction, reduce_by_pca
from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.run import meter
from tomewise.store.export import export
from tomewise.store.lookups import read_sources, read_vectors
from tomewise.store.records import BUILDS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel, check_layer, document_of, put_document
from tomewise.types import Progress

EMBEDDER = HashEmbedder(32)
THEMES = ("sea boat sail harbour tide", "court judge law trial oath", "wheat field plough harvest barn")


def quiet(_: Progress) -> None:
    pass


def make_text(number: int) -> str:
    """Make a text of one of three themes; no two texts are equal."""
    dice = random.Random(number)
    words = THEMES[number % 3].split() * 2 + [f"w{dice.randint(0, 30)}" for _ in range(4)]
    dice.shuffle(words)
    return f"{' '.join(words)} n{number}."


def take_first_words(given: SummaryIn) -> dict[str, str]:
    return {"summary": " ".join(" ".join(text.split()[:3]) for text in given.texts)[:400]}


def take_beginning(given: SummaryIn) -> dict[str, str]:
    """Summarise in the length that an estimate assumes."""
    return {"summary": " ".join(given.texts)[: int(0.95 * 4 * given.max_tokens)]}


def make_model(reply: Callable[[SummaryIn], object] = take_first_words) -> ScriptedModel:
    return ScriptedModel({"summarise": reply})


def make_layer(store: SqlStore, model: object, **settings: int) -> TreeLayer:
    return TreeLayer(store, model, EMBEDDER, reduction=Reduction("pca", reduce_by_pca, "a note"), **settings)


def fill_store(path: Path, numbers: Sequence[int]) -> SqlStore:
    store = SqlStore.open(path)
    for number in numbers:
        put_document(store, EMBEDDER, document_of(f"d{number:03}", make_text(number)))
    return store


@pytest.fixture
def store(tmp_path: Path) -> SqlStore:
    return fill_store(tmp_path / "a.tome", range(60))


async def test_summaries_link_to_the_nodes_that_they_summarise(store: SqlStore) -> None:
    model = make_model()
    (report,) = await build([make_layer(store, model, cluster_tokens=60)], store, quiet)
    nodes = store.nodes("tree")
    record = store.notes(BUILDS)["tree"]
    passages = store.passages()
    assert report.added == len(nodes) == len(model.calls) == sum(record["sizes"])
    assert (record["taken"], record["reduction"], record["levels"]) == (60, "pca", len(record["sizes"]))
    assert record["levels"] >= 2
    assert report.notes == ("a note",)
    texts = {key: passage.text for key, passage in passages.items()} | {key: node.text for key, node in nodes.items()}
    levels = dict.fromkeys(passages, 0) | {key: node.level for key, node in nodes.items()}
    summed = {frozenset(call.given.texts): take_first_words(call.given)["summary"] for call in model.calls}
    for key, members in read_sources(store, nodes, "tree").items():
        assert {levels[member] for member in members} == {levels[key] - 1}
        assert nodes[key].text == summed[frozenset(texts[member] for member in members)]
    order = [passage.text for passage in passages.values()]
    for call in model.calls[: record["sizes"][0]]:
        places = [order.index(text) for text in call.given.texts]
        assert places == sorted(places)
    columns = read_vectors(store, "tree")
    assert columns.keys.tolist() == sorted(nodes)
    assert np.array_equal(columns.rows, EMBEDDER.embed([nodes[key].text for key in sorted(nodes)]))
    under = {member for key in nodes for member in read_sources(store, [key], "tree")[key]}
    assert under >= set(passages)
    assert not find_backlog([make_layer(store, model)], store).counts


async def test_eleven_passages_need_no_tree(tmp_path: Path) -> None:
    model = make_model()
    store = fill_store(tmp_path / "b.tome", range(11))
    (report,) = await build([make_layer(store, model)], store, quiet)
    assert (report.added, report.notes, model.calls) == (0, (), [])
    assert store.notes(BUILDS)["tree"]["taken"] == 11
    assert not find_changes(make_layer(store, model), store)


async def test_levels_end_at_five_and_never_grow(store: SqlStore) -> None:
    await build([make_layer(store, make_model(), cluster_tokens=1)], store, quiet)
    assert store.nodes("tree") == {}  # each passage is its own cluster, so a level would not be smaller
    with store.write() as change:
        forget_layer(change, "tree")
    await build([make_layer(store, make_model(lambda given: {"summary": "x y"}), cluster_tokens=30)], store, quiet)
    sizes = store.notes(BUILDS)["tree"]["sizes"]
    assert len(sizes) <= 5
    assert [60, *sizes] == sorted([60, *sizes], reverse=True)


async def test_a_level_is_asked_side_by_side(store: SqlStore) -> None:
    model = ScriptedModel({"summarise": take_first_words}, latency=0.2)
    with meter() as seen:
        await build([make_layer(store, model, cluster_tokens=60)], store, quiet)
    assert seen.usage().depth == store.notes(BUILDS)["tree"]["levels"]


async def test_unchanged_clusters_are_not_asked_again(store: SqlStore) -> None:
    await build([make_layer(store, make_model(), cluster_tokens=60)], store, quiet)
    before = {node.id for node in store.nodes("tree").values()}
    put_document(store, EMBEDDER, document_of("d999", make_text(999)))
    model = make_model()
    (report,) = await build([make_layer(store, model, cluster_tokens=60)], store, quiet)
    after = {node.id for node in store.nodes("tree").values()}
    assert 0 < len(model.calls) == report.added == len(after - before) < len(after)
    assert report.removed == len(before - after) > 0
    assert len(read_vectors(store, "tree").keys) == len(after)


async def test_adding_and_removing_leaves_the_tree_and_asks_nothing_again(store: SqlStore) -> None:
    model = make_model()
    make = make_layer(store, Cached(model, Prompts(), store.calls), cluster_tokens=60)
    await build([make], store, quiet)
    whole = list(export(store))
    put_document(store, EMBEDDER, document_of("d999", make_text(999)))
    await build([make], store, quiet)
    with store.write() as change:
        change.remove_document("d999")
    assert find_changes(make, store).removed
    assert "tree" in find_backlog([make], store).counts
    calls = len(model.calls)
    await build([make], store, quiet)
    assert len(model.calls) == calls
    assert list(export(store)) == whole


async def test_without_passages_there_is_no_tree(store: SqlStore) -> None:
    await build([make_layer(store, make_model())], store, quiet)
    with store.write() as change:
        for number in range(60):
            change.remove_document(f"d{number:03}")
    assert store.nodes("tree") == {}
    await build([make_layer(store, make_model())], store, quiet)
    assert not find_changes(make_layer(store, make_model()), store)


async def test_a_summary_that_fails_is_made_by_the_next_build(store: SqlStore, tmp_path: Path) -> None:
    broken = "n7."

    def reply(given: SummaryIn) -> object:
        return BadReply("no such luck") if any(broken in text for text in given.texts) else take_first_words(given)

    (report,) = await build([make_layer(store, make_model(reply), cluster_tokens=60)], store, quiet)
    texts = {key: passage.text for key, passage in store.passages().items()}
    assert any(broken in texts[key] for key in report.failed)
    assert set(report.failed.values()) == {"no such luck"}
    assert store.intake("tree").failed == report.failed
    assert store.nodes("tree")
    assert store.notes(BUILDS)["tree"]["taken"] == 60 - len(report.failed)
    again = find_changes(make_layer(store, make_model()), store)
    assert (set(again.added), again.removed) == (set(report.failed), ())
    assert not find_backlog([make_layer(store, make_model())], store).counts
    (report,) = await build([make_layer(store, make_model(), cluster_tokens=60)], store, quiet)
    assert not report.failed
    rebuilt = fill_store(tmp_path / "b.tome", range(60))
    await build([make_layer(rebuilt, make_model(), cluster_tokens=60)], rebuilt, quiet)
    assert list(export(store)) == list(export(rebuilt))


async def test_a_failure_on_an_upper_level_counts_for_all_passages_below(store: SqlStore) -> None:
    ground = {passage.text for passage in store.passages().values()}

    def reply(given: SummaryIn) -> object:
        return take_first_words(given) if ground.issuperset(given.texts) else BadReply("too high")

    (report,) = await build([make_layer(store, make_model(reply), cluster_tokens=60)], store, quiet)
    assert {node.level for node in store.nodes("tree").values()} == {1}
    assert set(report.failed) == set(store.passages())


async def test_a_spent_budget_leaves_the_store_as_it_was(store: SqlStore) -> None:
    before = list(export(store))
    with pytest.raises(BudgetExceeded):
        await build([make_layer(store, make_model(lambda _: BudgetExceeded("enough")))], store, quiet)
    assert list(export(store)) == before


async def test_without_umap_the_report_has_a_note(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    (report,) = await build([TreeLayer(store, make_model(), EMBEDDER)], store, quiet)
    assert "umap" in report.notes[0]
    assert store.notes(BUILDS)["tree"]["reduction"] == "pca"


async def test_an_estimate_asks_nothing_and_is_close(store: SqlStore) -> None:
    model = make_model(take_beginning)
    make = make_layer(store, model, cluster_tokens=60, summary_tokens=12)
    before = list(export(store))
    seen_steps: list[Progress] = []
    (foreseen,) = await estimate([make], store, seen_steps.append)
    for label in ("layers estimated", "steps of clustering", "calls estimated"):
        steps = [(step.done, step.total) for step in seen_steps if step.label == label]
        assert len(steps) > 1
        assert steps[-1][0] == steps[-1][1] > 0
    assert model.calls == []
    assert list(export(store)) == before
    with meter() as seen:
        await build([make], store, quiet)
    used = seen.usage().total
    assert foreseen.calls >= store.notes(BUILDS)["tree"]["sizes"][0]
    # On a novel it is within 3 % (`bench/tree.py`); here the upper levels are small and have no meaning.
    assert foreseen.calls == pytest.approx(used.calls, rel=0.2)
    assert foreseen.input_tokens == pytest.approx(used.input_tokens, rel=0.2)
    assert (await estimate([make], store))[0].calls == 0


async def test_an_estimate_is_exact_where_the_level_below_is_known(store: SqlStore) -> None:
    ground = {passage.text for passage in store.passages().values()}

    def reply(given: SummaryIn) -> object:
        return take_beginning(given) if ground.issuperset(given.texts) else BadReply("too high")

    wide = {"cluster_tokens": 110, "summary_tokens": 30}
    await build([make_layer(store, make_model(reply), **wide)], store, quiet)
    (foreseen,) = await estimate([make_layer(store, make_model(), **wide)], store)
    with meter() as seen:
        await build([make_layer(store, make_model(take_beginning), **wide)], store, quiet)
    assert store.notes(BUILDS)["tree"]["levels"] == 2
    assert foreseen.calls == seen.usage().total.calls > 0
    assert foreseen.input_tokens == seen.usage().total.input_tokens


async def test_the_layer_keeps_the_contract(tmp_path: Path) -> None:
    numbers = iter(range(100))
    await check_layer(
        lambda store: [make_layer(store, make_model())],
        lambda: SqlStore.open(tmp_path / f"{next(numbers)}.tome"),
        EMBEDDER,
    )


@settings(max_examples=5, deadline=None)
@given(st.lists(st.integers(0, 200), min_size=14, max_size=24, unique=True), st.randoms(use_true_random=False))
async def test_the_order_of_adding_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], dice: random.Random
) -> None:
    folder = tmp_path_factory.mktemp("orders")
    shuffled = dice.sample(numbers, len(numbers))
    at_once, in_steps = fill_store(folder / "a.tome", numbers), fill_store(folder / "b.tome", shuffled[:13])
    await build([make_layer(at_once, make_model(), cluster_tokens=70)], at_once, quiet)
    await build([make_layer(in_steps, make_model(), cluster_tokens=70)], in_steps, quiet)
    for number in shuffled[13:]:
        put_document(in_steps, EMBEDDER, document_of(f"d{number:03}", make_text(number)))
    await build([make_layer(in_steps, make_model(), cluster_tokens=70)], in_steps, quiet)
    assert list(export(at_once)) == list(export(in_steps))
    assert len(at_once.nodes("tree")) > 0
