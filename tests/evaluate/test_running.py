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

from tomewise.errors import BudgetExceeded, Locked, ModelError, ModelUnavailable, UsageError
from tomewise.evaluate.about import find_folder, list_experiments
from tomewise.evaluate.items import Outcome, Prediction
from tomewise.evaluate.judges import find_judge
from tomewise.evaluate.metrics import find_metric
from tomewise.evaluate.results import find_journal, read_results, tabulate
from tomewise.evaluate.running import run
from tomewise.language.budget import Budgeted
from tomewise.store.sql import database
from tomewise.systems.registry import Variant, assemble
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.open_store import open_store
from tomewise.types import Scope

ANSWER = {"answer": lambda given: {"answer": "the lighthouse"}}
RANKED = (find_metric("recall@2"),)


def make_failing_model(*errors):
    """A model that answers; a question that contains a name of the pairs (name, error) gets the error."""

    def reply(given):
        return next((error for name, error in errors if name in given.question), {"answer": "the lighthouse"})

    return ScriptedModel({"answer": reply})


async def test_every_system_gets_every_question_and_a_rerun_asks_nothing(experiment, tmp_path):
    model, seen = ScriptedModel(ANSWER), []
    made = experiment(model=model)
    first = await run(made, tmp_path, on_progress=seen.append)
    assert [(row.system, row.item.id) for row in first.rows] == [
        (system, f"q{number}") for system in ("naive", "hybrid") for number in range(4)
    ]
    assert len(model.calls) == 4  # both systems rank these few passages alike
    assert sum(row.usage["calls"] for row in first.rows) == 8
    assert [progress.done for progress in seen if progress.label == "questions"] == [*range(9)]
    assert {progress.total for progress in seen if progress.label == "questions"} == {8}
    second = await run(made, tmp_path)
    assert second.rows == first.rows
    assert len(model.calls) == 4
    assert [about.name for about in list_experiments(tmp_path)] == [made.name()]
    assert find_folder(tmp_path) == find_folder(tmp_path / made.name()) == tmp_path / made.name()


async def test_a_row_holds_answer_ranking_evidence_and_usage(experiment, tmp_path, dataset):
    quoted = {"answer": "Ada Marsh", "quotes": [{"label": "E1", "quote": "kept the lighthouse"}]}
    results = await run(experiment(("naive",), model=ScriptedModel({"answer": lambda given: quoted})), tmp_path)
    row = results.rows[0]
    assert row.item == dataset.items[0]
    assert row.prediction.answer == "Ada Marsh"
    assert row.prediction.ranked[0].document == "d0"
    assert {passage.document for passage in row.prediction.ranked} == {"d0", "d1", "d2", "d3"}
    assert [citation["quote"] for citation in row.citations] == ["kept the lighthouse"]
    assert row.texts[row.evidence[0]["node"]] == dataset.documents[0].text
    assert row.events[0]["name"] == "retrieved"
    assert "text" not in row.events[0]["detail"]["evidence"][0]
    assert row.usage["calls"] == row.usage["depth"] == 1
    assert row.usage["roles"]["answer"]["input_tokens"] == row.usage["input_tokens"] > 0
    assert row.characters == sum(len(document.text) for document in dataset.documents)
    assert {"tomewise", "prompts", "model", "embedder", "settings", "seed"} == set(row.versions)


async def test_an_evaluation_asks_for_a_guess(experiment, tmp_path):
    model = ScriptedModel(ANSWER)
    await run(experiment(("naive",), model=model), tmp_path)
    assert model.calls
    assert not any(getattr(call.given, "may_decline", False) for call in model.calls)


async def test_a_question_is_asked_over_its_own_documents(experiment, tmp_path, dataset):
    results = await run(experiment(("hybrid",)), tmp_path)
    alone = results.rows[3]
    assert [passage.document for passage in alone.prediction.ranked] == ["d3"]
    assert alone.characters == len(dataset.documents[3].text)
    assert len(list((tmp_path / "tomes").glob("*.tome"))) == 2


