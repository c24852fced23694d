"""`kill -9` in the middle of `tome build --system comorag` of the novel, and how many calls the next build repeats.

`python bench/resume.py [--system comorag] [--rounds 5] [--limit 16] [--latency 0.2] [--seed 0]`. Each round kills a
build at a random moment, after a random number of its calls got a reply (in the first round: all but three). Then it
starts the build again and lets it end. A model server counts the calls; it takes `--latency` seconds for a reply.

A repeated call is one whose reply had left the server before the kill and that the next build makes again, because the
reply was not on disk yet. So the script prints how long before the kill the oldest such reply had left. Calls that had
no reply at the kill must be made again; they are counted apart. The memory must equal that of an undisturbed build.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the server

from tests.building import mark, play_role
from tests.language.openai_server import Behaviour, OpenAIServer

from tomewise.sample import STORY
from tomewise.tome.tome import Tome

NOVEL = Path(__file__).resolve().parents[1] / ".." / "shared" / "data" / "novels" / "gods_of_mars.txt"


def start_build(path: Path, system: str, limit: int, server: OpenAIServer) -> subprocess.Popen[str]:
    """Start `tome build` in its own process."""
    words = [sys.executable, "-m", "tomewise", "-m", str(path), "build", "--system", system]
    words += ["--model", "openai:test", "--base-url", server.url]
    environment = {**os.environ, "TOMEWISE_LIMIT": str(limit), "NO_PROXY": "127.0.0.1"}
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)


def export(path: Path) -> list[str]:
    with Tome.open(path) as tome:
        return list(tome.memory.export())


def list_marks(requests: list[dict[str, Any]]) -> list[str]:
    return [mark(request) for request in list(requests)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--system", default="comorag")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=int, default=16)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dice = random.Random(options.seed)

    def reply(request: dict[str, Any]) -> Behaviour:
        return play_role(request, delay=options.latency)

    with tempfile.TemporaryDirectory() as folder, OpenAIServer(reply) as server:
        empty, whole, path = (Path(folder) / f"{name}.tome" for name in ("empty", "whole", "killed"))
        with Tome.open(empty, embedder="hash") as tome:
            passages = tome.add(NOVEL if NOVEL.exists() else STORY).passages
        shutil.copy(empty, whole)
        start = time.perf_counter()
        assert start_build(whole, options.system, options.limit, server).wait() == 0
        seconds = time.perf_counter() - start
        every, lines = set(list_marks(server.requests)), export(whole)
        print(f"undisturbed: {passages} passages, {len(every)} calls, {seconds:.1f} s", flush=True)
        repeated = 0
        for number in range(options.rounds):
            shutil.copy(empty, path)
            server.requests, server.sent = [], []
            enough = len(every) - 3 if not number else dice.randint(1, len(every) - 1)
            process = start_build(path, options.system, options.limit, server)
            departures: list[float] = []  # when each reply left the server, within a millisecond or two
            end = None
            while process.poll() is None and (end is None or time.perf_counter() < end):
                now = time.perf_counter()
                departures += [now] * (len(server.sent) - len(departures))
                if end is None and len(departures) >= enough:
                    end = now + dice.uniform(0, options.latency)
                time.sleep(0.001)
            process.kill()
            killed = time.perf_counter()
            process.communicate()
            replied, requests = list_marks(server.sent)[: len(departures)], len(server.requests)
            _, err = (process := start_build(path, options.system, options.limit, server)).communicate()
            assert process.returncode == 0, err
            again = set(list_marks(server.requests[requests:]))
            assert set(list_marks(server.requests)) == every
            assert export(path) == lines, "the memory differs from that of an undisturbed build"
            ages = [killed - when for call, when in zip(replied, departures, strict=True) if call in again]
            waiting = requests - len(replied)
            repeated += len(ages)
            oldest = f", their replies at most {max(ages) * 1000:.0f} ms old" if ages else ""
            print(
                f"killed after {len(replied)} replies: {len(ages)} repeated{oldest}; {waiting} had no reply yet",
                flush=True,
            )
        print(f"{repeated} of {options.rounds * len(every)} calls repeated in {options.rounds} rounds")


if __name__ == "__main__":
    main()
