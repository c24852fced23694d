"""Evaluations whose memories workers build and ask: rows and tables are those of one process, whatever ends."""

from __future__ import annotations

import asyncio
import csv
import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.building import mark
from tests.cluster.killing import (
    check_rows,
    drop_times,
    find_worker,
    list_rows,
    make_dataset,
    make_killed,
    play,
    read_kept,
    wait_for,
)
from tests.cluster.two_nodes import Nodes
from tests.conftest import Ran
from tests.evaluate.test_shared_desk import REQUEST
from tests.language.openai_server import OpenAIServer, fail_with

from tomewise.cluster import ray_cluster
from tomewise.cluster.pool_worker import Failed
from tomewise.cluster.worker_parts import WorkerParts
from tomewise.cluster.worker_pool import WorkerPool
from tomewise.errors import Locked, MissingDependency, ModelUnavailable, TomewiseError, UsageError
from tomewise.evaluate.experiment import Experiment
from tomewise.evaluate.items import Item
from tomewise.evaluate.judges import Judge, Judgement
from tomewise.evaluate.report import write_csv
from tomewise.evaluate.results import find_journal
from tomewise.evaluate.shared_desk import HERE, Desk
from tomewise.language.budget import Budget
from tomewise.language.roles import ANSWER, AnswerIn
from tomewise.recall.flat import Dense
from tomewise.systems.kit import Kit, System, answer_once
from tomewise.types import Spent

SYSTEMS = ("hybrid", "cogitorag", "raptor")
RUN = """
import sys
from tests.cluster.killing import make_killed

make_killed(sys.argv[1], sys.argv[2], on="ray", workers=2).run()
"""


def fill_disk(kit: Kit) -> System:
    """A recipe on a machine whose disk is full."""
    raise OSError(errno.ENOSPC, "No space left on device")


def own_recipe(kit: Kit) -> System:
    """Retrieve a few passages."""
    return answer_once(kit, Dense(kit.store, kit.embedder), 3, 500, selection="as found")


def read_table(experiment: Experiment) -> list[dict[str, str]]:
    lines = csv.DictReader(StringIO(write_csv(experiment.table(baseline="hybrid"))))
    return [drop_times(line) for line in lines]


@pytest.mark.cluster
def test_rows_and_tables_are_those_of_one_process(nodes: object, tmp_path: Path) -> None:
    made = [
        Experiment([*SYSTEMS, own_recipe], make_dataset(4), embedder="hash", out=tmp_path / name, **place)
        for name, place in (("pooled", {"on": "ray", "workers": 2}), ("alone", {}))
    ]
    for experiment in made:
        experiment.run()
    pooled, alone = made
    assert len(alone.results.rows) == 32
    assert list_rows(pooled) == list_rows(alone)
    assert read_table(pooled) == read_table(alone)
    builds = [drop_times(dict(each.results.builds)) for each in made]
    assert builds[0] == builds[1]


@pytest.mark.cluster
@pytest.mark.parametrize("victim", ["worker", "node"])
def test_what_is_killed_costs_no_row_and_no_kept_reply(nodes: Nodes, tmp_path: Path, victim: str) -> None:
    with OpenAIServer(play) as server, ThreadPoolExecutor(1) as apart:
        node = nodes.add() if victim == "node" else None
        experiment = make_killed(str(tmp_path / "pooled"), server.url, on="ray", workers=3 if node else 2)
        running = apart.submit(experiment.run)
        wait_for(server, 30)
        kept = read_kept(tmp_path / "pooled" / "calls.tome")
        if node:
            nodes.cluster.remove_node(node, allow_graceful=False)
        else:
            os.kill(find_worker(), signal.SIGKILL)
        before = len(server.requests)
        running.result(120)
        assert kept
        assert not kept & set(map(mark, server.requests[before:])), "a kept reply was asked for again"
        assert server.most_at_once <= 4
        undisturbed = make_killed(str(tmp_path / "alone"), server.url)
        undisturbed.run()
        check_rows(experiment, undisturbed)