async def test_questions_that_fail_are_scored_wrong_and_shown(experiment, tmp_path):
    model = make_failing_model(("Hale", ModelError("no luck")))
    made = experiment(("naive",), model=model)
    results = await run(made, tmp_path)
    assert [row.error for row in results.rows] == [None, "ModelError: no luck", None, None]
    assert results.rows[1].outcome == Outcome(results.rows[1].item, Prediction())
    (line,) = tabulate(results).lines
    assert (line.n, line.failed) == (4, 1)
    assert line.cells["em"].value == line.cells["recall@2"].value == 0.75
    calls = len(model.calls)
    assert (await run(made, tmp_path)).rows[1].error
    assert len(model.calls) == calls
    working = ScriptedModel(ANSWER)
    retried = await run(replace(made, model=working), tmp_path, retry_failed=True)
    assert len(working.calls) == 1
    assert tabulate(retried).lines[0].failed == 0
    assert [row.item.id for row in retried.rows] == ["q0", "q1", "q2", "q3"]


async def test_a_used_up_budget_fails_the_remaining_questions(experiment, tmp_path):
    model = Budgeted(ScriptedModel(ANSWER), calls=3)
    results = await run(experiment(("naive",), model=model, limit=1), tmp_path)
    assert [row.error is None for row in results.rows] == [True, True, True, False]
    assert str(results.rows[3].error).startswith(BudgetExceeded.__name__)


async def test_what_a_failed_question_spent_is_counted(experiment, tmp_path, monkeypatch):
    class Twice:
        """A loop that fails at its second call."""

        def __init__(self, system, model):
            self.retriever, self.layers, self.loop = system.retriever, system.layers, self
            self.inner, self.model = system.loop, model

        async def run(self, question):
            async for _ in self.inner.run(question):
                pass
            raise ModelError("too late")
            yield

    def break_assembly(name, kit, **settings):
        return Twice(assemble(name, kit, **settings), kit.model)

    monkeypatch.setattr("tomewise.evaluate.memories.assemble", break_assembly)
    (row, *_) = (await run(experiment(("naive",)), tmp_path)).rows
    assert row.error == "ModelError: too late"
    assert row.usage["calls"] == 1


async def test_an_unavailable_model_ends_the_run_at_once(experiment, tmp_path):
    made = experiment(("naive",), model=ScriptedModel({"answer": lambda given: ModelUnavailable("no such host")}))
    with pytest.raises(ModelUnavailable, match=r"first 4 questions all failed.*no such host"):
        await run(made, tmp_path)
    assert read_results(tmp_path / made.name()).rows == ()
    assert len((await run(replace(made, model=ScriptedModel(ANSWER)), tmp_path)).rows) == 4


async def test_a_model_that_goes_away_later_fails_questions(experiment, tmp_path):
    model = make_failing_model(("Hale", ModelUnavailable("gone")), ("Ada", ModelUnavailable("gone")))
    results = await run(experiment(("naive",), model=model, limit=1), tmp_path)
    assert [row.error is None for row in results.rows] == [False, False, True, True]


async def test_a_system_that_cannot_be_built_fails_alone(experiment, tmp_path, monkeypatch):
    from tomewise.evaluate import memories

    build_layers = memories.build_layers

    async def build_nothing(store, layers, openie, report):
        if layers:
            raise BudgetExceeded("used up")
        return await build_layers(store, layers, openie, report)

    monkeypatch.setattr(memories, "build_layers", build_nothing)
    results = await run(experiment(("naive", "raptor")), tmp_path)
    lines = {line.system: line for line in tabulate(results).lines}
    assert (lines["naive"].failed, lines["raptor"].failed) == (0, 4)


async def test_each_system_is_assembled_once_for_a_memory(experiment, tmp_path, monkeypatch):
    names = []

    def count_assembly(name, kit, **settings):
        names.append(name)
        return assemble(name, kit, **settings)

    monkeypatch.setattr("tomewise.evaluate.memories.assemble", count_assembly)
    made = experiment(retrieval_only=True, metrics=RANKED)
    await run(made, tmp_path)
    assert names == ["naive", "hybrid"] * 2  # all documents are one memory, those of the fourth question another


async def test_a_bug_of_ours_stops_the_run_and_keeps_the_rows_before(experiment, tmp_path):
    made = experiment(("naive",), model=make_failing_model(("Poe", RuntimeError("a bug"))), limit=1)
    with pytest.raises(RuntimeError, match="a bug"):
        await run(made, tmp_path)
    assert len(read_results(tmp_path / made.name()).rows) == 2


