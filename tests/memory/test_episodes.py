"""Episodes: how windows are cut, which are asked for again, what a failing one leaves, and what is reckoned."""

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
from tomewise.language.usage import meter
from tomewise.memory.building import build, estimate, find_changes, find_lag
from tomewise.memory.episodes import EpisodesLayer, choose_window_size, cut_windows
from tomewise.store.sqlite.export import export
from tomewise.store.sqlite.store import SqliteStore
from tomewise.testing import HashEmbedder, ScriptedModel, check_layer
from tomewise.types import Progress

EMBEDDER = HashEmbedder(32)


def quiet(_: Progress) -> None:
    pass


def put(store: SqliteStore, name: str, *texts: str) -> list[int]:
    """A document of so many passages."""
    return stories.put(store, EMBEDDER, name, *texts)


def scenes(name: str, count: int) -> list[str]:
    return [f"Scene {number} of {name}." for number in range(count)]


def told(given: SummaryIn) -> dict[str, str]:
    return {"summary": f"<{'|'.join(given.texts)}>"}


def model(reply: Callable[[SummaryIn], object] = told) -> ScriptedModel:
    return ScriptedModel({"narrate": reply})


def texts(store: SqliteStore, level: int = 0, name: str = "episodes") -> list[str]:
    return [node.text for node in store.nodes(name).values() if node.level == level]


@pytest.fixture
def store(tmp_path):
    made = SqliteStore.open(tmp_path / "a.tome")
    yield made
    made.close()


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


def test_table_row_1_the_size_follows_from_the_passages_there_are_and_never_from_an_empty_store() -> None:
    assert choose_window_size(492) == 17, "the released code reads the number before there are passages and gets 2"


@given(st.integers(1, 300), st.integers(2, 25), st.integers(1, 25))
def test_windows_cover_everything_in_order_and_none_lies_within_the_one_before(count: int, size: int, step: int):
    step = min(step, size)
    found = cut_windows(count, size, step)
    assert [window.start for window in found] == [step * number for number in range(len(found))]
    assert {place for window in found for place in window} == (set(range(count)) if count > 1 else set())
    assert all(len(window) == size for window in found[:-1])
    assert all(2 <= len(window) <= size + 1 for window in found[-1:])
    assert all(later.stop > earlier.stop for earlier, later in pairwise(found))


def test_windows_touch_or_overlap() -> None:
    assert cut_windows(8, 3, 3) == [range(3), range(3, 6), range(6, 8)]
    assert cut_windows(7, 3, 3) == [range(3), range(3, 7)], "the seventh alone would be no course"
    assert cut_windows(7, 3, 2) == [range(3), range(2, 5), range(4, 7)]
    assert cut_windows(8, 3, 2) == [range(3), range(2, 5), range(4, 7), range(6, 8)]
    assert cut_windows(2, 3, 3) == [range(2)]
    assert cut_windows(1, 3, 3) == []


# ---------------------------------------------------------------- the layer


async def test_a_document_becomes_the_summaries_of_its_windows(store) -> None:
    put(store, "a", *scenes("a", 8))
    asked = model()
    (report,) = await build([EpisodesLayer(store, asked, EMBEDDER)], store, quiet)
    assert report.added == 3
    assert [call.given.texts for call in asked.calls] == [scenes("a", 8)[at : at + 3] for at in (0, 3, 6)]
    assert [call.given.max_tokens for call in asked.calls] == [500, 500, 500]
    nodes = store.nodes("episodes")
    assert [node.position for node in nodes.values()] == [0, 1, 2]
    assert {node.data["document"] for node in nodes.values()} == {"a"}
    passages = list(store.passages())
    assert list(store.sources(nodes, "episodes").values()) == [passages[:3], passages[3:6], passages[6:]]
    assert store.vectors("episodes").keys.tolist() == sorted(nodes)
    assert store.builds()["episodes"]["taken"] == 8


async def test_a_document_of_one_passage_has_no_course_and_is_not_repeated(store) -> None:
    put(store, "a", "All there is.")
    asked = model()
    layer = EpisodesLayer(store, asked, EMBEDDER)
    (report,) = await build([layer], store, quiet)
    assert asked.calls == []
    assert (report.added, texts(store)) == (0, [])
    assert not find_changes(layer, store)


