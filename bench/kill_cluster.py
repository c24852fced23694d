"""`kill -9` of a worker, of a node and of the driver at random moments of a build and of an evaluation on Ray.

`python bench/kill_cluster.py [--times 3] [--seed 0] [--only build,evaluation]` starts two nodes of Ray and a model
server. A build is that of `hipporag2` over the sample story with two workers, an evaluation one of two systems over six
memories; a third node and a third worker are there where a node is killed. A driver that was killed is started again.

Checked each time: the result (the export, or the rows) is that of an undisturbed run in one process; no reply that was
kept at the kill is asked for again; every row stands in the journal once. The table gives the time, also ÷ that of an
undisturbed run on as many workers; with the driver it is that of both runs.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.building import mark
from tests.cluster.killing import check_rows, find_processes, make_killed, play, read_kept, wait_for
from tests.cluster.two_nodes import Nodes, start_nodes
from tests.language.openai_server import Behaviour, OpenAIServer

from tomewise.sample import STORY
from tomewise.tome.tome import Tome

LATENCY = {"build": 0.3, "evaluation": 1.0}  # seconds, so that the work takes longer than its start
VICTIMS = ("worker", "node", "driver")


@dataclass(frozen=True)
class Work:
    """Something to disturb: what runs it, which file keeps its replies, and a check against an undisturbed run."""

    name: str
    run: Callable[[str, str, dict[str, Any]], object]
    file: str
    check: Callable[[str, str, str], None]


def build(path: str, url: str, place: dict[str, Any]) -> None:
    """Build a graph over the story, which is added first where it is not there yet."""
    settings = {"passage_tokens": 64, "limit": 4, **place}
    with Tome.open(path, model="openai:test", embedder="hash", base_url=url, settings=settings) as tome:
        if not tome.documents():
            tome.add(STORY)
        tome.build("hipporag2")


def check_export(path: str, whole: str, url: str) -> None:
    with Tome.open(path, embedder="hash") as tome, Tome.open(whole, embedder="hash") as undisturbed:
        assert list(tome.export()) == list(undisturbed.export()), "the export is not that of an undisturbed run"


def evaluate(path: str, url: str, place: dict[str, Any]) -> None:
    make_killed(path, url, **place).run()


def check_journals(path: str, whole: str, url: str) -> None:
    """A run that has nothing left to ask reads the rows."""
    disturbed, undisturbed = make_killed(path, url), make_killed(whole, url)
    disturbed.run()
    undisturbed.run()
    check_rows(disturbed, undisturbed)


WORKS = (Work("build", build, "", check_export), Work("evaluation", evaluate, "calls.tome", check_journals))


def play_late(delay: float, request: dict[str, Any]) -> Behaviour:
    return replace(play(request), delay=delay)


def start_driver(work: Work, path: Path, server: OpenAIServer, workers: int) -> subprocess.Popen[str]:
    words = [sys.executable, __file__, work.name, str(path), server.url, str(workers)]
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True)


def finish(driver: subprocess.Popen[str]) -> None:
    _, err = driver.communicate(timeout=300)
    assert driver.returncode == 0, err


@contextmanager
def add_node(nodes: Nodes, victim: str) -> Iterator[Any]:
    """One more node where a node is killed."""
    node = nodes.add() if victim == "node" else None
    try:
        yield node
    finally:
        if node is not None and node in nodes.cluster.worker_nodes:
            nodes.cluster.remove_node(node, allow_graceful=False)


def check_kill(
    work: Work, victim: str, nodes: Nodes, server: OpenAIServer, folder: Path, seconds: float, after: float, whole: str
) -> str:
    """Run the work, kill, and check what came of it. Returns a line of the table."""
    path = folder / "killed"
    server.requests.clear()
    with add_node(nodes, victim) as node:
        begun = time.perf_counter()
        driver = start_driver(work, path, server, 3 if node else 2)
        wait_for(server, 1)
        time.sleep(after)
        was_running = driver.poll() is None
        kept, before = read_kept(path / work.file), find_processes("Worker")
        if victim == "driver":
            driver.send_signal(signal.SIGKILL)
        elif victim == "node":
            nodes.cluster.remove_node(node, allow_graceful=False)
        elif before:
            os.kill(random.Random(after).choice(before), signal.SIGKILL)
        asked = len(server.requests)
        if victim == "driver":
            driver.communicate()
            driver = start_driver(work, path, server, 2)
        finish(driver)
        took = time.perf_counter() - begun
    repeated = kept & set(map(mark, server.requests[asked:]))
    assert not repeated, f"{len(repeated)} kept replies were asked for again"
    assert server.most_at_once <= 8, "the limit of 4 holds, but for what a dead worker has under way"
    requests = len(server.requests)
    work.check(str(path), whole, server.url)
    assert len(server.requests) == requests, "something was left to ask"
    when = f"{after:.1f} s" if was_running else f"{after:.1f} s (it had ended)"
    return f"| {work.name} | {victim} | {when} | {len(kept)} | {requests} | {took:.1f} s | {took / seconds:.2f} |"


def run_undisturbed(work: Work, nodes: Nodes, server: OpenAIServer, place: Path, victim: str) -> tuple[float, float]:
    """Run undisturbed. Returns the seconds on as many workers, and those from the first request on."""
    server.requests.clear()
    with add_node(nodes, victim) as node:
        begun = time.perf_counter()
        driver = start_driver(work, place / f"undisturbed-{victim}", server, 3 if node else 2)
        wait_for(server, 1)
        first = time.perf_counter()
        finish(driver)
        return time.perf_counter() - begun, time.perf_counter() - first


def disturb(work: Work, nodes: Nodes, server: OpenAIServer, place: Path, times: int, dice: random.Random) -> None:
    """Run the work undisturbed, then kill each victim so many times; print a line for each."""
    place.mkdir()
    server.handler = partial(play_late, LATENCY[work.name])
    server.requests.clear()
    finish(start_driver(work, place / "whole", server, 0))
    print(f"{work.name}: {len(server.requests)} calls in one process; load {os.getloadavg()[0]:.1f}", flush=True)
    on_two, on_three = (run_undisturbed(work, nodes, server, place, victim) for victim in ("worker", "node"))
    for workers, (whole, asking) in ((2, on_two), (3, on_three)):
        print(f"on {workers} workers: {whole:.1f} s, {asking:.1f} of these from the first request on")
    print("| work | killed | after the first request | replies kept then | calls | time | ÷ undisturbed |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for victim in VICTIMS:
        seconds, asking = on_three if victim == "node" else on_two
        for number in range(times):
            apart = place / f"{victim}{number}"
            apart.mkdir()
            moment = dice.uniform(0, asking)
            print(check_kill(work, victim, nodes, server, apart, seconds, moment, str(place / "whole")), flush=True)
    print(f"load {os.getloadavg()[0]:.1f}", flush=True)


def main() -> None:
    """Kill, check and print the tables."""
    if sys.argv[1:2] and sys.argv[1] in {work.name for work in WORKS}:
        name, path, url, workers = sys.argv[1:]
        place = {"on": "ray", "workers": int(workers)} if int(workers) else {}
        next(work for work in WORKS if work.name == name).run(path, url, place)
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="build,evaluation", help="which works, with a comma between")
    options = parser.parse_args()
    dice = random.Random(options.seed)
    with start_nodes() as nodes, tempfile.TemporaryDirectory() as folder, OpenAIServer(play) as server:
        for work in WORKS:
            if work.name in options.only.split(","):
                disturb(work, nodes, server, Path(folder) / work.name, options.times, dice)


if __name__ == "__main__":
    main()
