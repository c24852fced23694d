"""`tomewise.Experiment`, and systems, metrics and judges from outside, as objects."""

from __future__ import annotations

import gc
import sys
from dataclasses import replace
from functools import partial

import pytest

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import MissingDependency, NotBuilt, UnknownName, UsageError
from tomewise.evaluate.digests import digest_recipe
from tomewise.evaluate.experiment import Experiment
from tomewise.evaluate.items import Judgement
from tomewise.evaluate.judges import Judge
from tomewise.evaluate.metrics import Metric
from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.recall.flat import Dense
from tomewise.systems.kit import Count, Kit, System, answer_once
from tomewise.systems.registry import Variant
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Document

REPLIES = {
    "answer": lambda given: {"answer": f"the lighthouse of {len(given.evidence)}"},
    "summarise": lambda _: {"summary": "Ada kept the light that night."},
}
LENGTH = Metric("length-of-answer", "answers", lambda outcome: len(outcome.prediction.answer) / 100)


async def praise(model, embedder, item, answer):
    return Judgement(score=0.75 if "2" in answer else 0.5)


async def return_number(model, embedder, item, answer):
    return 0.75


async def divide(model, embedder, item, answer):
    return 1 / 0


def mine(kit: Kit, *, limit: Count = 2, name: str = "") -> System:
    """Retrieve a few passages."""
    return answer_once(kit, Dense(kit.store, kit.embedder), limit=limit, context=500)


def with_tree(kit: Kit) -> System:
    layers = (TreeLayer(kit.store, kit.model, kit.embedder),)
    return answer_once(kit, Dense(kit.store, kit.embedder), layers, limit=2, context=500)


def no_system(kit: Kit) -> System:
    return kit  # type: ignore[return-value]


@pytest.fixture
def make(dataset, embedder, tmp_path):
    def make(*systems, metrics=("f1",), **given):
        settings = {"data": dataset, "model": ScriptedModel(REPLIES), "embedder": embedder, "out": tmp_path / "out"}
        return Experiment(given.pop("systems", systems or (mine,)), metrics=metrics, **{**settings, **given})

    return make


def test_it_runs_names_recipes_and_pairs(make):
    experiment = make("naive limit=1", mine, (mine, {"limit": 3}))
    results = experiment.run()
    assert results.systems == ("naive limit=1", "mine", "mine limit=3")
    assert [len(row.evidence) for row in results.rows if row.item.id == "q0"] == [1, 2, 3]
    assert set(experiment.table(baseline="mine", by=["hops"]).slices["hops"]) == {"1", "2"}


async def test_it_runs_inside_an_event_loop(make):
    assert make("naive").run().systems == ("naive",)
    assert (await make("naive").arun()).systems == ("naive",)


def test_own_metrics_and_judges_reach_table_significance_and_a_data_frame(make, dataset, monkeypatch):
    items = tuple(replace(dataset.items[n % 3], id=f"q{n:02}") for n in range(12))
    given = {"metrics": (LENGTH,), "judges": (Judge("praise-of-answer", praise),)}
    experiment = make(mine, "naive limit=1", data=replace(dataset, items=items), **given)
    with pytest.raises(UsageError, match="call `run` first"):
        experiment.to_frame()
    experiment.run()
    own, naive = experiment.table(baseline="mine").lines
    assert (own.cells["praise-of-answer"].value, naive.cells["praise-of-answer"].value) == (0.75, 0.5)
    assert naive.cells["praise-of-answer"].p_holm < 0.01
    assert own.cells["length-of-answer"].value == pytest.approx(0.19)
    pytest.importorskip("pandas")
    frame = experiment.to_frame()
    assert list(frame["id"][:12]) == [item.id for item in items], "a line for each system and question"
    assert frame["score:length-of-answer"].mean() == pytest.approx(0.19)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependency, match="needs pandas: pip install"):
        experiment.to_frame()


def test_defaults_come_from_the_data(make):
    assert {metric.name for metric in make(metrics=()).design.metrics} >= {"f1", "recall@5"}
    ranked = make("naive", metrics=(), retrieval_only=True)
    assert all(metric.of_ranking for metric in ranked.design.metrics)
    assert [item.id for item in make(questions=2).design.dataset.items] == ["q0", "q1"]