async def test_other_models_prompts_and_settings_ask_again(experiment, tmp_path):
    own = tmp_path / "prompts"
    own.mkdir()
    await run(experiment(("naive",)), tmp_path)
    three = "naive limit=3 selection='as found'"
    for given in ({"model": ScriptedModel(ANSWER, name="other")}, {"prompts": own}, {"systems": (three,)}):
        model = given.setdefault("model", ScriptedModel(ANSWER))
        if given.get("prompts"):
            (own / "answer.md").write_text("Answer: {{ question }}")
        results = await run(experiment(**{"systems": ("naive",), **given}), tmp_path)
        asks_the_same = "systems" in given  # over the one document of the fourth question
        assert len(model.calls) == 4 - asks_the_same
        assert [row.usage["calls"] for row in results.rows] == [1] * 4
    judge = own / "judge_correct.md"
    judge.write_text("Judge: {{ prediction }}")
    model = ScriptedModel(ANSWER)
    await run(experiment(("naive",), prompts=own, model=model), tmp_path)
    assert not model.calls


async def test_the_ranking_costs_no_second_call(experiment, tmp_path, monkeypatch):
    """The retriever, which asks the model, runs twice; the model and the embedder answer once."""
    from tomewise.language.roles import DECOMPOSE, DecomposeIn
    from tomewise.loops.once import Once
    from tomewise.recall.flat import Dense
    from tomewise.systems.kit import System

    class Decomposing:
        def __init__(self, kit):
            self.kit, self.inner = kit, Dense(kit.store, kit.embedder)

        async def retrieve(self, query, limit, *, within=None):
            await self.kit.model.ask(DECOMPOSE, DecomposeIn(question=query))
            return await self.inner.retrieve(query, limit, within=within)

    def assemble_decomposing(name, kit, **settings):
        retriever = Decomposing(kit)
        loop = Once(retriever, kit.make_desk("as found"), limit=1, budget=500)
        return System(loop=loop, retriever=retriever)

    monkeypatch.setattr("tomewise.evaluate.memories.assemble", assemble_decomposing)
    model = ScriptedModel({**ANSWER, "decompose": lambda given: {"subqueries": []}})
    results = await run(experiment(("naive",), model=model), tmp_path)
    assert len(model.calls) == 8
    assert results.rows[0].usage["calls"] == 2
    assert len(results.rows[0].evidence) == 1
    assert len(results.rows[0].prediction.ranked) == 4


async def test_retrieval_alone_asks_no_model(experiment, tmp_path):
    model = ScriptedModel({})
    made = experiment(model=model, retrieval_only=True, metrics=(find_metric("recall@2"), find_metric("mrr")))
    results = await run(made, tmp_path)
    assert model.calls == []
    assert [line.cells["recall@2"].value for line in tabulate(results).lines] == [1.0, 1.0]
    assert results.rows[0].usage["calls"] == 0
    assert made.name() != replace(made, retrieval_only=False).name()


async def test_judges_ask_their_own_model_once(experiment, tmp_path):
    strict = {"judge_correct": lambda given: {"correct": "Ada" in given.question}}
    judge = ScriptedModel(strict, name="strict")
    made = experiment(("naive",), judges=(find_judge("acc-l"),), judge_model=judge)
    results = await run(made, tmp_path)
    assert results.about.judge_model == "strict"
    table = tabulate(results)
    assert table.lines[0].cells["acc-l"].value == 0.25
    assert len(judge.calls) == 4
    await run(made, tmp_path)
    assert len(judge.calls) == 4
    kind = ScriptedModel({"judge_correct": lambda given: {"correct": True}}, name="kind")
    answering = ScriptedModel({})
    results = await run(replace(made, judge_model=kind, model=answering), tmp_path)
    assert (len(kind.calls), len(answering.calls)) == (4, 0)
    assert tabulate(results).lines[0].cells["acc-l"].value == 1.0


async def test_a_judge_that_fails_is_counted_and_retried_on_request(experiment, tmp_path):
    model = ScriptedModel({"judge_correct": lambda given: ModelError("tired")}, name="judge")
    made = experiment(("naive",), judges=(find_judge("acc-l"),), judge_model=model)
    line = tabulate(await run(made, tmp_path)).lines[0]
    assert (line.failed, line.cells["acc-l"].value, line.cells["em"].value) == (4, 0.0, 1.0)
    awake = ScriptedModel({"judge_correct": lambda given: {"correct": True}}, name="judge")
    assert tabulate(await run(replace(made, judge_model=awake), tmp_path)).lines[0].failed == 4
    line = tabulate(await run(replace(made, judge_model=awake), tmp_path, retry_failed=True)).lines[0]
    assert (line.failed, line.cells["acc-l"].value) == (0, 1.0)


