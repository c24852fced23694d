"""`auto` over a tome: what it chooses by what is built and what is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.installed_plugin import forget_parts
from tests.stories import put_texts
from tests.test_ablations import EMBEDDER, make_model

from tomewise import plugins
from tomewise.errors import UnknownName, UsageError
from tomewise.language.extractive import ExtractiveModel
from tomewise.memory.building import build
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.answer import answer_question
from tomewise.systems.from_passages import hybrid
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Question

QUESTION = Question(text="Whom did Ada meet?")


@pytest.fixture
def store(tmp_path):
    made = SqlStore.open(tmp_path / "a.tome")
    put_texts(made, EMBEDDER, "story", *(f"Ada met Tom on day {number}." for number in range(6)))
    yield made
    made.close()


async def choose(store, question=QUESTION, model=None, **settings):
    """What was chosen, the answer, and the model."""
    kit = Kit(store, model or make_model(), EMBEDDER)
    answer = await answer_question(assemble("auto", kit, **settings), question)
    return [event.detail for event in answer.events if event.name == "chosen"], answer, kit.model


async def build_walk(store):
    await build(assemble("hipporag2", Kit(store, make_model(), EMBEDDER)).layers, store, lambda _: None)


async def test_it_needs_no_layer_and_says_which_build_would_help(store):
    assert assemble("auto", Kit(store, make_model(), EMBEDDER)).layers == ()
    chosen, answer, _ = await choose(store)
    assert [detail["chosen"] for detail in chosen] == ["hybrid", "hybrid+probe"]
    assert chosen[-1]["build_would_help"] == ["comorag", "hipporag2+probe", "raptor+probe"]
    assert not answer.resolved


async def test_it_goes_on_with_what_is_built_also_where_it_lags_but_not_for_a_strict_question(store):
    await build_walk(store)
    chosen, _, _ = await choose(store)
    assert (chosen[-1]["chosen"], chosen[-1]["build_would_help"]) == ("hipporag2+probe", ["comorag"])
    put_texts(store, EMBEDDER, "late", "Ada met Una on day 9.")
    chosen, answer, _ = await choose(store)
    assert (chosen[-1]["chosen"], answer.lagging.documents) == ("hipporag2+probe", ("late",))
    assert answer.lagging.system == "hipporag2+probe"
    chosen, answer, _ = await choose(store, replace(QUESTION, strict=True))
    assert (chosen[-1]["chosen"], answer.lagging) == ("hybrid+probe", None)


async def test_it_spends_one_call_where_one_is_enough(store):
    _, answer, model = await choose(store, model=ScriptedModel({"answer": [{"answer": "Tom"}]}))
    assert (answer.text, len(model.calls)) == ("Tom", 1)


async def test_a_limit_leaves_the_ladder_untouched(store):
    chosen, _, model = await choose(store, budget=10)
    assert [detail["chosen"] for detail in chosen] == ["hybrid", "none"]
    assert len(model.calls) == 1
    chosen, _, model = await choose(store, budget=10, ladder="hybrid+probe cycles=1")
    assert chosen[-1]["chosen"] == "hybrid+probe cycles=1"
    assert len(model.calls) <= 10


async def test_a_whole_text_question_goes_to_a_system_that_is_known_by_then(store, monkeypatch):
    forget_parts(monkeypatch)
    asked = Question(text="List all people whom Ada met, and how often.")
    chosen, _, _ = await choose(store, asked, whole="nobody_brings_this")
    assert (chosen[0]["chosen"], chosen[0]["passed_over"]) == ("none", {"nobody_brings_this": "not a system here"})
    plugins.register("systems", "reader_of_all", lambda kit: hybrid(kit))
    chosen, answer, _ = await choose(
        store, asked, ScriptedModel({"answer": [{"answer": "6"}]}), whole="nobody_brings_this, reader_of_all"
    )
    assert ([detail["chosen"] for detail in chosen], answer.text) == (["reader_of_all"], "6")


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"ladder": "hybird+probe"}, UnknownName, "did you mean 'hybrid'"),
        ({"ladder": "auto"}, UsageError, "other than auto"),
        ({"first": "comorag"}, UsageError, "without layers"),
    ],
)
def test_what_cannot_be_chosen_is_refused(store, settings, error, words):
    with pytest.raises(error, match=words):
        assemble("auto", Kit(store, make_model(), EMBEDDER), **settings)


@pytest.mark.parametrize(("text", "resolved"), [("Who met Tom on day 3?", True), ("Whom did Zoe meet?", False)])
async def test_quotations_without_a_model_are_enough(store, text, resolved):
    chosen, answer, _ = await choose(store, Question(text=text), ExtractiveModel(EMBEDDER))
    assert [detail["chosen"] for detail in chosen] == ["hybrid"]
    assert (bool(answer.statements), answer.resolved) == (True, resolved)
