"""Evaluations whose memories workers build and ask: rows and tables are those of one process, whatever ends."""

from __future__ import annotations

import csv
import errno
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.building import mark
from tests.cluster.killing import (
    check_rows,
    drop_times,
    find_processes,
    kill,
    list_rows,
    make_dataset,
    make_killed,
    play,
    read_kept,
    wait_for,
)
from tests.cluster.two_nodes import Nodes
from tests.conftest import Ran
from tests.language.openai_server import OpenAIServer
from tests.patience import wait_until

from tomewise.cluster import ray_cluster
from tomewise.errors import Locked, MissingDependency, TomewiseError, UsageError
from tomewise.evaluate.experiment import Experiment
from tomewise.evaluate.items import Item, Judgement
from tomewise.evaluate.judges import Judge
from tomewise.evaluate.report import write_csv
from tomewise.language.roles import ANSWER, AnswerIn
from tomewise.recall.flat import Dense
from tomewise.systems.kit import Kit, System, answer_once

POOLED: dict[str, Any] = {"on": "ray", "workers": 2}
RUN = """
import sys
from tests.cluster.killing import make_killed

make_killed(sys.argv[1], sys.argv[2], on="ray", workers=1).run()
"""


def fill_disk(kit: Kit) -> System:
    """A recipe on a machine whose disk is full."""
    raise OSError(errno.ENOSPC, "No space left on device")


def own_recipe(kit: Kit) -> System:
    """Retrieve a few passages."""
    return answer_once(kit, Dense(kit.store, kit.embedder), limit=3, context=500)


@pytest.fixture(scope="module")
def player() -> Iterator[OpenAIServer]:
    with OpenAIServer(play) as server:
        yield server


@pytest.fixture
def server(player: OpenAIServer) -> OpenAIServer:
    """A server that has seen no request, see `play`."""
    wait_until(lambda: not player.at_once)
    player.requests.clear()
    player.most_at_once = 0
    return player