async def test_each_model_has_its_own_memory(experiment, tmp_path):
    for name in ("one", "other"):
        model = ScriptedModel({**ANSWER, "extract_facts": lambda given: {"entities": [], "facts": []}}, name=name)
        results = await run(experiment(("hipporag2",), model=model), tmp_path)
        assert [call.role for call in model.calls].count("extract_facts") == 4  # d3 is in two memories, paid for once
        assert results.builds["hipporag2"]["calls"] == 5


async def test_corrected_gold_counts_without_asking_again(experiment, tmp_path, dataset):
    strict = {"judge_correct": lambda given: {"correct": given.reference == "the lighthouse"}}
    judge = ScriptedModel(strict, name="strict")
    wrong = tuple(replace(item, answers=("a boat",), slices={"hops": 9}) for item in dataset.items)
    given = {"judges": (find_judge("acc-l"),), "judge_model": judge}
    made = experiment(("naive",), dataset=replace(dataset, items=wrong), **given)
    assert tabulate(await run(made, tmp_path)).lines[0].cells["em"].value == 0.0
    model = ScriptedModel({})
    right = replace(made, dataset=dataset, model=model)
    for _ in range(2):
        results = await run(right, tmp_path)
        assert [row.item for row in results.rows] == list(dataset.items)
        cells = tabulate(results).lines[0].cells
        assert (cells["em"].value, cells["acc-l"].value) == (1.0, 1.0)
    assert (len(model.calls), len(judge.calls)) == (0, 8)


async def test_gold_evidence_added_later_needs_a_ranking(experiment, tmp_path, dataset):
    bare = replace(dataset, items=tuple(replace(item, supporting=()) for item in dataset.items))
    await run(experiment(("naive",), dataset=bare, metrics=(find_metric("em"),)), tmp_path)
    results = await run(experiment(("naive",), model=ScriptedModel({})), tmp_path)  # the answers are paid for
    assert tabulate(results).lines[0].cells["recall@2"].value == 1.0


async def test_a_system_under_two_names_is_asked_once(experiment, tmp_path):
    await run(experiment(("hipporag2:without recognition",), retrieval_only=True, metrics=RANKED), tmp_path)
    results = await run(experiment(("hipporag2 recognition=none",), retrieval_only=True, metrics=RANKED), tmp_path)
    assert results.systems == ("hipporag2 recognition=none",)
    assert [row.item.id for row in results.rows] == ["q0", "q1", "q2", "q3"]


async def test_an_experiment_that_measures_nothing_is_refused(experiment, tmp_path):
    for given, says in (
        ({"metrics": ()}, "no gold"),
        ({"variants": ()}, "no system"),
        ({"retrieval_only": True}, "em, f1 need answers"),
        ({"metrics": (find_metric("recall@500"),)}, "write 'recall@50'"),
        ({"metrics": (find_metric("accuracy"),)}, "lacks the gold"),
    ):
        with pytest.raises(UsageError, match=says):
            await run(experiment(**given), tmp_path)
    assert list(tmp_path.iterdir()) == []


async def test_a_run_that_cannot_keep_replies_asks_nothing(experiment, tmp_path, monkeypatch):
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    model = ScriptedModel(ANSWER)
    open_store(tmp_path / "calls.tome").close()
    with closing(sqlite3.connect(tmp_path / "calls.tome")) as foreign_writer:
        foreign_writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(Locked):
            await run(experiment(model=model), tmp_path)
    assert model.calls == []
    assert len((await run(experiment(model=model), tmp_path)).rows) == 8


async def test_a_run_ends_at_a_reply_that_cannot_be_kept(experiment, tmp_path, monkeypatch):
    def reply(given):
        if not foreign_writer.in_transaction:
            foreign_writer.execute("BEGIN IMMEDIATE")
        return {"answer": "the lighthouse"}

    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    open_store(tmp_path / "calls.tome").close()
    model = ScriptedModel({"answer": reply})
    with closing(sqlite3.connect(tmp_path / "calls.tome")) as foreign_writer, pytest.raises(Locked):
        await run(experiment(model=model, limit=1), tmp_path)
    assert len(model.calls) == 1


