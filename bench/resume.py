"""`kill -9` in the middle of `tome build --system comorag` of the novel, and how many calls the next build repeats.

`python bench/resume.py [--system comorag] [--rounds 5] [--limit 16] [--latency 0.2] [--seed 0]`. In each round a build
is killed at a random moment after a random share of its calls was replied to (the first: all but three), then started
again and left to end. Calls are counted by the server, which is asked over HTTP and takes `--latency` seconds for a
reply. A call is repeated if its reply had left the server before the kill and it is asked for again: those whose reply
was not yet on disk, so it is said how long before the kill it had left. Calls without a reply by then have to be asked
for again and are counted apart. The memory must equal that of a build that was left alone.
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


def building(path: Path, system: str, limit: int, server: OpenAIServer) -> subprocess.Popen[str]:
    """`tome build` in a process of its own."""
    words = [sys.executable, "-m", "tomewise", "-m", str(path), "build", "--system", system]
    words += ["--model", "openai:test", "--base-url", server.url]
    environment = {**os.environ, "TOMEWISE_LIMIT": str(limit), "NO_PROXY": "127.0.0.1"}
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)


def exported(path: Path) -> list[str]:
    with Tome.open(path) as tome:
        return list(tome.export())


def marks(requests: list[dict[str, Any]]) -> list[str]:
    return [mark(request) for request in list(requests)]


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--system", default="comorag")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--limit", type=int, default=16)
    options.add_argument("--latency", type=float, default=0.2)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    dice = random.Random(given.seed)

    def reply(request: dict[str, Any]) -> Behaviour:
        return play_role(request, delay=given.latency)

    with tempfile.TemporaryDirectory() as folder, OpenAIServer(reply) as server:
        empty, whole, path = (Path(folder) / f"{name}.tome" for name in ("empty", "whole", "killed"))
        with Tome.open(empty, embedder="hash") as tome:
            passages = tome.add(NOVEL if NOVEL.exists() else STORY).passages
        shutil.copy(empty, whole)
        begun = time.perf_counter()
        assert building(whole, given.system, given.limit, server).wait() == 0
        seconds = time.perf_counter() - begun
        every, lines = set(marks(server.requests)), exported(whole)
        print(f"undisturbed: {passages} passages, {len(every)} calls, {seconds:.1f} s", flush=True)
        repeated = 0
        for number in range(given.rounds):
            shutil.copy(empty, path)
            server.requests, server.sent = [], []
            enough = len(every) - 3 if not number else dice.randint(1, len(every) - 1)
            process = building(path, given.system, given.limit, server)
            left: list[float] = []  # when each reply did, within a millisecond or two
            end = None
            while process.poll() is None and (end is None or time.perf_counter() < end):
                now = time.perf_counter()
                left += [now] * (len(server.sent) - len(left))
                if end is None and len(left) >= enough:
                    end = now + dice.uniform(0, given.latency)
                time.sleep(0.001)
            process.kill()
            killed = time.perf_counter()
            process.communicate()
            replied, started = marks(server.sent)[: len(left)], len(server.requests)
            _, err = (process := building(path, given.system, given.limit, server)).communicate()
            assert process.returncode == 0, err
            again = set(marks(server.requests[started:]))
            assert set(marks(server.requests)) == every
            assert exported(path) == lines, "the memory differs from that of an undisturbed build"
            ages = [killed - when for one, when in zip(replied, left, strict=True) if one in again]
            waiting = started - len(replied)
            repeated += len(ages)
            oldest = f", of replies {max(ages) * 1000:.0f} ms old at most" if ages else ""
            print(
                f"killed after {len(replied)} replies: {len(ages)} repeated{oldest}; {waiting} had no reply yet",
                flush=True,
            )
        print(f"{repeated} of {given.rounds * len(every)} calls repeated in {given.rounds} rounds")


if __name__ == "__main__":
    main()