@pytest.mark.cluster
def test_one_budget_holds_over_all_workers_and_judges(nodes: object, tmp_path: Path) -> None:
    """It ends as in one process: further questions fail, and the next run goes on where it was."""

    async def ask_once(model: Any, embedder: Any, item: Item, answer: str) -> Judgement:
        await model.ask(ANSWER, AnswerIn(question=f"Is it true of {item.id} that {answer}?"))
        return Judgement(score=1.0)

    found = []
    for name, place in (("pooled", {"on": "ray", "workers": 2}), ("alone", {})):
        with OpenAIServer(play) as server:
            given: dict[str, Any] = {"judges": [Judge("once", ask_once)], **place}
            results = make_killed(str(tmp_path / name), server.url, max_calls=20, **given).run()
            errors = {str(row.error).partition(":")[0] for row in results.rows if row.error}
            first, kept = len(server.requests), read_kept(tmp_path / name / "calls.tome")
            again = make_killed(str(tmp_path / name), server.url, **given).run(retry_failed=True)
            repeated = kept & set(map(mark, server.requests[first:]))
            found.append((first, len(results.rows), errors, repeated, [row.error for row in again.rows]))
    assert found[0] == found[1]
    assert found[0] == (20, 24, {"BudgetExceeded"}, set(), [None] * 24)


@pytest.mark.cluster
async def test_requests_that_wait_keep_out_none_that_ends(nodes: object, tmp_path: Path) -> None:
    """Ray's own limit is 1,000 calls at a time."""
    pool = WorkerPool(WorkerParts(embedder="hash"), 1)
    pool.open()
    try:
        desk = pool.start_beside(Desk, tmp_path / "calls.tome", partial(Budget, name="a model", calls=1))
        assert await desk.reserve.remote(HERE, "first", REQUEST) == 1
        waiting = [desk.reserve.remote(HERE, str(number), REQUEST) for number in range(1100)]
        desk.settle.remote(HERE, "first", Spent(calls=1))
        found = await asyncio.wait_for(asyncio.gather(*waiting), 60)
        assert all(isinstance(each, Failed) for each in found)
    finally:
        pool.close()


@pytest.mark.cluster
def test_a_killed_worker_gives_its_budget_back(nodes: object, tmp_path: Path) -> None:
    """What it had asked counts; nobody waits for what it had reserved."""
    with OpenAIServer(play) as server, ThreadPoolExecutor(1) as apart:
        experiment = make_killed(str(tmp_path), server.url, on="ray", workers=2, max_calls=40)
        running = apart.submit(experiment.run)
        wait_for(server, 15)
        os.kill(find_worker(), signal.SIGKILL)
        results = running.result(120)
        assert {str(row.error).partition(":")[0] for row in results.rows if row.error} == {"BudgetExceeded"}
        assert 40 - 4 <= len(server.requests) <= 40


@pytest.mark.cluster
def test_without_the_desk_the_run_ends_and_the_next_one_goes_on(nodes: object, tmp_path: Path) -> None:
    with OpenAIServer(play) as server, ThreadPoolExecutor(1) as apart:
        running = apart.submit(make_killed(str(tmp_path), server.url, on="ray", workers=2).run)
        wait_for(server, 30)
        os.kill(find_worker("Desk"), signal.SIGKILL)
        with pytest.raises(TomewiseError, match=r"the process that keeps replies .* ended"):
            running.result(60)
        before, kept = len(server.requests), read_kept(tmp_path / "calls.tome")
        assert len(make_killed(str(tmp_path), server.url).run().rows) == 24
        assert not kept & set(map(mark, server.requests[before:])), "a kept reply was asked for again"


@pytest.mark.cluster
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_what_is_left_of_an_ended_evaluation_goes_on_without_ray(
    nodes: object, tmp_path: Path, sign: signal.Signals
) -> None:
    out = tmp_path / "pooled"
    with OpenAIServer(play) as server:
        driver = subprocess.Popen([sys.executable, "-c", RUN, str(out), server.url], stderr=subprocess.DEVNULL)
        wait_for(server, 30)
        driver.send_signal(sign)
        driver.wait(20)
        time.sleep(3)
        before, kept = len(server.requests), read_kept(out / "calls.tome")
        time.sleep(1)
        assert len(server.requests) == before, "the workers have ended"
        experiment, undisturbed = make_killed(str(out), server.url), make_killed(str(tmp_path / "alone"), server.url)
        experiment.run()
        assert not kept & set(map(mark, server.requests[before:])), "a kept reply was asked for again"
        undisturbed.run()
        check_rows(experiment, undisturbed)


