"""Pages: where they pause, one gist each, again only for what failed."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stories import put_texts

from tomewise.errors import BadReply, UsageError
from tomewise.language.extractive import ExtractiveModel
from tomewise.memory.building import build, estimate, find_backlog
from tomewise.memory.pages import PagesLayer, cut_pages
from tomewise.store.lookups import read_sources, read_vectors
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel, check_layer
from tomewise.types import Passage, Place, Progress

EMBEDDER = HashEmbedder(32)
LINE = "The keeper of the light at Skerry wrote it down."  # 8 words by the estimate of 4 bytes a token


def quiet(_: Progress) -> None:
    pass


def make_passage(number: int, text: str, chapter: str = "") -> Passage:
    place = Place(chapter=(chapter,) if chapter else ())
    return Passage(id=f"p{number}", document="d", position=number, start=0, end=0, text=text, place=place)


def cut(texts, gaps=None, words=32, chapters=()):
    passages = [make_passage(n, text, chapters[n] if chapters else "") for n, text in enumerate(texts)]
    return [len(run) for run in cut_pages(passages, gaps or [" "] * (len(texts) - 1), words)]


def test_pages_hold_as_much_as_they_may():
    assert cut([LINE] * 8) == [4, 4]
    assert cut([LINE] * 9) == [4, 4, 1]
    assert cut([LINE], words=1) == [1], "a passage is not cut"
    assert cut([]) == []


def test_a_page_pauses_at_a_blank_line_before_the_end_of_a_sentence():
    assert cut([LINE] * 8, [" ", "\n\n", " ", " ", " ", " ", " "])[0] == 2
    assert cut([LINE] * 8, ["\n\n", " ", " ", " ", " ", " ", " "])[0] == 4, "a pause so early makes a page too short"
    assert cut([LINE, LINE, LINE, LINE.rstrip("."), LINE])[0] == 3
    assert cut([LINE, LINE, LINE, LINE.rstrip(".") + "!”", LINE], words=36)[0] == 4


def test_a_page_pauses_before_a_chapter_first_of_all():
    assert cut([LINE] * 8, [" ", " ", "\n\n", " ", " ", " ", " "], chapters="aabbbbbb")[0] == 2
    assert cut([LINE, LINE, "# Two " + LINE, LINE, LINE])[0] == 2


@given(st.lists(st.integers(0, 30), max_size=30), st.integers(1, 60))
def test_every_passage_is_on_one_page_and_no_page_is_too_long(sizes, words):
    passages = [make_passage(n, "four " * size) for n, size in enumerate(sizes)]
    runs = cut_pages(passages, [" "] * max(0, len(sizes) - 1), words)
    assert [place for run in runs for place in run] == list(range(len(sizes)))
    lengths = [sum(len(passages[place].text.encode()) for place in run) for run in runs]
    longest = [words * 4 / 0.7 + 4 * len(run) + 8 for run in runs]
    assert all(lengths[n] <= longest[n] for n, run in enumerate(runs) if len(run) > 1)


def make_model(reply=lambda given: {"gist": f"Gist: {given.text[:40]}"}):
    return ScriptedModel({"shorten": reply})


@pytest.fixture
def store(tmp_path):
    made = SqlStore.open(tmp_path / "a.tome")
    yield made
    made.close()


async def test_one_call_a_page_with_what_stands_before_it(store):
    put_texts(store, EMBEDDER, "story", *(f"{LINE} On day {number}." for number in range(5)))
    model = make_model()
    (report,) = await build([PagesLayer(store, model, EMBEDDER, words=24)], store, quiet)
    assert (report.layer, report.added, len(model.calls)) == ("pages:words=24", 3, 3)
    first, second, _ = sorted((call.given for call in model.calls), key=lambda given: given.text[-3:])
    assert first.text == f"{LINE} On day 0.\n{LINE} On day 1."
    assert (first.before, second.before.endswith("On day 1.")) == ("", True)
    pages = store.nodes("pages:words=24")
    assert [len(keys) for keys in read_sources(store, pages, "pages:words=24").values()] == [2, 2, 1]
    assert len(read_vectors(store, "pages:words=24").keys) == 3
    (again,) = await build([PagesLayer(store, model, EMBEDDER, words=24)], store, quiet)
    assert (again.added, len(model.calls)) == (0, 3)


@pytest.mark.parametrize("words", [600, 3])
async def test_it_is_a_pure_function_of_its_documents(tmp_path, words):
    made = []

    def stores():
        made.append(SqlStore.open(tmp_path / f"{len(made)}.tome"))
        return made[-1]

    await check_layer(lambda store: [PagesLayer(store, make_model(), EMBEDDER, words=words)], stores, EMBEDDER)
    for store in made:
        store.close()


@pytest.mark.parametrize(
    "reply", [BadReply("no JSON"), {"gist": " "}, {"gist": "I'm sorry, but I cannot help with that."}]
)
async def test_a_page_whose_call_fails_is_recorded_and_asked_for_again(store, reply):
    put_texts(store, EMBEDDER, "story", *(f"{LINE} On day {number}." for number in range(4)))

    def play(given):
        return reply if "day 3" in given.text else {"gist": given.text[:40]}

    (report,) = await build([PagesLayer(store, make_model(play), EMBEDDER, words=24)], store, quiet)
    assert (report.added, len(report.failed)) == (1, 2), "both passages of the page failed"
    layer = PagesLayer(store, make_model(), EMBEDDER, words=24)
    (report,) = await build([layer], store, quiet)
    assert (report.added, report.failed) == (1, {})
    assert not find_backlog([layer], store).counts


async def test_the_estimate_is_what_the_build_takes(store):
    put_texts(store, EMBEDDER, "story", *(f"{LINE} On day {number}." for number in range(6)))
    layer = PagesLayer(store, ExtractiveModel(EMBEDDER), EMBEDDER, words=24)
    (estimated,) = await estimate([layer], store)
    (report,) = await build([layer], store, quiet)
    assert estimated.calls == report.added == 3
    assert estimated.input_tokens > 0
    assert estimated.output_tokens > 0
    assert layer.calls.most == 1


def test_pages_without_words_are_refused(store):
    with pytest.raises(UsageError, match="0 words"):
        PagesLayer(store, make_model(), EMBEDDER, words=0)


async def test_other_documents_do_not_change_a_page(store):
    put_texts(store, EMBEDDER, "one", LINE, LINE + " Ada.")
    layer = PagesLayer(store, make_model(), EMBEDDER, words=24)
    await build([layer], store, quiet)
    before = await asyncio.to_thread(store.nodes, layer.name)
    put_texts(store, EMBEDDER, "two", LINE + " Tom.", LINE)
    await build([layer], store, quiet)
    after = store.nodes(layer.name)
    assert before.items() <= after.items()
    assert len(after) == 2
