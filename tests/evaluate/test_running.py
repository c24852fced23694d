"""Runs: every question is asked and paid for once, and what fails, ends or changes meanwhile loses nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.patience import wait_until

from tomewise.errors import BudgetExceeded, Locked, ModelError, ModelUnavailable
from tomewise.evaluate.design import Design, find_folder, list_experiments
from tomewise.evaluate.items import Dataset, Item, Outcome, Prediction
from tomewise.evaluate.judges import find_judge
from tomewise.evaluate.metrics import find_metric
from tomewise.evaluate.results import find_journal, read_results, tabulate
from tomewise.evaluate.running import run
from tomewise.evaluate.table import write_notes
from tomewise.store.sql import database
from tomewise.systems.kit import System
from tomewise.systems.registry import Variant, assemble
from tomewise.testing import HashEmbedder
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.open_store import open_store
from tomewise.types import Document, Question, Scope

ANSWER = {"answer": lambda given: {"answer": "the lighthouse"}}
RANKED = {"retrieval_only": True, "metrics": (find_metric("recall@2"), find_metric("mrr"))}


def make_failing_model(**errors):
    """A model that answers; a question that contains a name gets its error."""

    def reply(given):
        return next((error for name, error in errors.items() if name in given.question), {"answer": "the lighthouse"})

    return ScriptedModel({"answer": reply})


def make_judging_model(name, judge=lambda given: True):
    return ScriptedModel({"judge_correct": lambda given: {"correct": judge(given)}}, name=name)


def read_scores(results, name):
    """The failed questions of the first system, and its score."""
    line = tabulate(results).lines[0]
    return line.failed, line.cells[name].value


async def test_without_force_a_declined_question_is_scored_wrong(experiment, tmp_path):
    model = ScriptedModel({"answer": lambda given: {"answer": "*"}})
    made = experiment("naive", model=model, force=False)
    results = await run(made, tmp_path)
    assert all(call.given.may_decline for call in model.calls)
    assert {(row.prediction.answer, row.resolved, row.forced) for row in results.rows} == {("", False, False)}
    assert read_scores(results, "em") == (0, 0.0)
    notes = write_notes(tabulate(results))
    assert "Systems may decline a question; that is scored wrong." in notes
    assert made.name() != experiment("naive", model=model).name()


async def test_every_system_gets_every_question_and_a_rerun_asks_nothing(experiment, tmp_path):
    model, seen = ScriptedModel(ANSWER), []
    made = experiment(model=model)
    first = await run(made, tmp_path, on_progress=seen.append)
    assert [(row.system, row.item.id) for row in first.rows] == [
        (system, f"q{number}") for system in ("naive", "hybrid") for number in range(4)
    ]
    assert len(model.calls) == 7  # of the fourth question, both systems show the one passage
    assert not any(call.given.may_decline for call in model.calls), "an evaluation asks for a guess"
    assert sum(row.cost["calls"] for row in first.rows) == 8
    assert [progress.done for progress in seen if progress.label == "questions"] == [*range(9)]
    assert {progress.total for progress in seen if progress.label == "questions"} == {8}
    second = await run(made, tmp_path)
    assert second.rows == first.rows
    assert len(model.calls) == 7
    assert [about.name for about in list_experiments(tmp_path)] == [made.name()]
    assert find_folder(tmp_path) == find_folder(tmp_path / made.name()) == tmp_path / made.name()


async def test_a_row_holds_answer_ranking_evidence_and_usage(evaluate, dataset):
    quoted = {"answer": "Ada Marsh", "quotes": [{"label": "E1", "quote": "kept the lighthouse"}]}
    row, *_, alone = (await evaluate("naive", model=ScriptedModel({"answer": lambda given: quoted}))).rows
    assert row.item == dataset.items[0]
    assert (row.prediction.answer, row.prediction.ranked[0].document) == ("Ada Marsh", "d0")
    assert {passage.document for passage in row.prediction.ranked} == {"d0", "d1", "d2", "d3"}
    assert [quote["text"] for quote in row.quotes] == ["kept the lighthouse"]
    assert row.texts[row.evidence[0]["id"]] == dataset.documents[0].text
    assert row.events[0]["name"] == "retrieved"
    assert "text" not in row.events[0]["detail"]["evidence"][0]
    assert row.cost["calls"] == row.cost["depth"] == 1
    assert row.characters == sum(len(document.text) for document in dataset.documents)
    # The last question is asked over its own document.
    assert [passage.document for passage in alone.prediction.ranked] == ["d3"]
    assert alone.characters == len(dataset.documents[3].text)


async def test_questions_that_fail_are_scored_wrong_and_shown(evaluate):
    model = make_failing_model(Hale=ModelError("no luck"))
    results = await evaluate("naive", model=model)
    assert [row.error for row in results.rows] == [None, "ModelError: no luck", None, None]
    assert results.rows[1].outcome == Outcome(results.rows[1].item, Prediction())
    assert tabulate(results).lines[0].n == 4
    assert read_scores(results, "em") == read_scores(results, "recall@2") == (1, 0.75)
    calls = len(model.calls)
    assert (await evaluate("naive", model=model)).rows[1].error
    assert len(model.calls) == calls
    working = ScriptedModel(ANSWER)
    retried = await evaluate("naive", model=working, retry_failed=True)
    assert len(working.calls) == 1
    assert read_scores(retried, "em")[0] == 0
    assert [row.item.id for row in retried.rows] == ["q0", "q1", "q2", "q3"]


async def test_a_model_that_goes_away_later_fails_questions(evaluate):
    gone = make_failing_model(Hale=ModelUnavailable("gone"), Ada=ModelUnavailable("gone"))
    results = await evaluate("naive", model=gone, limit=1)
    assert [row.error is None for row in results.rows] == [False, False, True, True]


async def test_what_a_failed_question_spent_is_counted(evaluate):
    def fail_later(kit):
        class Loop:
            async def run(self, question):
                async for _ in assemble("naive", kit).loop.run(question):
                    pass
                raise ModelError("too late")
                yield

        return System(loop=Loop())

    (row, *_) = (await evaluate(fail_later)).rows
    assert row.error == "ModelError: too late"
    assert row.cost["calls"] == 1


async def test_an_unavailable_model_ends_the_run_at_once(experiment, tmp_path):
    made = experiment("naive", model=ScriptedModel({"answer": lambda given: ModelUnavailable("no such host")}))
    with pytest.raises(ModelUnavailable, match=r"first 4 questions all failed.*no such host"):
        await run(made, tmp_path)
    assert read_results(tmp_path / made.name()).rows == ()
    assert len((await run(replace(made, model=ScriptedModel(ANSWER)), tmp_path)).rows) == 4


async def test_a_system_that_cannot_be_built_fails_alone(evaluate):
    model = ScriptedModel({**ANSWER, "extract_facts": lambda given: BudgetExceeded("used up")})
    lines = tabulate(await evaluate("naive", "associative", model=model)).lines
    assert [(line.system, line.failed) for line in lines] == [("naive", 0), ("associative", 4)]


async def test_a_bug_of_ours_stops_the_run_and_keeps_the_rows_before(experiment, tmp_path):
    made = experiment("naive", model=make_failing_model(Poe=RuntimeError("a bug")), limit=1)
    with pytest.raises(RuntimeError, match="a bug"):
        await run(made, tmp_path)
    assert len(read_results(tmp_path / made.name()).rows) == 2


async def test_other_models_prompts_and_settings_ask_again(evaluate, tmp_path):
    own = tmp_path / "prompts"
    own.mkdir()
    await evaluate("naive")
    (own / "answer.md").write_text("Answer: {{ question }}")
    for system, given, asked in (
        ("naive", {"model": ScriptedModel(ANSWER, name="other")}, 4),
        ("naive", {"model": ScriptedModel(ANSWER), "prompts": own}, 4),
        # Over the one document of the fourth question it asks the same.
        ("naive limit=3", {"model": ScriptedModel(ANSWER)}, 3),
    ):
        results = await evaluate(system, **given)
        assert len(given["model"].calls) == asked
        assert [row.cost["calls"] for row in results.rows] == [1] * 4


async def test_judges_ask_their_own_model_once(evaluate):
    given = {"judges": (find_judge("acc-l"),)}
    strict = make_judging_model("strict", lambda given: "Ada" in given.question)
    for _ in range(2):
        results = await evaluate("naive", judge_model=strict, **given)
        assert results.about.judge_model == "strict"
        assert read_scores(results, "acc-l") == (0, 0.25)
        assert len(strict.calls) == 4
    kind, answering = make_judging_model("kind"), ScriptedModel({})
    results = await evaluate("naive", judge_model=kind, model=answering, **given)
    assert (len(kind.calls), len(answering.calls)) == (4, 0)
    assert read_scores(results, "acc-l") == (0, 1.0)


async def test_a_judge_that_fails_is_counted_and_retried_on_request(evaluate):
    given = {"judges": (find_judge("acc-l"),)}
    tired = ScriptedModel({"judge_correct": lambda given: ModelError("tired")}, name="judge")
    results = await evaluate("naive", judge_model=tired, **given)
    assert read_scores(results, "acc-l") == (4, 0.0)
    assert read_scores(results, "em") == (4, 1.0)
    for retry_failed, scores in ((False, (4, 0.0)), (True, (0, 1.0))):
        awake = make_judging_model("judge")
        results = await evaluate("naive", judge_model=awake, retry_failed=retry_failed, **given)
        assert read_scores(results, "acc-l") == scores


async def test_each_model_has_its_own_memory(evaluate):
    for name in ("one", "other"):
        model = ScriptedModel({**ANSWER, "extract_facts": lambda given: {"entities": [], "facts": []}}, name=name)
        results = await evaluate("associative", model=model)
        assert [call.role for call in model.calls].count("extract_facts") == 4  # d3 is in two memories, paid for once
        assert results.builds["associative"]["calls"] == 5


async def test_corrected_gold_counts_without_asking_again(evaluate, dataset):
    judge = make_judging_model("strict", lambda given: given.reference == "the lighthouse")
    given = {"judges": (find_judge("acc-l"),), "judge_model": judge}
    wrong = tuple(replace(item, answers=("a boat",), slices={"hops": 9}) for item in dataset.items)
    assert read_scores(await evaluate("naive", dataset=replace(dataset, items=wrong), **given), "em") == (0, 0.0)
    model = ScriptedModel({})
    for _ in range(2):
        results = await evaluate("naive", model=model, **given)
        assert [row.item for row in results.rows] == list(dataset.items)
        assert read_scores(results, "em") == read_scores(results, "acc-l") == (0, 1.0)
    assert (len(model.calls), len(judge.calls)) == (0, 8)


async def test_gold_evidence_added_later_needs_a_ranking(evaluate, dataset):
    bare = replace(dataset, items=tuple(replace(item, supporting=()) for item in dataset.items))
    await evaluate("naive", dataset=bare, metrics=(find_metric("em"),))
    results = await evaluate("naive", model=ScriptedModel({}))  # the answers are paid for
    assert read_scores(results, "recall@2") == (0, 1.0)


async def test_a_system_under_two_names_is_asked_once(evaluate):
    await evaluate("hipporag2:without recognition", **RANKED)
    results = await evaluate("hipporag2 recognition=none", **RANKED)
    assert results.systems == ("hipporag2 recognition=none",)
    assert [row.item.id for row in results.rows] == ["q0", "q1", "q2", "q3"]


async def test_a_run_that_cannot_keep_replies_asks_nothing_more(evaluate, tmp_path, monkeypatch):
    def reply(given):
        if not foreign_writer.in_transaction:
            foreign_writer.execute("BEGIN IMMEDIATE")
        return {"answer": "the lighthouse"}

    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    open_store(tmp_path / "calls.tome").close()
    model = ScriptedModel({"answer": reply})
    with closing(sqlite3.connect(tmp_path / "calls.tome")) as foreign_writer:
        foreign_writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(Locked):
            await evaluate(model=model)
        assert model.calls == []
        foreign_writer.rollback()
        with pytest.raises(Locked):
            await evaluate(model=model, limit=1)
        assert len(model.calls) == 1
    assert len((await evaluate(model=ScriptedModel(ANSWER))).rows) == 8


KILLED = """
import asyncio, sys
from pathlib import Path
from tests.evaluate.test_running import make_long
from tomewise.evaluate.running import run
from tomewise.evaluate.table import write_notes
asyncio.run(run(make_long(Path(sys.argv[2]), latency=0.05), Path(sys.argv[1])))
"""


def make_long(log: Path, latency: float) -> Design:
    """An experiment of 40 questions, which the model writes into a file."""

    def reply(given):
        with log.open("a") as file:
            file.write(given.question + "\n")
        return {"answer": "yes"}

    items = (Item(id=str(n), question=Question(text=f"Did {n} turn?"), answers=("yes",)) for n in range(40))
    document = Document(id="d", text="The tide turned at nine.")
    return Design(
        dataset=Dataset(name="killed", documents=(document,), items=tuple(items)),
        variants=("naive",),
        embedder=HashEmbedder(),
        limit=2,
        model=ScriptedModel({"answer": reply}, latency=latency),
        metrics=(find_metric("em"),),
    )


def count_rows(out: Path) -> int:
    return sum(len(journal.read_bytes().splitlines()) for journal in out.glob("*/rows.jsonl"))


def test_a_killed_run_continues_where_it_was(tmp_path):
    out, log = tmp_path / "out", tmp_path / "log"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(out), str(log)], env=environment)
    try:
        wait_until(lambda: child.poll() is not None or count_rows(out) >= 10)
        assert child.poll() is None, "the run ended before it was killed"
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    made = make_long(log, latency=0.0)
    finished = {record["item"]["question"]["text"] for record in find_journal(out / made.name()).read()}
    assert 10 <= len(finished) < 40
    before = len(log.read_text().splitlines())
    assert len(asyncio.run(run(made, out)).rows) == 40
    asked = log.read_text().splitlines()[before:]
    # Two questions are under way at the kill; a stored reply without a row is not asked for again.
    assert 38 - len(finished) <= len(asked) <= 40 - len(finished)
    assert not finished & set(asked)


def test_keys_depend_on_the_scope_of_a_question(experiment):
    made = experiment()
    item, plain = made.dataset.items[0], Variant("naive", "naive")
    assert made.make_key(plain, item, "d", "p") == replace(made, seed=4, limit=1).make_key(plain, item, "d", "p")
    scopes = [None, *(Scope(documents=frozenset(names)) for names in ("ab", "a", "ba"))]
    none, both, alone, again = (
        made.make_key(plain, replace(item, question=replace(item.question, within=scope)), "d", "p") for scope in scopes
    )
    assert len({none, both, alone}) == 3
    assert both == again
