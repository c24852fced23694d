"""Pages: where they pause, one gist each, again only for what failed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.memories import EMBEDDER, build_layer, put_passages

from tomewise.errors import BadReply, UsageError
from tomewise.language.extractive import ExtractiveModel
from tomewise.memory.building import estimate, find_backlog
from tomewise.memory.pages import PagesLayer, cut_pages
from tomewise.store.lookups import read_sources, read_vectors
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


def make_layer(store, reply=shorten):
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
        make_layer(store, lambda given: reply if "day 3" in given.text else shorten(given)), store
    )
    assert (report.added, len(report.failed)) == (1, 2), "both passages of the page failed"
    layer = make_layer(store)
    report = await build_layer(layer, store)
    assert (report.added, report.failed) == (1, {})
    assert not find_backlog([layer], store).counts


async def test_the_estimate_is_what_the_build_takes(store):
    put_passages(store, "story", *(f"{LINE} On day {number}." for number in range(6)))
    layer = PagesLayer(store, ExtractiveModel(EMBEDDER), EMBEDDER, words=24)
    (foreseen,) = await estimate([layer], store)
    assert foreseen.calls == (await build_layer(layer, store)).added == 3
    assert foreseen.input_tokens > 0
    assert foreseen.output_tokens > 0
    assert layer.calls.most == 1
    with pytest.raises(UsageError, match="0 words"):
        PagesLayer(store, ExtractiveModel(EMBEDDER), EMBEDDER, words=0)
