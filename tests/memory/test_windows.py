"""Pages and episodes: where documents are cut, one text a window, again only for what failed, and estimates."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import floor, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.memories import EMBEDDER, build_layer, list_texts, put_passages, remove_documents

from tomewise.errors import BadReply
from tomewise.language.roles import SummaryIn
from tomewise.memory.building import find_backlog, find_changes
from tomewise.memory.episodes import EpisodesLayer, choose_window_size, cut_windows
from tomewise.memory.pages import PagesLayer, cut_pages
from tomewise.store.export import export
from tomewise.store.lookups import read_sources, read_vectors
from tomewise.store.records import BUILDS
from tomewise.testing import ScriptedModel
from tomewise.types import Passage, Place

LINE = "The keeper of the light at Skerry wrote it down."  # 8 words by the estimate of 4 bytes a token
OPEN = LINE.rstrip(".")


def make_passage(number: int, text: str, chapter: str = "") -> Passage:
    place = Place(chapter=(chapter,) if chapter else ())
    return Passage(id=f"p{number}", document="d", position=number, start=0, end=0, text=text, place=place)


@pytest.mark.parametrize(
    ("texts", "more", "pages"),
    [
        pytest.param([LINE] * 8, {}, [4, 4], id="as much as it may hold"),
        pytest.param([LINE] * 9, {}, [4, 4, 1], id="the rest"),
        pytest.param([LINE], {"words": 1}, [1], id="a passage is not cut"),
        pytest.param([], {}, [], id="nothing"),
        pytest.param([LINE] * 8, {"gaps": [" ", "\n\n", *[" "] * 5]}, [2, 4, 2], id="at a blank line first"),
        pytest.param([LINE] * 8, {"gaps": ["\n\n", *[" "] * 6]}, [4, 4], id="a pause so early: too short a page"),
        pytest.param([LINE] * 3 + [OPEN, LINE], {}, [3, 2], id="at the end of a sentence"),
        pytest.param([LINE] * 3 + [OPEN + "!”", LINE], {"words": 36}, [4, 1], id="at the end of what is quoted"),
        pytest.param(
            [LINE] * 8, {"gaps": [" ", " ", "\n\n", *[" "] * 4], "chapters": "aabbbbbb"}, [2, 4, 2], id="at a chapter"
        ),
        pytest.param([LINE, LINE, "# Two " + LINE, LINE, LINE], {}, [2, 3], id="at a heading"),
    ],
)
def test_pages_pause(texts, more, pages):
    passages = [
        make_passage(n, text, more["chapters"][n] if "chapters" in more else "") for n, text in enumerate(texts)
    ]
    gaps = more.get("gaps", [" "] * max(0, len(texts) - 1))
    assert [len(run) for run in cut_pages(passages, gaps, more.get("words", 32))] == pages


@given(st.lists(st.integers(0, 30), max_size=30), st.integers(1, 60))
def test_every_passage_is_on_one_page_and_no_page_is_too_long(sizes, words):
    passages = [make_passage(n, "four " * size) for n, size in enumerate(sizes)]
    runs = cut_pages(passages, [" "] * max(0, len(sizes) - 1), words)
    assert [place for run in runs for place in run] == list(range(len(sizes)))
    lengths = [sum(len(passages[place].text.encode()) for place in run) for run in runs]
    longest = [words * 4 / 0.7 + 4 * len(run) + 8 for run in runs]
    assert all(lengths[n] <= longest[n] for n, run in enumerate(runs) if len(run) > 1)


def shorten(given):
    return {"gist": f"Gist: {given.text[:40]}"}


def make_pages(store, reply=shorten):
    return PagesLayer(store, ScriptedModel({"shorten": reply}), EMBEDDER, words=24)


async def test_one_call_a_page_with_what_stands_before_it_and_other_documents_change_no_page(store):
    put_passages(store, "story", *(f"{LINE} On day {number}." for number in range(5)))
    model = ScriptedModel({"shorten": shorten})
    layer = PagesLayer(store, model, EMBEDDER, words=24)
    report = await build_layer(layer, store)
    assert (report.layer, report.added, len(model.calls)) == ("pages:words=24", 3, 3)
    first, second, _ = sorted((call.given for call in model.calls), key=lambda given: given.text[-3:])
    assert first.text == f"{LINE} On day 0.\n{LINE} On day 1."
    assert (first.before, second.before.endswith("On day 1.")) == ("", True)
    pages = store.nodes(layer.name)
    assert [len(keys) for keys in read_sources(store, pages, layer.name).values()] == [2, 2, 1]
    assert len(read_vectors(store, layer.name).keys) == 3
    assert ((await build_layer(layer, store)).added, len(model.calls)) == (0, 3)
    put_passages(store, "two", LINE + " Tom.", LINE)
    assert (await build_layer(layer, store)).added == 1
    assert pages.items() <= store.nodes(layer.name).items()


@pytest.mark.parametrize(
    "reply", [BadReply("no JSON"), {"gist": " "}, {"gist": "I'm sorry, but I cannot help with that."}], ids=str
)
async def test_a_page_whose_call_fails_is_recorded_and_asked_for_again(store, reply):
    put_passages(store, "story", *(f"{LINE} On day {number}." for number in range(4)))
    report = await build_layer(
        make_pages(store, lambda given: reply if "day 3" in given.text else shorten(given)), store
    )
    assert (report.added, len(report.failed)) == (1, 2), "both passages of the page failed"
    layer = make_pages(store)
    report = await build_layer(layer, store)
    assert (report.added, report.failed) == (1, {})
    assert not find_backlog([layer], store).counts


def list_scenes(name: str, count: int) -> list[str]:
    return [f"Scene {number} of {name}." for number in range(count)]


def join_texts(given: SummaryIn) -> dict[str, str]:
    return {"summary": f"<{'|'.join(given.texts)}>"}


def make_episodes(store, reply: Callable[[SummaryIn], object] = join_texts, **settings) -> EpisodesLayer:
    return EpisodesLayer(store, ScriptedModel({"narrate": reply}), EMBEDDER, **settings)


async def build_noting(store, **settings) -> list[list[str]]:
    """Build with a model that replies to everything. Returns the texts of each call."""
    model = ScriptedModel({"narrate": join_texts})
    report = await build_layer(EpisodesLayer(store, model, EMBEDDER, **settings), store)
    assert not report.failed
    return [call.given.texts for call in model.calls]


def fail_for(wanted: str, reason: str = "no") -> Callable[[SummaryIn], object]:
    return lambda given: BadReply(reason) if given.texts[0].startswith(wanted) else join_texts(given)


# ---------------------------------------------------------------- the windows


@pytest.mark.parametrize(
    ("passages", "size"),
    [
        *[(1, 2), (5, 2), (6, 3), (20, 3), (21, 5), (50, 5), (51, 8), (100, 8), (101, 10), (200, 10)],  # appendix B.2
        *[(201, 15), (300, 16), (1024, 20), (10**6, 20)],
        (492, 17),  # the released code counts passages before it stores them and gets 2
    ],
)
def test_the_window_size_follows_from_the_passages_of_the_document(passages: int, size: int) -> None:
    assert choose_window_size(passages) == size
    if passages > 200:
        assert size == min(20, max(10, floor(2 * log2(passages))))


@given(st.integers(1, 300), st.integers(2, 25), st.integers(1, 25))
def test_windows_cover_everything_in_order_and_no_window_contains_the_next(count: int, size: int, step: int):
    step = min(step, size)
    found = cut_windows(count, size, step)
    assert [window.start for window in found] == [step * number for number in range(len(found))]
    assert {place for window in found for place in window} == (set(range(count)) if count > 1 else set())
    assert all(len(window) == size for window in found[:-1])
    assert all(2 <= len(window) <= size + 1 for window in found[-1:])
    assert all(later.stop > earlier.stop for earlier, later in pairwise(found))


# ---------------------------------------------------------------- the layer


async def test_a_document_becomes_the_summaries_of_its_windows(store) -> None:
    passages = put_passages(store, "a", *list_scenes("a", 8))
    put_passages(store, "alone", "All there is.")
    model = ScriptedModel({"narrate": join_texts})
    layer = EpisodesLayer(store, model, EMBEDDER)
    assert (await build_layer(layer, store)).added == 3, "one passage has no windows"
    assert [call.given.texts for call in model.calls] == [list_scenes("a", 8)[at : at + 3] for at in (0, 3, 6)]
    assert [call.given.max_tokens for call in model.calls] == [500, 500, 500]
    nodes = store.nodes("episodes")
    assert [node.position for node in nodes.values()] == [0, 1, 2]
    assert {node.data["document"] for node in nodes.values()} == {"a"}
    assert list(read_sources(store, nodes, "episodes").values()) == [passages[:3], passages[3:6], passages[6:]]
    assert read_vectors(store, "episodes").keys.tolist() == sorted(nodes)
    assert store.notes(BUILDS)["episodes"]["taken"] == 9
    assert not find_changes(layer, store)


async def test_levels_summarise_summaries_and_no_window_rests_on_a_failed_one(store) -> None:
    put_passages(store, "a", *list_scenes("a", 12))  # four windows of three, then two of two, then one
    name = "episodes:levels=4"
    await build_noting(store, levels=4)
    assert [len(list_texts(store, name, level)) for level in range(4)] == [4, 2, 1, 0]
    first = list_texts(store, name, 0)
    assert list_texts(store, name, 1) == [f"<{first[0]}|{first[1]}>", f"<{first[2]}|{first[3]}>"]
    whole = list(export(store))
    for beginning, failed, left, missing in (("Scene 0 ", 3, [3, 1, 0], 3), ("<<", 12, [4, 2, 0], 1)):
        remove_documents(store, "a")
        keys = put_passages(store, "a", *list_scenes("a", 12))
        report = await build_layer(make_episodes(store, fail_for(beginning), levels=4), store)
        assert set(report.failed) == set(keys[:failed]), "a failure on an upper level counts for all below"
        assert [len(list_texts(store, name, level)) for level in range(3)] == left
        assert len(await build_noting(store, levels=4)) == missing, "the failed window and those above it"
        assert list(export(store)) == whole
        assert not find_changes(make_episodes(store, levels=4), store)