async def test_only_windows_of_changed_documents_are_asked_for_again(store) -> None:
    for name, count in (("a", 6), ("b", 9)):
        put(store, name, *scenes(name, count))
    await build([EpisodesLayer(store, model(), EMBEDDER)], store, quiet)
    before = set(store.nodes("episodes"))
    put(store, "c", *scenes("c", 2))
    asked = model()
    (report,) = await build([EpisodesLayer(store, asked, EMBEDDER)], store, quiet)
    assert [call.given.texts for call in asked.calls] == [scenes("c", 2)]
    assert report.added == 1
    put(store, "b", *scenes("b", 8))  # a new version: its passages are other nodes, though most say the same
    asked = model()
    (report,) = await build([EpisodesLayer(store, asked, EMBEDDER)], store, quiet)
    assert {text for call in asked.calls for text in call.given.texts} <= set(scenes("b", 9))
    assert store.builds()["episodes"]["taken"] == 6 + 8 + 2
    assert len(texts(store)) == 2 + 3 + 1
    kept = [key for key, node in store.nodes("episodes").items() if node.data["document"] == "a"]
    assert set(kept) <= before


async def test_a_removal_is_noticed_and_takes_the_windows_along(store) -> None:
    put(store, "a", *scenes("a", 6))
    put(store, "b", *scenes("b", 6))
    layer = EpisodesLayer(store, model(), EMBEDDER)
    await build([layer], store, quiet)
    with store.write() as change:
        change.remove_document("b")
    assert find_changes(layer, store).removed
    assert find_lag([layer], store) == {"episodes": 0}
    asked = model()
    await build([EpisodesLayer(store, asked, EMBEDDER)], store, quiet)
    assert asked.calls == []
    assert len(texts(store)) == 2
    assert not find_changes(layer, store)


async def test_a_window_that_fails_is_recorded_and_asked_for_again_with_no_other(store) -> None:
    keys = put(store, "a", *scenes("a", 9))

    def reply(given: SummaryIn) -> object:
        return BadReply("no JSON") if "Scene 4 of a." in given.texts else told(given)

    layer = EpisodesLayer(store, model(reply), EMBEDDER)
    (report,) = await build([layer], store, quiet)
    assert report.failed == dict.fromkeys(keys[3:6], "no JSON")
    assert store.layers()["episodes"] == {"nodes": 2, "failed": 3}
    assert find_lag([layer], store) == {}, "what could be made is usable"
    assert find_changes(layer, store).added == tuple(keys[3:6])
    assert not find_changes(layer, store).removed
    asked = model()
    (report,) = await build([EpisodesLayer(store, asked, EMBEDDER)], store, quiet)
    assert [call.given.texts for call in asked.calls] == [scenes("a", 9)[3:6]]
    assert (report.added, dict(report.failed)) == (1, {})
    assert len(texts(store)) == 3
    assert not find_changes(layer, store)


async def test_levels_summarise_summaries_and_a_failure_leaves_nothing_half_told(store) -> None:
    put(store, "a", *scenes("a", 12))  # windows of three: four of them; then of two: two; then one
    whole = EpisodesLayer(store, model(), EMBEDDER, levels=4)
    await build([whole], store, quiet)
    assert [len(texts(store, level, whole.name)) for level in range(4)] == [4, 2, 1, 0]
    first = texts(store, 0, whole.name)
    assert texts(store, 1, whole.name) == [f"<{first[0]}|{first[1]}>", f"<{first[2]}|{first[3]}>"]
    expected = list(export(store))
    with store.write() as change:
        change.remove_document("a")
    keys = put(store, "a", *scenes("a", 12))

    def reply(given: SummaryIn) -> object:
        return BadReply("no") if "Scene 1 of a." in given.texts else told(given)

    (report,) = await build([EpisodesLayer(store, model(reply), EMBEDDER, levels=4)], store, quiet)
    assert set(report.failed) == set(keys[:3])
    assert [len(texts(store, level, whole.name)) for level in range(3)] == [3, 1, 0], "nothing above the gap"
    asked = model()
    await build([EpisodesLayer(store, asked, EMBEDDER, levels=4)], store, quiet)
    assert len(asked.calls) == 3, "the window that failed, and the two above it"
    assert list(export(store)) == expected


async def test_a_failure_on_an_upper_level_is_recorded_too(store) -> None:
    keys = put(store, "a", *scenes("a", 6))

    def reply(given: SummaryIn) -> object:
        return BadReply("no") if given.texts[0].startswith("<") else told(given)

    layer = EpisodesLayer(store, model(reply), EMBEDDER, levels=2)
    (report,) = await build([layer], store, quiet)
    assert set(report.failed) == set(keys)
    assert texts(store, 1, layer.name) == []
    asked = model()
    await build([EpisodesLayer(store, asked, EMBEDDER, levels=2)], store, quiet)
    assert len(asked.calls) == 1
    assert len(texts(store, 1, layer.name)) == 1
    assert not find_changes(layer, store)


