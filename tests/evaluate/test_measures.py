"""What an evaluation measures of an answer: its ranking, what it saw and cited, and how sure it is."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tomewise.errors import UsageError
from tomewise.evaluate.items import Item, Outcome, Prediction, RankedPassage, Span
from tomewise.evaluate.metrics import find_metric
from tomewise.evaluate.report import write_markdown
from tomewise.evaluate.results import measure_risks, tabulate
from tomewise.evaluate.rows import Row, read_answer_fields
from tomewise.evaluate.table import LEVELS, Risk
from tomewise.loops.evidence import EXTRACTS
from tomewise.recall.flat import Everything
from tomewise.systems.kit import Kit, System, answer_once
from tomewise.systems.registry import assemble
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Answer, Document, Event, Evidence, Question, Quote, Statement

GOLD = Item(id="q", question=Question(text="Which lighthouse?"), answers=("a",), supporting=("d1", "d2"))
RANKED = (find_metric("recall@2"),)


def fix_system(find, answer=None):
    """A recipe whose retriever and loop give what these functions make of all passages; it notes its questions."""
    questions = []

    def recipe(kit):
        class Fixed:
            async def retrieve(self, query, limit, *, within=None):
                return find(list(kit.store.passages().values()))

            async def run(self, question):
                questions.append(question)
                yield answer(list(kit.store.passages().values()))

        return System(loop=Fixed(), retriever=Fixed())

    return recipe, questions


def make_evidence(*passages, score=0.9, **given):
    """Evidence of one passage, which is found by itself, or a summary of several."""
    sources = tuple(passage.id for passage in passages)
    found = {"id": sources[0], "layer": "passages", "text": passages[0].text} if len(passages) == 1 else {}
    return Evidence(**{"id": "s", "layer": "tree", "text": "about all", **found, **given}, score=score, sources=sources)


async def test_a_summary_does_not_push_down_a_passage_found_by_itself(evaluate, embedder, dataset):
    """The first hit is a summary of three passages; the second is the fourth passage, by itself, and better."""

    def find(passages):
        below = [passage for passage in passages if passage.document != "d3"]
        alone = [passage for passage in passages if passage.document == "d3"]
        return [*([make_evidence(*below)] if below else []), *(make_evidence(passage, score=0.8) for passage in alone)]

    rows = (await evaluate(fix_system(find)[0], retrieval_only=True, metrics=RANKED)).rows
    texts = {document.id: document.text for document in dataset.documents}
    question = embedder.embed([dataset.items[0].question.text])[0]
    below = embedder.embed([texts[name] for name in ("d0", "d1", "d2")]) @ question
    assert below.max() < 0.8
    order = [f"d{number}" for number in np.argsort(-below, kind="stable")]
    assert order[0] == "d0"
    assert [passage.document for passage in rows[0].prediction.ranked] == ["d3", *order]


async def test_answers_are_forced_and_say_what_they_rest_on(evaluate, dataset):
    whole = f"{'It rained for days. ' * 12}Sam Reed kept the lighthouse number 3 at Skerry."

    def answer(passages):
        first, second = passages[0], passages[-1]
        cited = Quote(document=second.document, passage=second.id, position=0, start=0, end=4, text=second.text[:4])
        extract = make_evidence(second, layer=EXTRACTS, id="x", text="Ada … Sam Reed kept … at Skerry")
        shown = (make_evidence(first), make_evidence(*passages), make_evidence(second, layer="facts"), extract)
        return Answer(
            text="a",
            evidence=shown,
            statements=(Statement(text="a", quotes=(cited,)),),
            claimed="partly",
            missing="the year",
            forced=True,
        )

    system, questions = fix_system(lambda passages: [], answer)
    metrics = tuple(map(find_metric, ("em", "seen", "citation-precision", "citation-recall")))
    data = replace(dataset, documents=(*dataset.documents[:3], Document(id="d3", text=whole)))
    results = await evaluate(system, dataset=data, passage_tokens=32, metrics=metrics, model=ScriptedModel({}))
    assert questions
    assert all(question.force for question in questions)
    row = results.rows[0]
    assert not row.item.question.force
    assert (row.claimed, row.missing, row.forced) == ("partly", "the year", True)
    assert row.prediction.shown[0].document == "d0"
    extracts = row.prediction.shown[1:]  # the words of an extract that stand in its passage
    assert [whole[place.start : place.end] for place in extracts] == ["Sam Reed kept", "at Skerry"]
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
    gold = tuple(
        Span(document=name, start=start, end=end) for name, start, end in (("d1", 4, 6), ("d3", 9, 20), ("d9", 2, 9))
    )
    seen = replace(prediction, shown=(place("d1", 0, 5), place("d3", 30, 40)))
    assert metric.score(Outcome(replace(GOLD, spans=gold), seen)) == pytest.approx(spans)
    assert metric.score(Outcome(GOLD, Prediction())) == 0.0
    assert not metric.applies(replace(GOLD, supporting=()))


def make_row(number: int, claimed: str = "full", **given) -> Row:
    values = {"prediction": Prediction(answer="a"), "resolved": True, **given}
    return Row(key=str(number), system="s", item=GOLD, claimed=claimed, **values)


def test_risk_and_coverage_by_how_sure_the_answers_are():
    given = [
        {}, {}, {"claimed": "partly"}, {"claimed": "none"}, {"claimed": "partly", "forced": True},
        {"resolved": False}, {"error": "ModelError: no"}, {"prediction": Prediction()}, {},
    ]  # fmt: skip
    rows = [make_row(number, **each) for number, each in enumerate(given)]
    scores = np.array([1.0, 1.0, 0.5, 0.0, 0.0, 1.0, 0.0, 0.0, np.nan])
    found = measure_risks(rows, scores)
    assert tuple(risk.level for risk in found) == LEVELS
    assert found[:5] == (
        Risk("full", 2 / 8, 0.0),
        Risk("partly", 3 / 8, pytest.approx(1 - 2.5 / 3)),
        Risk("none", 4 / 8, pytest.approx(1 - 2.5 / 4)),
        Risk("forced, full", 5 / 8, pytest.approx(1 - 3.5 / 5)),
        Risk("forced, partly", 6 / 8, pytest.approx(1 - 3.5 / 6)),
    )
    assert found[5].coverage == 6 / 8  # neither the failed question nor the declined one
    assert measure_risks(rows[6:8], scores[6:8])[0].risk is None
    assert measure_risks(rows[8:], scores[8:]) == measure_risks(rows, None) == ()


def several(kit: Kit) -> System:
    """A loop that shows the first two passages, and says nothing of a retriever."""
    return System(loop=answer_once(kit, Everything(kit.store), limit=2, context=500).loop)


async def test_without_a_retriever_tables_measure_what_the_answer_saw_and_say_so(evaluate):
    results = await evaluate("naive", several, metrics=RANKED)
    rows = {(row.system, row.item.id): row for row in results.rows}
    assert {(row.system, row.ranked_by) for row in results.rows} == {("several", "shown"), ("naive", "retriever")}
    # It is shown d0 and d1 for every question over all documents; the nearer one ranks first.
    assert [place.document for place in rows["several", "q1"].prediction.ranked] == ["d1", "d0"]
    assert [place.document for place in rows["several", "q0"].prediction.ranked] == ["d0", "d1"]
    text = write_markdown(tabulate(results, baseline="naive"))
    assert "several: without one retriever of its own" in text
    assert "75.0§" in text
    assert "100.0§" not in text
    assert "**100.0**" not in text, "the only retriever is not the best of several"


async def test_rankings_of_two_kinds_are_not_tested_against_each_other(evaluate, dataset):
    items = tuple(replace(dataset.items[n % 3], id=f"q{n:02}") for n in range(12))
    given = {"dataset": replace(dataset, items=items), "metrics": (*RANKED, find_metric("f1"))}
    _, limited, shown = tabulate(await evaluate("naive", "naive limit=1", several, **given), baseline="naive").lines
    assert limited.cells["recall@2"].p is not None
    assert shown.cells["recall@2"].p is None
    assert shown.cells["f1"].p is not None


async def test_retrieval_alone_leaves_out_a_system_without_a_retriever(evaluate, here):
    results = await evaluate("naive", several, retrieval_only=True, metrics=RANKED)
    assert results.systems == ("naive",)
    assert "no retriever of its own" in results.refused["several"]
    with Tome.open(here / "m.tome", embedder="hash") as tome:
        tome.add(Document(id="d", text="Ada kept the light."))
        with pytest.raises(UsageError, match="several has no retriever of its own"):
            tome.search("light", system=several)
        # ComoRAG has one only where one layer is left.
        assert assemble("comorag", tome.kit).retriever is None
        assert assemble("comorag", tome.kit, semantic=0, episodic=0).retriever is not None


def test_events_of_a_loop_from_outside_may_have_any_shape():
    pieces = [{"id": "p", "text": "Rain."}, {"id": ["p"], "text": "Snow."}, "Hail."]
    details = {"evidence": pieces, "value": {1}}, {"evidence": "a text", (1, 2): 3}
    kept = read_answer_fields(Answer(text="Ada", events=tuple(Event(name="odd", detail=detail) for detail in details)))
    events = json.loads(json.dumps(kept["events"]))
    assert [event["detail"] for event in events] == [
        {"evidence": [{"id": "p"}, {"id": ["p"], "text": "Snow."}, "Hail."], "value": [1]},
        {"evidence": "a text", "(1, 2)": 3},
    ]
    assert kept["texts"] == {"p": "Rain."}