@pytest.mark.cluster
def test_given_extractions_reach_the_workers(nodes: object, tmp_path: Path) -> None:
    """And so does the reason why a system is left out."""
    data, given = make_dataset(2), tmp_path / "openie.jsonl"
    given.write_text(
        "".join(
            json.dumps({"id": each.id, "entities": ["Mara", each.id], "triples": [["Mara", "keeps", each.id]]}) + "\n"
            for each in data.documents
        )
    )
    made = [
        Experiment(
            ["hipporag2", "comorag", "naive"],
            replace(data, openie=given, items=tuple(replace(item, documents=()) for item in data.items)),
            embedder="hash",
            out=tmp_path / name,
            retrieval_only=True,
            **place,
        )
        for name, place in (("pooled", {"on": "ray", "workers": 1}), ("alone", {}))
    ]
    pooled, alone = (experiment.run() for experiment in made)
    assert pooled.refused == alone.refused
    assert set(pooled.refused) == {"comorag"}
    assert [list_rows(experiment) for experiment in made[:1]] == [list_rows(experiment) for experiment in made[1:]]


@pytest.mark.cluster
def test_what_ends_on_a_worker_is_one_line(nodes: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"embedder": "hash", "on": "ray", "workers": 1}
    elsewhere = ModuleType("elsewhere")
    exec("def own(kit):\n    return None\n", elsewhere.__dict__)
    monkeypatch.setitem(sys.modules, "elsewhere", elsewhere)
    with pytest.raises(UsageError, match=r"the worker on .*elsewhere.*install the modules of all systems"):
        Experiment([elsewhere.own], make_dataset(1), out=tmp_path / "elsewhere", **given).run()
    with pytest.raises(TomewiseError, match=r"^the worker on \S+: No space left on device: make room there"):
        Experiment([fill_disk], make_dataset(1), out=tmp_path / "full", **given).run()
    with OpenAIServer(lambda _: fail_with(401, "no such key")) as server:
        asked: dict[str, Any] = {"model": "openai:test", "base_url": server.url}
        failing = Experiment(["naive"], make_dataset(4), out=tmp_path / "failing", **asked, **given)
        with pytest.raises(ModelUnavailable, match="the first 5 questions all failed"):
            failing.run()
        assert not [each for each in find_journal(failing.out / failing.design.name()).read() if each["kind"] == "row"]


@pytest.mark.cluster
def test_a_second_run_in_one_folder_is_refused(nodes: object, tmp_path: Path) -> None:
    with OpenAIServer(play) as server, ThreadPoolExecutor(1) as apart:
        experiments = [make_killed(str(tmp_path), server.url, on="ray", workers=1) for _ in range(2)]
        running = apart.submit(experiments[0].run)
        wait_for(server, 1)
        with pytest.raises(Locked):
            experiments[1].run()
        running.result(120)
        assert len(experiments[0].results.rows) == 24


def test_what_workers_cannot_do_is_one_line(tmp_path: Path) -> None:
    def inside(kit: Kit) -> System:
        return own_recipe(kit)

    given: dict[str, Any] = {"embedder": "hash", "out": tmp_path}
    for systems, more, line in (
        ([inside], {"on": "ray"}, "is a function that workers cannot import"),
        (["naive"], {"on": "ray", "api_key": "k"}, "`api_key` is not sent to workers"),
        (["naive"], {"workers": 2}, "2 workers need a cluster"),
        (["naive"], {"on": "spark"}, "work cannot be done on 'spark'"),
    ):
        with pytest.raises(UsageError, match=line):
            Experiment(systems, make_dataset(1), **given, **more)


def test_without_ray_the_line_names_the_command_that_installs_it(
    command: Callable[..., Ran], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "find_spec", lambda _: None)
    ran = command("eval", "run", "naive", "--data", "sample", "--embedder", "hash", "--on", "ray")
    assert ran.code == MissingDependency.exit_code
    assert 'run `pip install "tomewise[ray]"`' in ran.err


@pytest.mark.cluster
def test_the_command_prints_its_table_alone(nodes: object, command: Callable[..., Ran], here: Path) -> None:
    ran = command(
        "eval", "run", "naive", "--data", "sample", "--embedder", "hash", "--on", "ray", "--workers", 2, "--json"
    )
    assert (ran.code, ran.err) == (0, ""), ran
    assert ran.out.startswith("{")
