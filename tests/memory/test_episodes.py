"""Episodes: cutting windows, asking again, failing calls, and estimates."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from math import floor, log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import stories

from tomewise.errors import BadReply, UsageError
from tomewise.language.roles import SummaryIn
from tomewise.memory.building import build, estimate, find_backlog, find_changes
from tomewise.memory.episodes import EpisodesLayer, choose_window_size, cut_windows
from tomewise.run import meter
from tomewise.store.export import export
from tomewise.store.lookups import read_sources, read_vectors
from tomewise.store.records import BUILDS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel, check_layer
from tomewise.types import Progress

EMBEDDER = HashEmbedder(32)


def quiet(_: Progress) -> None:
    pass


def put_passages(store: SqlStore, name: str, *texts: str) -> list[int]:
    """Put a document with these passages into the store."""
    return stories.put_texts(store, EMBEDDER, name, *texts)


def list_scenes(name: str, count: int) -> list[str]:
    return [f"Scene {number} of {name}." for number in range(count)]


def join_texts(given: SummaryIn) -> dict[str, str]:
    return {"summary": f"<{'|'.join(given.texts)}>"}


def make_model(reply: Callable[[SummaryIn], object] = join_texts) -> ScriptedModel:
    return ScriptedModel({"narrate": reply})


def list_texts(store: SqlStore, level: int = 0, name: str = "episodes") -> list[str]:
    return [node.text for node in store.nodes(name).values() if node.level == level]


@pytest.fixture
def store(tmp_path):
    new_store = SqlStore.open(tmp_path / "a.tome")
    yield new_store
    new_store.close()


# ---------------------------------------------------------------- the windows


@pytest.mark.parametrize(
    ("passages", "size"),
    [(1, 2), (5, 2), (6, 3), (20, 3), (21, 5), (50, 5), (51, 8), (100, 8), (101, 10), (200, 10)],
)
def test_the_steps_of_appendix_b2(passages: int, size: int) -> None:
    assert choose_window_size(passages) == size


def test_past_two_hundred_passages_a_window_grows_with_the_logarithm_up_to_twenty() -> None:
    for passages in (201, 256, 492, 600, 1023, 1024, 5000, 10**6):
        assert choose_window_size(passages) == min(20, max(10, floor(2 * log2(passages))))
    assert (choose_window_size(201), choose_window_size(300), choose_window_size(1024), choose_window_size(10**6)) == (
        15,
        16,
        20,
        20,
    )


def test_the_window_size_follows_from_the_passages_of_the_document() -> None:
    assert choose_window_size(492) == 17, "the released code counts passages before it stores them and gets 2"


@given(st.integers(1, 300), st.integers(2, 25), st.integers(1, 25))
def test_windows_cover_everything_in_order_and_no_window_contains_the_next(count: int, size: int, step: int):
    step = min(step, size)
    found = cut_windows(count, size, step)
    assert [window.start for window in found] == [step * number for number in range(len(found))]
    assert {place for window in found for place in window} == (set(range(count)) if count > 1 else set())
    assert all(len(window) == size for window in found[:-1])
    assert all(2 <= len(window) <= size + 1 for window in found[-1:])
    assert all(later.stop > earlier.stop for earlier, later in pairwise(found))


def test_windows_touch_or_overlap() -> None:
    assert cut_windows(8, 3, 3) == [range(3), range(3, 6), range(6, 8)]
    assert cut_windows(7, 3, 3) == [range(3), range(3, 7)], "the seventh alone would not be a sequence"
    assert cut_windows(7, 3, 2) == [range(3), range(2, 5), range(4, 7)]
    assert cut_windows(8, 3, 2) == [range(3), range(2, 5), range(4, 7), range(6, 8)]
    assert cut_windows(2, 3, 3) == [range(2)]
    assert cut_windows(1, 3, 3) == []


# ---------------------------------------------------------------- the layer


async def test_a_document_becomes_the_summaries_of_its_windows(store) -> None:
    put_passages(store, "a", *list_scenes("a", 8))
    asked = make_model()
    (report,) = await build([EpisodesLayer(store, asked, EMBEDDER)], store, quiet)
    assert report.added == 3
    assert [call.given.texts for call in asked.calls] == [list_scenes("a", 8)[at : at + 3] for at in (0, 3, 6)]
    assert [call.given.max_tokens for call in asked.calls] == [500, 500, 500]
    nodes = store.nodes("episodes")
    assert [node.position for node in nodes.values()] == [0, 1, 2]
    assert {node.data["document"] for node in nodes.values()} == {"a"}
    passages = list(store.passages())
    assert list(read_sources(store, nodes, "episodes").values()) == [passages[:3], passages[3:6], passages[6:]]
    assert read_vectors(store, "episodes").keys.tolist() == sorted(nodes)
    assert store.notes(BUILDS)["episodes"]["taken"] == 8


async def test_a_document_of_one_passage_has_no_windows(store) -> None:
    put_passages(store, "a", "All there is.")
    asked = make_model()
    layer = EpisodesLayer(store, asked, EMBEDDER)
    (report,) = await build([layer], store, quiet)
    assert asked.calls == []
    assert (report.added, list_texts(store)) == (0, [])
    assert not find_changes(layer, store)


async def test_only_windows_of_changed_documents_are_asked_for_again(store) -> None:
    for name, count in (("a", 6), ("b", 9)):
        put_passages(store, name, *list_scenes(name, count))
    await build([EpisodesLayer(store, make_model(), EMBEDDER)], store, quiet)
    before = set(store.nodes("episodes"))
    put_passages(store, "c", *list_scenes("c", 2))
    asked = make_model()
    (report,) = await build([EpisodesLayer(store, asked, EMBEDDER)], store, quiet)
    assert [call.given.texts for call in asked.calls] == [list_scenes("c", 2)]
    assert report.added == 1
    put_passages(
        store, "b", *list_scenes("b", 8)
    )  # a new version: its passages are new nodes, although most texts are equal
    asked = make_model()
    (report,) = await build([EpisodesLayer(store, asked, EMBEDDER)], store, quiet)
    assert {text for call in asked.calls for text in call.given.texts} <= set(list_scenes("b", 9))
    assert store.notes(BUILDS)["episodes"]["taken"] == 6 + 8 + 2
    assert len(list_texts(store)) == 2 + 3 + 1
    kept = [key for key, node in store.nodes("episodes").items() if node.data["document"] == "a"]
    assert set(kept) <= before


async def test_a_removal_is_a_change_and_removes_the_windows(store) -> None:
    put_passages(store, "a", *list_scenes("a", 6))
    put_passages(store, "b", *list_scenes("b", 6))
    layer = EpisodesLayer(store, make_model(), EMBEDDER)
    await build([layer], store, quiet)
    with store.write() as change:
        change.remove_document("b")
    assert find_changes(layer, store).removed
    assert find_backlog([layer], store).counts == {"episodes": 0}
    asked = make_model()
    await build([EpisodesLayer(store, asked, EMBEDDER)], store, quiet)
    assert asked.calls == []
    assert len(list_texts(store)) == 2
    assert not find_changes(layer, store)


async def test_only_the_failed_window_is_recorded_and_asked_for_again(store) -> None:
    keys = put_passages(store, "a", *list_scenes("a", 9))

    def reply(given: SummaryIn) -> object:
        return BadReply("no JSON") if "Scene 4 of a." in given.texts else join_texts(given)

    layer = EpisodesLayer(store, make_model(reply), EMBEDDER)
    (report,) = await build([layer], store, quiet)
    assert report.failed == dict.fromkeys(keys[3:6], "no JSON")
    assert store.layers()["episodes"] == {"nodes": 2, "failed": 3}
    assert find_backlog([layer], store).counts == {}, "the finished windows are usable"
    assert find_changes(layer, store).added == tuple(keys[3:6])
    assert not find_changes(layer, store).removed
    asked = make_model()
    (report,) = await build([EpisodesLayer(store, asked, EMBEDDER)], store, quiet)
    assert [call.given.texts for call in asked.calls] == [list_scenes("a", 9)[3:6]]
    assert (report.added, dict(report.failed)) == (1, {})
    assert len(list_texts(store)) == 3
    assert not find_changes(layer, store)


async def test_levels_summarise_summaries_and_no_window_rests_on_a_failed_one(store) -> None:
    put_passages(store, "a", *list_scenes("a", 12))  # four windows of three, then two of two, then one
    whole = EpisodesLayer(store, make_model(), EMBEDDER, levels=4)
    await build([whole], store, quiet)
    assert [len(list_texts(store, level, whole.name)) for level in range(4)] == [4, 2, 1, 0]
    first = list_texts(store, 0, whole.name)
    assert list_texts(store, 1, whole.name) == [f"<{first[0]}|{first[1]}>", f"<{first[2]}|{first[3]}>"]
    expected = list(export(store))
    with store.write() as change:
        change.remove_document("a")
    keys = put_passages(store, "a", *list_scenes("a", 12))

    def reply(given: SummaryIn) -> object:
        return BadReply("no") if "Scene 1 of a." in given.texts else join_texts(given)

    (report,) = await build([EpisodesLayer(store, make_model(reply), EMBEDDER, levels=4)], store, quiet)
    assert set(report.failed) == set(keys[:3])
    assert [len(list_texts(store, level, whole.name)) for level in range(3)] == [3, 1, 0], (
        "no window above the failed one"
    )
    asked = make_model()
    await build([EpisodesLayer(store, asked, EMBEDDER, levels=4)], store, quiet)
    assert len(asked.calls) == 3, "the failed window and the two above it"
    assert list(export(store)) == expected


async def test_a_failure_on_an_upper_level_is_recorded_too(store) -> None:
    keys = put_passages(store, "a", *list_scenes("a", 6))

    def reply(given: SummaryIn) -> object:
        return BadReply("no") if given.texts[0].startswith("<") else join_texts(given)

    layer = EpisodesLayer(store, make_model(reply), EMBEDDER, levels=2)
    (report,) = await build([layer], store, quiet)
    assert set(report.failed) == set(keys)
    assert list_texts(store, 1, layer.name) == []
    asked = make_model()
    await build([EpisodesLayer(store, asked, EMBEDDER, levels=2)], store, quiet)
    assert len(asked.calls) == 1
    assert len(list_texts(store, 1, layer.name)) == 1
    assert not find_changes(layer, store)


async def test_a_stride_makes_windows_overlap_and_leaves_no_passage_out(store) -> None:
    def sources(layer: EpisodesLayer) -> list[list[int]]:
        return list(read_sources(store, store.nodes(layer.name), layer.name).values())

    keys = put_passages(store, "a", *list_scenes("a", 7))
    layer = EpisodesLayer(store, make_model(), EMBEDDER, stride=2)
    await build([layer], store, quiet)
    assert sources(layer) == [keys[0:3], keys[2:5], keys[4:7]]
    put_passages(store, "b", *list_scenes("b", 7))
    layer = EpisodesLayer(store, make_model(), EMBEDDER, stride=100)
    await build([layer], store, quiet)
    assert {key for keys in sources(layer) for key in keys} == set(store.passages())


async def test_layers_with_different_settings_exist_side_by_side(store) -> None:
    put_passages(store, "a", *list_scenes("a", 7))
    layers = [EpisodesLayer(store, make_model(), EMBEDDER, **options) for options in ({}, {"stride": 1}, {"levels": 2})]
    await build(layers[:1], store, quiet)
    assert [bool(find_backlog([layer], store).counts) for layer in layers] == [False, True, True]
    await build(layers, store, quiet)
    assert find_backlog(layers, store).counts == {}
    assert [layer.name for layer in layers] == ["episodes", "episodes:stride=1", "episodes:levels=2"]
    assert [len(store.nodes(layer.name)) for layer in layers] == [2, 5, 2 + 1]
    with store.write() as change:
        change.remove_document("a")
    assert [len(store.nodes(layer.name)) for layer in layers] == [0, 0, 0]


@pytest.mark.parametrize("wrong", [{"stride": -1}, {"levels": 0}])
def test_impossible_settings_are_refused(store, wrong) -> None:
    with pytest.raises(UsageError, match="levels to 1 or more"):
        EpisodesLayer(store, make_model(), EMBEDDER, **wrong)


@pytest.mark.parametrize("levels", [1, 3])
async def test_a_pure_function_of_its_passages(tmp_path, levels) -> None:
    numbers = iter(range(100))
    await check_layer(
        lambda store: [EpisodesLayer(store, make_model(), EMBEDDER, levels=levels)],
        lambda: SqlStore.open(tmp_path / f"{next(numbers)}.tome"),
        EMBEDDER,
    )


@settings(max_examples=15, deadline=None)
@given(st.data())
async def test_any_history_gives_the_memory_of_its_outcome(tmp_path_factory, data) -> None:
    """After adding, replacing, removing and failing calls in any order, the memory follows from the documents alone."""
    folder = tmp_path_factory.mktemp("history")
    stores = [SqlStore.open(folder / name) for name in ("a.tome", "b.tome")]
    steps = data.draw(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 14)), min_size=1, max_size=8))
    levels, stride = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([0, 1, 2]))
    dice = random.Random(data.draw(st.integers(0, 99)))
    counts: dict[str, int] = {}

    def reply(given: SummaryIn) -> object:
        return BadReply("no") if dice.random() < 0.3 else join_texts(given)

    for name, count in steps:
        if count and counts.get(name) != count:
            put_passages(stores[0], name, *list_scenes(name, count))
        elif not count and name in counts:
            with stores[0].write() as change:
                change.remove_document(name)
        counts = {**counts, name: count}
        await build(
            [EpisodesLayer(stores[0], make_model(reply), EMBEDDER, levels=levels, stride=stride)], stores[0], quiet
        )
        counts = {name: count for name, count in counts.items() if count}
    await build([EpisodesLayer(stores[0], make_model(), EMBEDDER, levels=levels, stride=stride)], stores[0], quiet)
    for name, count in counts.items():
        put_passages(stores[1], name, *list_scenes(name, count))
    layer = EpisodesLayer(stores[1], make_model(), EMBEDDER, levels=levels, stride=stride)
    await build([layer], stores[1], quiet)
    exported = [
        [line for line in export(store) if '"kind": "setting"' not in line and '"kind": "build"' not in line]
        for store in stores
    ]
    assert exported[0] == exported[1]
    assert not find_changes(layer, stores[0])
    for store in stores:
        store.close()


@pytest.mark.parametrize("levels", [1, 3])
async def test_calls_are_estimated_exactly_and_only_for_missing_windows(store, levels) -> None:
    put_passages(store, "a", *list_scenes("a", 26))
    put_passages(store, "b", *list_scenes("b", 1))
    asked = make_model(lambda given: {"summary": " ".join(given.texts)[: sum(map(len, given.texts)) // 2]})
    layer = EpisodesLayer(store, asked, EMBEDDER, levels=levels)
    (foreseen,) = await estimate([layer], store)
    assert asked.calls == []
    with meter() as seen:
        await build([layer], store, quiet)
    assert foreseen.calls == seen.usage().total.calls == len(asked.calls)
    assert foreseen.input_tokens == pytest.approx(seen.usage().total.input_tokens, rel=0.1)
    assert (await estimate([layer], store))[0].calls == 0
    put_passages(store, "c", *list_scenes("c", 6))
    (foreseen,) = await estimate([layer], store)
    assert foreseen.calls == 2 + (levels > 1)