@pytest.fixture(scope="module")
def whole_run(player: OpenAIServer, tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """The evaluation that others kill, in one process to its end."""
    experiment = make_killed(str(tmp_path_factory.mktemp("alone")), player.url)
    experiment.run()
    return experiment


def count_repeated(server: OpenAIServer, kept: set[str], before: int) -> int:
    """How many kept replies were asked for again after so many requests."""
    return len(kept & set(map(mark, server.requests[before:])))


@pytest.mark.cluster
def test_rows_and_tables_are_those_of_one_process(nodes: object, tmp_path: Path) -> None:
    made = [
        Experiment(
            ["hybrid", "cogitorag", "raptor", own_recipe],
            make_dataset(3, 60),
            embedder="hash",
            out=tmp_path / name,
            **place,
        )
        for name, place in (("pooled", POOLED), ("alone", {}))
    ]
    found = []
    for experiment in made:
        builds = drop_times(dict(experiment.run().builds))
        lines = csv.DictReader(StringIO(write_csv(experiment.table(baseline="hybrid"))))
        found.append((list_rows(experiment), [drop_times(line) for line in lines], builds))
    assert found[0] == found[1]
    assert len(found[1][0]) == 24


@pytest.mark.cluster
def test_a_lost_machine_costs_no_row_and_no_kept_reply(
    nodes: Nodes, tmp_path: Path, server: OpenAIServer, whole_run: Experiment
) -> None:
    server.requests.clear()
    with ThreadPoolExecutor(1) as apart:
        node = nodes.add()
        experiment = make_killed(str(tmp_path), server.url, on="ray", workers=3)
        second = make_killed(str(tmp_path), server.url)  # which starts no workers, so that the first one goes on
        running = apart.submit(experiment.run)
        wait_for(server, 1)
        with pytest.raises(Locked):
            second.run()
        wait_for(server, 30)
        wait_until(lambda: read_kept(tmp_path / "calls.tome"))
        kept = read_kept(tmp_path / "calls.tome")
        nodes.cluster.remove_node(node, allow_graceful=False)
        before = len(server.requests)
        running.result(120)
    assert kept
    assert not count_repeated(server, kept, before)
    assert server.most_at_once <= 4
    check_rows(experiment, whole_run)


async def ask_once(model: Any, embedder: Any, item: Item, answer: str) -> Judgement:
    await model.ask(ANSWER, AnswerIn(question=f"Is it true of {item.id} that {answer}?"))
    return Judgement(score=1.0)


@pytest.mark.cluster
def test_one_budget_holds_over_all_workers_and_judges(nodes: object, tmp_path: Path, server: OpenAIServer) -> None:
    """It ends as in one process: further questions fail, and the next run goes on where it was."""
    given: dict[str, Any] = {"judges": [Judge("once", ask_once)]}
    found = []
    for name, place in (("alone", {}), ("pooled", POOLED)):
        server.requests.clear()
        results = make_killed(str(tmp_path / name), server.url, budget="20 calls", **given, **place).run()
        errors = {str(row.error).partition(":")[0] for row in results.rows if row.error}
        found.append((len(server.requests), len(results.rows), errors))
    assert found == [(20, 24, {"BudgetExceeded"})] * 2
    kept = read_kept(tmp_path / "pooled" / "calls.tome")
    again = make_killed(str(tmp_path / "pooled"), server.url, **given).run(retry_failed=True)
    assert not count_repeated(server, kept, 20)
    assert [row.error for row in again.rows] == [None] * 24


@pytest.mark.cluster
def test_a_killed_worker_gives_its_budget_back(nodes: object, tmp_path: Path, server: OpenAIServer) -> None:
    """What it had asked counts; nobody waits for what it had reserved."""
    with ThreadPoolExecutor(1) as apart:
        running = apart.submit(make_killed(str(tmp_path), server.url, budget="40 calls", **POOLED).run)
        wait_for(server, 15)
        kill()
        results = running.result(120)
    assert {str(row.error).partition(":")[0] for row in results.rows if row.error} == {"BudgetExceeded"}
    assert 40 - 4 <= len(server.requests) <= 40


@pytest.mark.cluster
@pytest.mark.parametrize("victim", ["hub", "driver"])
def test_what_is_left_of_an_ended_evaluation_goes_on_without_ray(
    nodes: object, tmp_path: Path, server: OpenAIServer, whole_run: Experiment, victim: str
) -> None:
    """Without the hub, which keeps replies, the driver ends by itself."""
    server.requests.clear()
    out = str(tmp_path)
    driver = subprocess.Popen([sys.executable, "-c", RUN, out, server.url], stderr=subprocess.PIPE, text=True)
    wait_for(server, 30)
    wait_until(lambda: read_kept(tmp_path / "calls.tome"))
    if victim == "driver":
        driver.kill()
    else:
        kill("Hub")
    _, err = driver.communicate(timeout=60)
    assert victim != "hub" or "the process that keeps replies" in err
    wait_until(lambda: not find_processes("Worker") and not server.at_once)
    before, kept = len(server.requests), read_kept(tmp_path / "calls.tome")
    experiment = make_killed(out, server.url)
    experiment.run()
    assert not count_repeated(server, kept, before)
    check_rows(experiment, whole_run)


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


def test_a_function_that_workers_cannot_import_is_refused(tmp_path: Path) -> None:
    def inside(kit: Kit) -> System:
        return own_recipe(kit)

    with pytest.raises(UsageError, match="is a function that workers cannot import"):
        Experiment([inside], make_dataset(1), embedder="hash", out=tmp_path, on="ray")


def test_without_ray_the_line_names_the_command_that_installs_it(
    command: Callable[..., Ran], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "find_spec", lambda _: None)
    (here / "novel.txt").write_text("The tide turned at nine.")
    for words in (("eval", "run", "naive", "--data", "sample", "--on", "ray"), ("add", "novel.txt", "--on", "ray")):
        ran = command(*words)
        assert ran.code == MissingDependency.exit_code
        assert 'run `pip install "tomewise[ray]"`' in ran.err
    assert not (here / "memory.tome").exists()


@pytest.mark.cluster
def test_given_extractions_reach_the_workers(nodes: object, tmp_path: Path) -> None:
    """And so does the reason why a system is left out."""
    data, given = make_dataset(2), tmp_path / "openie.jsonl"
    rows = [
        {"id": each.id, "entities": ["Mara", each.id], "triples": [["Mara", "keeps", each.id]]}
        for each in data.documents
    ]
    given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    dataset = replace(data, openie=given, items=tuple(replace(item, documents=()) for item in data.items))
    common: dict[str, Any] = {"embedder": "hash", "retrieval_only": True}
    pooled, alone = (
        Experiment(["hipporag2", "comorag", "naive"], dataset, out=tmp_path / name, **common, **place)
        for name, place in (("pooled", {"on": "ray", "workers": 1}), ("alone", {}))
    )
    assert pooled.run().refused == alone.run().refused
    assert set(pooled.results.refused) == {"comorag"}
    assert list_rows(pooled) == list_rows(alone)