async def test_a_stride_makes_windows_overlap_and_leaves_no_passage_out(store) -> None:
    def sources(layer: EpisodesLayer) -> list[list[int]]:
        return list(store.sources(store.nodes(layer.name), layer.name).values())

    keys = put(store, "a", *scenes("a", 7))
    layer = EpisodesLayer(store, model(), EMBEDDER, stride=2)
    await build([layer], store, quiet)
    assert sources(layer) == [keys[0:3], keys[2:5], keys[4:7]]
    put(store, "b", *scenes("b", 7))
    layer = EpisodesLayer(store, model(), EMBEDDER, stride=100)
    await build([layer], store, quiet)
    assert {key for some in sources(layer) for key in some} == set(store.passages())


async def test_layers_of_different_settings_stand_side_by_side(store) -> None:
    put(store, "a", *scenes("a", 7))
    layers = [EpisodesLayer(store, model(), EMBEDDER, **some) for some in ({}, {"stride": 1}, {"levels": 2})]
    await build(layers[:1], store, quiet)
    assert [bool(find_lag([layer], store)) for layer in layers] == [False, True, True]
    await build(layers, store, quiet)
    assert find_lag(layers, store) == {}
    assert [layer.name for layer in layers] == ["episodes", "episodes:stride=1", "episodes:levels=2"]
    assert [len(store.nodes(layer.name)) for layer in layers] == [2, 5, 2 + 1]
    with store.write() as change:
        change.remove_document("a")
    assert [len(store.nodes(layer.name)) for layer in layers] == [0, 0, 0]


@pytest.mark.parametrize("wrong", [{"stride": -1}, {"levels": 0}])
def test_impossible_settings_are_refused(store, wrong) -> None:
    with pytest.raises(UsageError, match="levels to 1 or more"):
        EpisodesLayer(store, model(), EMBEDDER, **wrong)


@pytest.mark.parametrize("levels", [1, 3])
async def test_a_pure_function_of_its_passages(tmp_path, levels) -> None:
    numbers = iter(range(100))
    await check_layer(
        lambda store: [EpisodesLayer(store, model(), EMBEDDER, levels=levels)],
        lambda: SqliteStore.open(tmp_path / f"{next(numbers)}.tome"),
        EMBEDDER,
    )


@settings(max_examples=15, deadline=None)
@given(st.data())
async def test_any_history_gives_the_memory_of_its_outcome(tmp_path_factory, data) -> None:
    """Adding, replacing, removing and failing calls in any order: what counts is which documents are there."""
    folder = tmp_path_factory.mktemp("history")
    stores = [SqliteStore.open(folder / name) for name in ("a.tome", "b.tome")]
    steps = data.draw(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 14)), min_size=1, max_size=8))
    levels, stride = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([0, 1, 2]))
    dice = random.Random(data.draw(st.integers(0, 99)))
    there: dict[str, int] = {}

    def reply(given: SummaryIn) -> object:
        return BadReply("no") if dice.random() < 0.3 else told(given)

    for name, count in steps:
        if count and there.get(name) != count:
            put(stores[0], name, *scenes(name, count))
        elif not count and name in there:
            with stores[0].write() as change:
                change.remove_document(name)
        there = {**there, name: count}
        await build([EpisodesLayer(stores[0], model(reply), EMBEDDER, levels=levels, stride=stride)], stores[0], quiet)
        there = {name: count for name, count in there.items() if count}
    await build([EpisodesLayer(stores[0], model(), EMBEDDER, levels=levels, stride=stride)], stores[0], quiet)
    for name, count in there.items():
        put(stores[1], name, *scenes(name, count))
    layer = EpisodesLayer(stores[1], model(), EMBEDDER, levels=levels, stride=stride)
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
async def test_calls_are_reckoned_exactly_and_only_for_what_is_missing(store, levels) -> None:
    put(store, "a", *scenes("a", 26))
    put(store, "b", *scenes("b", 1))
    asked = model(lambda given: {"summary": " ".join(given.texts)[: sum(map(len, given.texts)) // 2]})
    layer = EpisodesLayer(store, asked, EMBEDDER, levels=levels)
    (foreseen,) = await estimate([layer], store)
    assert asked.calls == []
    with meter() as seen:
        await build([layer], store, quiet)
    assert foreseen.calls == seen.usage().total.calls == len(asked.calls)
    assert foreseen.input_tokens == pytest.approx(seen.usage().total.input_tokens, rel=0.1)
    assert (await estimate([layer], store))[0].calls == 0
    put(store, "c", *scenes("c", 6))
    (foreseen,) = await estimate([layer], store)
    assert foreseen.calls == 2 + (levels > 1)
