"""What an evaluation measures of an answer: its ranking, what it saw and cited, and how sure it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tomewise.errors import UsageError
from tomewise.evaluate.items import Item, Outcome, Prediction, RankedPassage, Span
from tomewise.evaluate.metrics import choose_metrics, find_metric
from tomewise.evaluate.results import tabulate
from tomewise.evaluate.risk import LEVELS, Risk, measure_risks
from tomewise.evaluate.rows import Row
from tomewise.evaluate.running import run
from tomewise.systems.kit import System
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Answer, Citation, Evidence, Question

QUESTION = Question(text="Which lighthouse did Ada Marsh keep?")
GOLD = Item(id="q", question=QUESTION, answers=("a",), supporting=("d1", "d2"))


class FixedSystem:
    """A loop and a retriever that give what the functions `find` and `answer` make of all passages."""

    def __init__(self, store, find, answer=None):
        self.store, self.find, self.answer, self.questions = store, find, answer, []

    async def retrieve(self, query, limit, *, within=None):
        return self.find(list(self.store.passages().values()))

    async def run(self, question):
        self.questions.append(question)
        yield self.answer(list(self.store.passages().values()))


@pytest.fixture
def fix_systems(monkeypatch):
    """Makes every system such a system."""

    def replace_systems(find, answer=None):
        systems = []

        def assemble(name, kit, **settings):
            systems.append(FixedSystem(kit.store, find, answer))
            return System(loop=systems[-1], retriever=systems[-1])

        monkeypatch.setattr("tomewise.evaluate.memories.assemble", assemble)
        return systems

    return replace_systems


def summary(passages, score=0.9):
    sources = tuple(passage.id for passage in passages)
    return Evidence(node="s", layer="tree", text="about all", score=score, sources=sources)


def direct_hit(passage, score):
    return Evidence(node=passage.id, layer="passages", text=passage.text, score=score, sources=(passage.id,))


async def test_a_summary_does_not_push_down_a_passage_found_by_itself(experiment, tmp_path, fix_systems, embedder):
    """The first hit is a summary of three passages; the second is the fourth passage, by itself, and better."""

    def find(passages):
        below = [passage for passage in passages if passage.document != "d3"]
        alone = [passage for passage in passages if passage.document == "d3"]
        return [summary(below), *(direct_hit(passage, 0.8) for passage in alone)]

    fix_systems(find)
    made = experiment(("naive",), retrieval_only=True, metrics=(find_metric("recall@2"),))
    rows = (await run(made, tmp_path)).rows
    question = made.dataset.items[0].question.text
    texts = {document.id: document.text for document in made.dataset.documents}
    below = embedder.embed([texts[name] for name in ("d0", "d1", "d2")]) @ embedder.embed([question])[0]
    assert below.max() < 0.8
    order = [f"d{number}" for number in np.argsort(-below, kind="stable")]
    assert order[0] == "d0"
    assert [passage.document for passage in rows[0].prediction.ranked] == ["d3", *order]


async def test_evidence_of_one_passage_each_keeps_its_order(experiment, tmp_path, fix_systems):
    fix_systems(lambda passages: [direct_hit(passage, 1.0) for passage in reversed(passages)])
    made = experiment(("naive",), retrieval_only=True, metrics=(find_metric("recall@2"),))
    (row, *_) = (await run(made, tmp_path)).rows
    assert [passage.document for passage in row.prediction.ranked] == ["d3", "d2", "d1", "d0"]


async def test_answers_are_forced_and_say_what_they_rest_on(experiment, tmp_path, fix_systems):
    def answer(passages):
        first, second = passages[0], passages[-1]
        cited = Citation(document=second.document, passage=second.id, position=0, start=0, end=4, quote=second.text[:4])
        shown = (direct_hit(first, 1.0), summary(passages), replace(direct_hit(second, 0.5), layer="facts"))
        return Answer(text="a", evidence=shown, citations=(cited,), supported="partly", missing="the year", forced=True)

    systems = fix_systems(lambda passages: [], answer)
    metrics = tuple(map(find_metric, ("em", "seen", "citation-precision", "citation-recall")))
    results = await run(experiment(("naive",), metrics=metrics, model=ScriptedModel({})), tmp_path)
    assert all(question.force for system in systems for question in system.questions)
    row = results.rows[0]
    assert not row.item.question.force
    assert (row.supported, row.missing, row.forced) == ("partly", "the year", True)
    assert [passage.document for passage in row.prediction.shown] == ["d0"]
    assert [passage.document for passage in row.prediction.cited] == ["d3"]
    cells = tabulate(results).lines[0].cells
    assert cells["seen"].value == 0.5  # of the first question, and of the last, which has one document
    assert cells["citation-precision"].value == cells["citation-recall"].value == 0.25


def place(document: str, start: int = 0, end: int = 10) -> RankedPassage:
    return RankedPassage(id=f"p-{document}-{start}", document=document, start=start, end=end)


@pytest.mark.parametrize(
    ("name", "documents", "spans"),
    [("seen", 0.5, 1 / 3), ("citation-precision", 1 / 3, 2 / 3), ("citation-recall", 0.5, 2 / 3)],
)
def test_what_was_seen_and_cited_against_documents_and_spans(name, documents, spans):
    metric = find_metric(name)
    shown = (place("d1", 0, 5), place("d3"))
    cited = (place("d2", 90, 95), place("d3"), place("d9", 0, 3))
    prediction = Prediction(answer="a", shown=shown, cited=cited)
    assert metric.score(Outcome(GOLD, prediction)) == pytest.approx(documents)
    gold = (
        Span(document="d1", start=4, end=6),
        Span(document="d3", start=9, end=20),
        Span(document="d9", start=2, end=9),
    )
    seen = replace(prediction, shown=(place("d1", 0, 5), place("d3", 30, 40)))
    assert metric.score(Outcome(replace(GOLD, spans=gold), seen)) == pytest.approx(spans)
    assert metric.score(Outcome(GOLD, Prediction())) == 0.0
    assert not metric.applies(replace(GOLD, supporting=()))


def test_they_are_default_metrics_but_not_of_retrieval_alone(experiment, dataset):
    from tomewise.evaluate.design import check_design, select_ranking_metrics

    defaults = choose_metrics(dataset)
    names = {"seen", "citation-precision", "citation-recall"}
    assert names < {metric.name for metric in defaults}
    assert not names & {metric.name for metric in select_ranking_metrics(defaults)}
    with pytest.raises(UsageError, match="seen need answers"):
        check_design(experiment(metrics=(find_metric("seen"),), retrieval_only=True))


def row(number: int, support: str = "full", **given: object) -> Row:
    values: dict[str, object] = {
        "key": str(number),
        "system": "s",
        "item": GOLD,
        "resolved": True,
        "supported": support,
    }
    return Row(**{**values, "prediction": Prediction(answer="a"), **given})  # type: ignore[arg-type]


def test_risk_and_coverage_by_how_sure_the_answers_are():
    rows = [
        row(0), row(1), row(2, "partly"), row(3, "none"), row(4, "partly", forced=True), row(5, "full", resolved=False),
        row(6, error="ModelError: no"), row(7, prediction=Prediction()), row(8),
    ]  # fmt: skip
    scores = np.array([1.0, 1.0, 0.5, 0.0, 0.0, 1.0, 0.0, 0.0, np.nan])
    found = measure_risks(rows, scores)
    assert tuple(risk.level for risk in found) == LEVELS
    assert found[0] == Risk("full", 2 / 8, 0.0)
    assert found[1] == Risk("partly", 3 / 8, pytest.approx(1 - 2.5 / 3))
    assert found[2] == Risk("none", 4 / 8, pytest.approx(1 - 2.5 / 4))
    assert found[3] == Risk("forced, full", 5 / 8, pytest.approx(1 - 3.5 / 5))
    assert found[4] == Risk("forced, partly", 6 / 8, pytest.approx(1 - 3.5 / 6))
    assert found[5].coverage == 6 / 8  # neither the failed question nor the declined one
    assert measure_risks(rows[6:8], scores[6:8])[0].risk is None
    assert measure_risks(rows[8:], scores[8:]) == measure_risks(rows, None) == ()
