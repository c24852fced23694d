"""Recipes and systems that come from outside, as objects."""

from __future__ import annotations

import pytest

from tomewise import plugins
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import NotBuilt, UnknownName, UsageError
from tomewise.evaluate.digests import digest_recipe
from tomewise.evaluate.judges import Judge, Judgement
from tomewise.evaluate.metrics import Metric
from tomewise.evaluate.results import tabulate
from tomewise.evaluate.running import run
from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.recall.flat import Dense
from tomewise.systems.kit import Count, Kit, System, answer_once
from tomewise.systems.registry import Variant, choose_variants
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Document

REPLIES = {"answer": lambda _: {"answer": "Ada"}, "summarise": lambda _: {"summary": "Ada kept the light that night."}}


def mine(kit: Kit, *, limit: Count = 2, name: str = "") -> System:
    """Retrieve a few passages."""
    return answer_once(kit, Dense(kit.store, kit.embedder), limit, 500, selection="as found")


def with_tree(kit: Kit) -> System:
    return answer_once(kit, Dense(kit.store, kit.embedder), 2, 500, (TreeLayer(kit.store, kit.model, kit.embedder),))


def no_system(kit: Kit) -> System:
    return kit  # type: ignore[return-value]


@pytest.fixture
def tome(here):
    tome = Tome.open(here / "m.tome", model=ScriptedModel(REPLIES), embedder=HashEmbedder())
    with tome:
        tome.add(*(Document(id=f"d{n}", text=f"Ada kept the light of tower {n}.") for n in range(4)))
        yield tome


def test_a_recipe_answers_under_its_name(tome):
    answer = tome.ask("Who kept the light?", system=mine)
    assert (answer.text, answer.system, len(answer.evidence)) == ("Ada", "mine", 2)
    answer = tome.ask("Who kept the light?", system=mine, settings={"limit": 1, "name": "own"})
    assert (answer.system, len(answer.evidence)) == ("mine limit=1 name=own", 1)
    assert [answer.system for answer in tome.ask_many(["Who?", "Where?"], system=mine)] == ["mine", "mine"]
    with pytest.raises(UsageError, match="mine: limit must be a valid integer"):
        tome.ask("Who?", system=mine, settings={"limit": True})
    with pytest.raises(UnknownName, match="mine has no setting 'depth'"):
        tome.ask("Who?", system=mine, settings={"depth": 1})


def test_a_recipe_with_layers_is_built_first(tome):
    with pytest.raises(NotBuilt, match=r"with_tree needs layers.*: tree.*call `Tome.build` with its recipe"):
        tome.ask("Who?", system=with_tree)
    assert "tree" in {estimate.layer for estimate in tome.estimate(with_tree)}
    tome.build(with_tree)
    assert tome.ask("Who?", system=with_tree).text == "Ada"


def test_a_system_answers(tome):
    answer = tome.ask("Who?", system=mine(tome.kit, limit=3))
    assert (answer.system, len(answer.evidence)) == ("Once (a System)", 3)
    with pytest.raises(UsageError, match="takes no settings"):
        tome.ask("Who?", system=mine(tome.kit), settings={"limit": 1})
    with pytest.raises(NotBuilt, match="this System needs layers"):
        tome.ask("Who?", system=with_tree(tome.kit))


@pytest.mark.parametrize("choice", [3, ["naive"]])
def test_what_is_no_system_is_refused(tome, choice):
    with pytest.raises(UsageError, match="is not a system to choose"):
        tome.build(choice)


def test_a_system_cannot_be_built(tome):
    with pytest.raises(UsageError, match="a System is wired already"):
        tome.build(mine(tome.kit))


def test_a_recipe_that_returns_no_system_is_named(tome):
    with pytest.raises(UsageError, match="the recipe no_system returned"):
        tome.ask("Who?", system=no_system)


async def test_an_experiment_takes_names_and_recipes(experiment, tmp_path):
    made = experiment((), variants=("naive limit=1", mine))
    assert [variant.name for variant in made.variants] == ["naive limit=1", "mine"]
    results = await run(made, tmp_path)
    assert results.systems == ("naive limit=1", "mine")
    assert not [row for row in results.rows if row.error]
    assert [len(row.evidence) for row in results.rows if row.system == "mine"] == [2, 2, 2, 1]


def test_keys_hold_the_code_of_a_recipe(experiment):
    made = experiment((), variants=("naive", mine))
    keys = {
        made.make_key(variant, made.dataset.items[0], "", "")
        for variant in (*made.variants, Variant("mine", "mine", {}, with_tree))
    }
    assert len(keys) == 3
    assert digest_recipe(mine) == digest_recipe(mine) != digest_recipe(with_tree)


def test_two_systems_of_one_name_are_refused():
    with pytest.raises(UsageError, match="two different systems are named 'mine'"):
        choose_variants([mine, Variant("mine", "mine", {}, with_tree)])


async def test_an_own_metric_or_judge_that_fails_is_named_at_the_first_question(experiment, tmp_path, monkeypatch):
    monkeypatch.setattr(plugins, "_registered", {})

    async def return_number(model, embedder, item, answer):
        return 0.75

    async def divide(model, embedder, item, answer):
        return 1 / 0

    for number, (part, words) in enumerate(
        (
            (Judge("praise", return_number), r"the judge 'praise' returned 0\.75"),
            (Judge("praise", divide), r"the judge 'praise' failed on .* \(ZeroDivisionError: division by zero\)"),
            (Metric("praise", "answers", lambda _: "much"), "the metric 'praise' returned 'much'"),
            (Metric("praise", "answers", lambda _: 1 / 0), r"the metric 'praise' failed on .* \(ZeroDivisionError"),
        )
    ):
        parts = {"judges": (part,)} if isinstance(part, Judge) else {"metrics": (part,)}
        with pytest.raises(UsageError, match=words):
            await run(experiment(("naive",), **parts), tmp_path / str(number))


async def test_own_metrics_and_judges_work_to_the_end(experiment, tmp_path):
    async def praise(model, embedder, item, answer):
        return Judgement(score=0.75)

    metric = Metric("length-of-answer", "answers", lambda outcome: min(1.0, len(outcome.prediction.answer) / 100))
    made = experiment(("naive",), metrics=(metric,), judges=(Judge("praise-of-answer", praise),))
    (line,) = tabulate(await run(made, tmp_path)).lines
    assert line.cells["length-of-answer"].value == pytest.approx(0.14)
    assert line.cells["praise-of-answer"].value == 0.75


@pytest.mark.parametrize("own", ["metrics", "judges"])
async def test_an_own_metric_under_a_name_of_ours_is_refused(experiment, tmp_path, own):
    part = Metric("f1", "answers", lambda _: 1.0) if own == "metrics" else Judge("acc-l", lambda *_: None)
    with pytest.raises(UsageError, match="exists already: give yours another name"):
        await run(experiment(("naive",), **{own: (part,)}), tmp_path)


def test_a_loop_that_yields_anything_else_is_named(tome):
    class Talking:
        async def run(self, question):
            yield "Ada"

    with pytest.raises(UsageError, match="Talking yielded 'Ada': a loop yields events"):
        tome.ask("Who?", system=System(loop=Talking()))