def test_documents_come_in_batches(make, dataset):
    texts = (f"Ada Marsh kept the lighthouse at Skerry for {number} years." for number in range(10))
    documents = tuple(replace(dataset.documents[0], id=f"d{number}", text=text) for number, text in enumerate(texts))
    many = replace(dataset, documents=documents)
    calls = [
        make("cam", data=many, model="extractive", batch=batch).run().builds["cam"]["calls"] for batch in (None, 4)
    ]
    assert calls[0] < calls[1], "each batch changes clusters, which are summarised again"


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"systems": ("naiv",)}, UnknownName, "did you mean 'naive'"),
        ({"systems": ()}, UsageError, "no system to evaluate"),
        ({"systems": "naive"}, UsageError, r"systems are given as a list: write \['naive'\]"),
        ({"systems": [mine, Variant("mine", "mine", {}, with_tree)]}, UsageError, "two different systems are named"),
        ({"metrics": ("accuracy",)}, UsageError, "lacks the gold"),
        ({"metrics": ("recall@500",)}, UsageError, "write 'recall@50'"),
        ({"retrieval_only": True}, UsageError, "f1 need"),
        ({"metrics": (replace(LENGTH, needs="answer"),)}, UsageError, "needs 'answer': name one of answers"),
        ({"metrics": (replace(LENGTH, name="f1"),)}, UsageError, "exists already: give yours another name"),
        ({"judges": (len,)}, UsageError, "is not a judge: pass a name"),
        ({"judges": (Judge("acc-l", praise),)}, UsageError, "exists already: give yours another name"),
        ({"batch": 0}, UsageError, "batches of 0 documents"),
        ({"questions": 0}, UsageError, "0 questions measures nothing"),
        ({"modle": "extractive"}, UsageError, "'modle' is not an argument: did you mean 'model'"),
    ],
)
def test_mistakes_are_named_before_anything_is_asked(make, given, error, message):
    with pytest.raises(error, match=message):
        make(**given)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"judges": (Judge("praise", return_number),)}, r"the judge 'praise' returned 0\.75"),
        ({"judges": (Judge("praise", divide),)}, r"the judge 'praise' failed on .* \(ZeroDivisionError: division by"),
        ({"metrics": (Metric("praise", "answers", lambda _: "much"),)}, "the metric 'praise' returned 'much'"),
        (
            {"metrics": (Metric("praise", "answers", lambda _: 1 / 0),)},
            "the metric 'praise' failed .* .ZeroDivision",
        ),
    ],
)
async def test_an_own_metric_or_judge_that_fails_is_named_at_the_first_question(evaluate, parts, message):
    with pytest.raises(UsageError, match=message):
        await evaluate("naive", **parts)
    gc.collect()  # which warns of what was never awaited


def test_keys_hold_the_code_of_a_recipe(experiment):
    made = experiment("naive", mine)
    variants = (*made.variants, Variant("mine", "mine", {}, with_tree))
    assert len({made.make_key(variant, made.dataset.items[0], "", "") for variant in variants}) == 3
    assert digest_recipe(mine) == digest_recipe(mine) != digest_recipe(with_tree)


@pytest.fixture
def tome(here):
    with Tome.open(here / "m.tome", model=ScriptedModel(REPLIES), embedder=HashEmbedder()) as tome:
        tome.add(*(Document(id=f"d{n}", text=f"Ada kept the light of tower {n}.") for n in range(4)))
        yield tome


def test_a_recipe_answers_under_its_name(tome):
    answer = tome.ask("Who kept the light?", system=mine)
    assert (answer.text, answer.system, len(answer.evidence)) == ("the lighthouse of 2", "mine", 2)
    answer = tome.ask("Who kept the light?", system=partial(mine, limit=1, name="own"))
    assert (answer.system, len(answer.evidence)) == ("mine limit=1 name=own", 1)
    assert [answer.system for answer in tome.ask_many(["Who?", "Where?"], system=mine)] == ["mine", "mine"]


def test_a_recipe_with_layers_is_built_first(tome):
    with pytest.raises(NotBuilt, match=r"with_tree needs layers.*: tree.*call `Tome.build` with its recipe"):
        tome.ask("Who?", system=with_tree)
    with pytest.raises(NotBuilt, match="this System needs layers"):
        tome.ask("Who?", system=with_tree(tome.kit))
    assert "tree" in {estimate.layer for estimate in tome.memory.estimate(with_tree).layers}
    tome.build(with_tree)
    assert tome.ask("Who?", system=with_tree).text.startswith("the lighthouse of ")


def test_a_system_answers_and_cannot_be_built(tome):
    answer = tome.ask("Who?", system=mine(tome.kit, limit=3))
    assert (answer.system, len(answer.evidence)) == ("Once (a System)", 3)
    with pytest.raises(UsageError, match="a System is wired already"):
        tome.build(mine(tome.kit))
    with pytest.raises(UsageError, match="is not a system to choose"):
        tome.build(3)


class Talking:
    async def run(self, question):
        yield "Ada"


@pytest.mark.parametrize(
    ("choose", "error", "message"),
    [
        (lambda kit: partial(mine, depth=1), UnknownName, "mine has no setting 'depth'"),
        (lambda kit: no_system, UsageError, "the recipe no_system returned"),
        (lambda kit: System(loop=Talking()), UsageError, "Talking yielded 'Ada': a loop yields events"),
    ],
)
def test_what_a_system_cannot_be_asked_is_named(tome, choose, error, message):
    with pytest.raises(error, match=message):
        tome.ask("Who?", system=choose(tome.kit))