KILLED = """
import asyncio, sys
from pathlib import Path
from tests_experiment import experiment
from tomewise.evaluate.running import run
asyncio.run(run(experiment(latency=0.05, log=Path(sys.argv[2])), Path(sys.argv[1])))
"""
EXPERIMENT = """
from tomewise.evaluate.design import Design
from tomewise.evaluate.items import Dataset, Item
from tomewise.evaluate.metrics import find_metric
from tomewise.systems.registry import parse_variants
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.open_store import open_store
from tomewise.testing import HashEmbedder
from tomewise.types import Document, Question

def experiment(latency, log):
    def reply(given):
        with log.open("a") as file:
            file.write(given.question + "\\n")
        return {"answer": "yes"}
    dataset = Dataset(
        name="killed",
        documents=(Document(id="d", text="The tide turned at nine."),),
        items=tuple(Item(id=str(n), question=Question(text=f"Did {n} turn?"), answers=("yes",)) for n in range(40)),
    )
    return Design(
        dataset=dataset, variants=parse_variants(["naive"]), embedder=HashEmbedder(), limit=2,
        model=ScriptedModel({"answer": reply}, latency=latency), metrics=(find_metric("em"),),
    )
"""


def count_rows(out: Path) -> int:
    return sum(len(journal.read_bytes().splitlines()) for journal in out.glob("*/rows.jsonl"))


def run_and_kill(rows: int, out: Path, *command: str, env: dict[str, str]) -> None:
    """Start a run and kill it once it has stored so many rows."""
    child = subprocess.Popen([sys.executable, *command], env=env)
    try:
        wait_until(lambda: child.poll() is not None or count_rows(out) >= rows)
        assert child.poll() is None, "the run ended before it was killed"
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()


def test_a_killed_run_continues_where_it_was(tmp_path, monkeypatch):
    (tmp_path / "tests_experiment.py").write_text(EXPERIMENT)
    out, log = tmp_path / "out", tmp_path / "log"
    path = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    run_and_kill(10, out, "-c", KILLED, str(out), str(log), env={**os.environ, **path})
    monkeypatch.syspath_prepend(str(tmp_path))
    from tests_experiment import experiment as make

    made = make(latency=0.0, log=log)
    finished = {record["item"]["question"] for record in find_journal(out / made.name()).read()}
    assert 10 <= len(finished) < 40
    before = len(log.read_text().splitlines())
    results = asyncio.run(run(made, out))
    assert len(results.rows) == 40
    asked = log.read_text().splitlines()[before:]
    # Two questions are under way at the kill; a stored reply without a row is not asked for again.
    assert 38 - len(finished) <= len(asked) <= 40 - len(finished)
    assert not finished & set(asked)


def test_published_questions_retrieve_their_evidence(experiment, tmp_path):
    folder = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "musique"
    if not folder.is_dir():
        pytest.skip("../shared/data/musique is not there")
    from tomewise.evaluate.datasets import read_dataset

    whole = read_dataset("plain", folder)
    items = whole.items[:5]
    gold = {id for item in items for id in item.supporting}
    documents = [kept for place, kept in enumerate(whole.documents) if kept.id in gold or place % 10 == 0]
    dataset = replace(whole, items=items, documents=tuple(documents))
    metrics = (find_metric("recall@20"), find_metric("all@5"))
    made = experiment(("naive", "hybrid"), dataset=dataset, metrics=metrics, retrieval_only=True)
    naive, hybrid = tabulate(asyncio.run(run(made, tmp_path))).lines
    assert (naive.n, hybrid.n) == (5, 5)
    assert naive.cells["recall@20"].value > 0  # by the hash embedder alone
    assert hybrid.cells["recall@20"].value >= 0.4


def test_keys_depend_on_the_settings_of_a_variant(experiment):
    made = experiment()
    item = made.dataset.items[0]
    plain, limited = Variant("naive", "naive"), Variant("naive limit=3", "naive", {"limit": 3})
    assert made.make_key(plain, item, "d", "p") != made.make_key(limited, item, "d", "p")
    assert made.make_key(plain, item, "d", "p") == replace(made, seed=4, limit=1).make_key(plain, item, "d", "p")


def test_keys_depend_on_the_scope_of_a_question(experiment):
    made = experiment()
    item, plain = made.dataset.items[0], Variant("naive", "naive")
    scopes = (None, Scope(documents=frozenset({"a", "b"})), Scope(documents=frozenset({"a"})))
    items = [replace(item, question=replace(item.question, within=scope)) for scope in scopes]
    assert len({made.make_key(plain, narrowed, "d", "p") for narrowed in items}) == 3
    assert made.make_key(plain, items[1], "d", "p") == made.make_key(
        plain, replace(item, question=replace(item.question, within=Scope(documents=frozenset({"b", "a"})))), "d", "p"
    )
