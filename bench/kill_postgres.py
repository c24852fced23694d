"""`kill -9` of a client or of its server process at random moments of an add and a build, and what the tome then holds.

`python bench/kill_postgres.py [--rounds 20] [--latency 0.1] [--seed 0]`. The tome is in a database of a server that
this script starts, with fsync. Each round begins with an empty tome. A process adds the parts of the sample story and
builds `hipporag2` with a model server. After a random one of these adds and calls either this process is killed or the
process of PostgreSQL that serves it, after which the server starts anew by itself. Then the same work runs to its end.

Checked in each round: each document whose add had returned is there, and at most one more; every passage is one of the
export in the end; no reply that was kept is asked for again; this export is that of an undisturbed build in a file.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

import psycopg
from tests.building import mark, play_role
from tests.language.openai_server import Behaviour, OpenAIServer

from postgres import lend, start_server
from tomewise.sample import STORY
from tomewise.tome.tome import Tome
from tomewise.types import Document

_MARK = re.compile(r"mark[a-p]{20}")
_PARTS = 8


def work(address: str, url: str) -> None:
    """Add the parts of the story, say which were added, and build."""
    text = STORY.read_text(encoding="utf-8")
    size = -(-len(text) // _PARTS)
    with Tome.open(address, embedder="hash", model="openai:test", base_url=url) as tome:
        print("open", flush=True)
        known = {record.id for record in tome.documents()}
        for number in range(_PARTS):
            if f"part{number}" not in known:
                tome.add(Document(id=f"part{number}", text=text[number * size : (number + 1) * size]))
                print(f"part{number}", flush=True)
        tome.build("hipporag2")


def start_work(address: str, server: OpenAIServer) -> subprocess.Popen[str]:
    environment = {**os.environ, "NO_PROXY": "127.0.0.1", "OPENAI_API_KEY": "none", "TOMEWISE_LIMIT": "4"}
    words = [sys.executable, __file__, "work", address, server.url]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def export(address: str) -> list[str]:
    with Tome.open(address, embedder="hash") as tome:
        return list(tome.memory.export())


def wait_for(database: str) -> None:
    """Wait until the server, which ends all connections when one of its processes is killed, has started anew."""
    end = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(database).close()
            return
        except psycopg.OperationalError:
            assert time.monotonic() < end, "the server does not come back"
            time.sleep(0.02)


def read_kept(database: str, tome: str) -> set[str]:
    """The marks of the requests whose replies are kept; an empty set before the tome is made."""
    with psycopg.connect(database) as connection:
        if not connection.execute("SELECT to_regclass(%s)", (f'"{tome}".calls',)).fetchone()[0]:  # type: ignore[index]
            return set()
        rows = connection.execute(f'SELECT reply FROM "{tome}".calls'.encode()).fetchall()
    return {found for (reply,) in rows for found in _MARK.findall(reply)}


def kill_server_process(database: str) -> bool:
    """Kill the process that serves a client; False where nobody is connected."""
    query = (
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'tomewise' ORDER BY state = 'active' DESC LIMIT 1"
    )
    with psycopg.connect(database) as connection:
        found = connection.execute(query).fetchone()
    if found:
        os.kill(found[0], signal.SIGKILL)
    return bool(found)


def main() -> None:
    if sys.argv[1:2] == ["work"]:
        return work(*sys.argv[2:])
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--latency", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dice = random.Random(options.seed)

    def reply(request: dict[str, Any]) -> Behaviour:
        return play_role(request, delay=options.latency)

    with tempfile.TemporaryDirectory() as folder, OpenAIServer(reply) as model, start_server() as server:
        os.environ["TOMEWISE_CACHE"] = f"{folder}/cache"
        file = f"{folder}/whole.tome"
        _, err = (process := start_work(file, model)).communicate()
        assert process.returncode == 0, err
        whole, every = export(file), {mark(request) for request in model.requests}
        with lend(f"{server.url}#whole") as address:
            process = start_work(address, model)
            assert process.stdout is not None
            process.stdout.readline()
            start = time.perf_counter()
            _, err = process.communicate()
            seconds = time.perf_counter() - start
            assert process.returncode == 0, err
            assert export(address) == whole, "an undisturbed build differs from that in a file"
        print(f"undisturbed: {seconds:.1f} s, {len(every)} calls, {len(whole)} lines, equal in a file", flush=True)
        for number in range(options.rounds):
            is_client, moment = number % 2 == 0, dice.randint(0, _PARTS + len(every))
            with lend(f"{server.url}#round{number}") as address:
                check_round(server.url, address, model, whole, is_client, moment, dice.uniform(0, 2 * options.latency))
        print(
            "in each round all that was committed was there, no kept reply was asked for again, and the exports equal"
        )
    return None


def check_round(
    database: str, address: str, model: OpenAIServer, whole: list[str], is_client: bool, moment: int, later: float
) -> None:
    """Kill when so many documents were added and calls made, or a little later, and look what is there."""
    model.requests, model.sent = [], []
    process = start_work(address, model)
    assert process.stdout is not None
    added: list[str] = []
    while len(added) < min(moment, _PARTS) and (line := process.stdout.readline()):
        added += line.split()
        added = [name for name in added if name != "open"]
    while len(model.requests) < moment - _PARTS and process.poll() is None:
        time.sleep(0.002)
    time.sleep(later)
    if is_client:
        process.kill()
    hit = is_client or kill_server_process(database)
    out, err = process.communicate()
    added += [name for name in out.split() if name != "open"]
    assert is_client or not hit or process.returncode == 0 or "cannot be reached or was lost" in err, err
    if not is_client:
        wait_for(database)
    before = len(model.requests)
    kept = read_kept(database, address.rpartition("#")[2])
    if added:
        with Tome.open(address, embedder="hash") as tome:
            found = {record.id for record in tome.documents()}
            passages = {passage.id for passage in tome.store.passages().values()}
        assert set(added) <= found, "a document that was committed is gone"
        assert len(found) <= len(added) + 1, "a document is there that was not added"
        assert all(any(f'"{name}"' in line for line in whole) for name in passages), "a part of a passage is there"
    _, err = (again := start_work(address, model)).communicate()
    assert again.returncode == 0, err
    repeated = {mark(request) for request in model.requests[before:]} & kept
    assert not repeated, "a kept reply was asked for again"
    assert export(address) == whole, "the export differs from that of an undisturbed build in a file"
    who = "client" if is_client else "server process" if hit else "nobody (no client was connected)"
    print(
        f"{who} killed at {moment} and {later:.2f} s: {len(added)} of {_PARTS} documents, {len(kept)} replies kept",
        flush=True,
    )


if __name__ == "__main__":
    main()
