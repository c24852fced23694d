"""`tomewise.Experiment`, from systems, data and metrics to a table and a data frame."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from io import StringIO

import pytest

import tomewise
from tomewise.errors import MissingDependency, UnknownName, UsageError
from tomewise.evaluate.experiment import Experiment
from tomewise.evaluate.judges import Judge, Judgement
from tomewise.evaluate.metrics import Metric
from tomewise.evaluate.report import write_csv, write_markdown
from tomewise.recall.flat import Dense
from tomewise.systems.kit import Count, Kit, System, answer_once
from tomewise.testing.scripted import ScriptedModel

ANSWER = {"answer": lambda given: {"answer": f"the lighthouse of {len(given.evidence)}"}}
LENGTH = Metric("length-of-answer", "answers", lambda outcome: len(outcome.prediction.answer) / 100)


async def praise(model, embedder, item, answer):
    return Judgement(score=0.75 if "2" in answer else 0.5)


PRAISE = Judge("praise-of-answer", praise)


def mine(kit: Kit, *, limit: Count = 2) -> System:
    """Retrieve a few passages."""
    return answer_once(kit, Dense(kit.store, kit.embedder), limit, 500, selection="as found")


@pytest.fixture
def make(dataset, embedder, tmp_path):
    def make(systems=("naive limit=1 selection='as found'", mine, (mine, {"limit": 3})), metrics=("f1",), **given):
        settings = {"data": dataset, "model": ScriptedModel(ANSWER), "embedder": embedder, "out": tmp_path / "out"}
        return Experiment(systems, metrics=metrics, **{**settings, **given})

    return make


def test_it_runs_names_recipes_and_pairs(make):
    experiment = make()
    results = experiment.run()
    assert results.systems == ("naive limit=1 'selection=as found'", "mine", "mine limit=3")
    assert [len(row.evidence) for row in results.rows if row.item.id == "q0"] == [1, 2, 3]
    assert results is experiment.results
    table = experiment.table(baseline="mine", by=["hops"])
    assert [line.system for line in table.lines] == list(results.systems)
    assert set(table.slices["hops"]) == {"1", "2"}


async def test_it_runs_inside_an_event_loop(make):
    assert make(("naive",)).run().systems == ("naive",)
    assert (await make(("naive",)).arun()).systems == ("naive",)


def test_a_second_run_asks_nothing(make):
    make().run()
    model = ScriptedModel({})
    assert not [row for row in make(model=model).run().rows if row.error]
    assert not model.calls


def test_own_metrics_and_judges_reach_table_significance_and_csv(make, dataset):
    items = tuple(replace(dataset.items[n % 3], id=f"q{n:02}") for n in range(12))
    experiment = make(
        (mine, "naive limit=1 selection='as found'"),
        metrics=(LENGTH,),
        judges=(PRAISE,),
        data=replace(dataset, items=items),
    )
    experiment.run()
    own, naive = (table := experiment.table(baseline="mine")).lines
    assert (own.cells["praise-of-answer"].value, naive.cells["praise-of-answer"].value) == (0.75, 0.5)
    assert naive.cells["praise-of-answer"].p_holm < 0.01
    assert own.cells["length-of-answer"].value == pytest.approx(0.19)
    first, _ = csv.DictReader(StringIO(write_csv(table)))
    assert float(first["length-of-answer"]) == pytest.approx(0.19)
    assert first["praise-of-answer"] == "0.75"
    assert "praise-of-answer" in write_markdown(table)


def test_a_data_frame_has_a_line_for_each_system_and_question(make):
    experiment = make((mine,), metrics=(LENGTH,))
    with pytest.raises(UsageError, match="call `run` first"):
        experiment.to_frame()
    experiment.run()
    pytest.importorskip("pandas")
    frame = experiment.to_frame()
    assert list(frame["id"]) == ["q0", "q1", "q2", "q3"]
    assert frame["score:length-of-answer"].mean() == pytest.approx(0.19)


def test_without_pandas_the_remedy_is_named(make, monkeypatch):
    experiment = make((mine,))
    experiment.run()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependency, match="needs pandas: pip install"):
        experiment.to_frame()


def test_defaults_come_from_the_data(make):
    assert {metric.name for metric in make(metrics=()).design.metrics} >= {"f1", "recall@5"}
    ranked = make(("naive",), metrics=(), retrieval_only=True)
    assert all(metric.of_ranking for metric in ranked.design.metrics)
    assert [item.id for item in make(questions=2).design.dataset.items] == ["q0", "q1"]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"systems": ("naiv",)}, UnknownName, "did you mean 'naive'"),
        ({"systems": ((mine, {"depth": 1}),)}, UnknownName, "mine has no setting 'depth'"),
        ({"systems": ()}, UsageError, "no system to evaluate"),
        ({"metrics": ("f2",)}, UnknownName, "did you mean 'f1'"),
        ({"metrics": ("span-recall@5",)}, UsageError, "lacks the gold"),
        ({"judges": ("acc",)}, UnknownName, "unknown judge 'acc'"),
        ({"systems": "naive"}, UsageError, r"systems are given as a list: write \['naive'\]"),
        ({"metrics": (len,)}, UsageError, "is not a metric: pass a name"),
        (
            {"metrics": (Metric("own", "answer", lambda _: 1.0),)},
            UsageError,
            "'own' needs 'answer': name one of answers",
        ),
        ({"judges": (len,)}, UsageError, "is not a judge: pass a name"),
        ({"questions": 0}, UsageError, "0 questions measures nothing"),
        ({"modle": "extractive"}, UsageError, "'modle' is not an argument: did you mean 'model'"),
    ],
)
def test_mistakes_are_named_before_anything_is_asked(make, given, error, message):
    with pytest.raises(error, match=message):
        make(**given)


def test_the_package_exports_it():
    assert tomewise.Experiment is Experiment
