"""`auto` over a tome: what it chooses by what is built and what is known."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from tests.stories import put_texts
from tests.test_ablations import EMBEDDER, make_model

from tomewise.calls import read_calls
from tomewise.language.extractive import ExtractiveModel
from tomewise.memory.building import build
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems import auto
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Question

QUESTION = Question(text="Whom did Ada meet?")


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(auto, "_SHORT", 0)  # no text is read at once
    monkeypatch.setattr(auto, "_FAIR", 0)
    made = SqlStore.open(tmp_path / "a.tome")
    put_texts(made, EMBEDDER, "story", *(f"Ada met Tom on day {number}." for number in range(6)))
    yield made
    made.close()


async def choose(store, question=QUESTION, model=None):
    """What was chosen, the answer, and the model."""
    kit = Kit(store, model or make_model(), EMBEDDER)
    answer = await answer_question(assemble("auto", kit), question)
    return [event.detail for event in answer.events if event.name == "chosen"], answer, kit.model


async def build_system(store, name):
    await build(assemble(name, Kit(store, make_model(), EMBEDDER)).layers, store, lambda _: None)


async def test_it_needs_no_layer_and_says_which_build_would_help(store):
    assert assemble("auto", Kit(store, make_model(), EMBEDDER)).layers == ()
    chosen, answer, _ = await choose(store)
    assert [detail["chosen"] for detail in chosen] == ["hybrid", "investigate", "passages"]
    assert [detail["build_would_help"] for detail in chosen] == [["associative"], [], ["comorag"]]
    assert not answer.resolved


async def test_it_uses_what_is_built_also_where_it_lags_but_not_for_a_strict_question(store):
    await build_system(store, "associative")
    chosen, _, _ = await choose(store)
    assert [detail["chosen"] for detail in chosen] == ["associative", "investigate", "graph"]
    put_texts(store, EMBEDDER, "late", "Ada met Una on day 9.")
    chosen, answer, _ = await choose(store)
    assert (chosen[-1]["chosen"], answer.lagging.documents) == ("graph", ("late",))
    assert answer.lagging.system == "associative"
    chosen, answer, _ = await choose(store, replace(QUESTION, current=True))
    assert ([detail["chosen"] for detail in chosen], answer.lagging) == (["hybrid", "investigate", "passages"], None)


async def test_investigate_searches_all_that_is_built(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)  # it takes seconds to import
    await build_system(store, "comorag")
    chosen, answer, model = await choose(store)
    assert (chosen[-1]["chosen"], chosen[-1]["build_would_help"]) == ("graph, tree, episodes", [])
    assert {event.detail["layer"] for event in answer.events if event.name == "recalled"} == {
        "graph",
        "tree",
        "episodes",
    }
    assert len(model.calls) <= read_calls(assemble("investigate", Kit(store, model, EMBEDDER)).loop).most + 1


async def test_it_spends_one_call_where_one_is_enough(store):
    _, answer, model = await choose(store, model=ScriptedModel({"answer": [{"answer": "Tom", "supported": "full"}]}))
    assert (answer.text, len(model.calls)) == ("Tom", 1)


@pytest.mark.parametrize(("text", "resolved"), [("Who met Tom on day 3?", True), ("Whom did Zoe meet?", False)])
async def test_quotations_without_a_model_are_enough(store, text, resolved):
    chosen, answer, _ = await choose(store, Question(text=text), ExtractiveModel(EMBEDDER))
    assert [detail["chosen"] for detail in chosen] == ["hybrid"]
    assert (bool(answer.statements), answer.resolved) == (True, resolved)
