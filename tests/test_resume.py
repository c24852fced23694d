"""A build that is killed, interrupted or out of room continues where it stopped.

It does not ask again for replies that it has. The server counts the requests. A reply is remembered once it is in the
file of the tome.
"""

from __future__ import annotations

import random
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.building import LAYERS, mark, play_role, read_marks, role, start_command
from tests.full_disk import limit
from tests.language.openai_server import OpenAIServer
from tests.patience import SOON, wait_until
from tests.texts import prose

from tomewise.errors import StoreError
from tomewise.store.records import BUILDS
from tomewise.tome.tome import Tome

LIMIT = 4  # concurrent requests
LATENCY = 0.02  # seconds
NO_ROOM = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))"
HAS_LIMITS = pytest.mark.skipif(sys.platform != "linux", reason="another process can be limited on Linux alone")


class Watched(OpenAIServer):
    """A server that records the requests of one command; after `enough` replies it delays the rest (None: no limit)."""

    def __init__(self) -> None:
        super().__init__(self._play)
        self.enough: int | None = None

    def watch(self, enough: int | None = None) -> None:
        self.requests, self.enough = [], enough

    def _play(self, request):
        must_wait = self.enough is not None and len(self.requests) > self.enough
        return play_role(request, delay=3600 if must_wait else LATENCY)

    @property
    def asked(self) -> list[str]:
        return [mark(request) for request in list(self.requests)]

    @property
    def replied(self) -> set[str]:
        watched = set(map(id, list(self.requests)))  # a reply to a dead process may still leave
        return {mark(request) for request in list(self.sent) if id(request) in watched}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A tome with three documents and no layers."""
    folder = tmp_path_factory.mktemp("library")
    for number in range(3):
        (folder / f"{number}.txt").write_text(prose(number, 40))
    with Tome.open(folder / "empty.tome", embedder="hash", settings={"passage_tokens": 64}) as tome:
        assert tome.add(*sorted(folder.glob("*.txt"))).passages > 20
    return folder / "empty.tome"


@pytest.fixture
def path(library, here):
    return Path(shutil.copy(library, here / "memory.tome"))


def start_build(server, *words, first=""):
    asking = ("--model", "openai:test", "--base-url", server.url)
    return start_command("build", "--system", "comorag", *asking, *words, first=first, TOMEWISE_LIMIT=str(LIMIT))


def finish_build(server):
    """Run a build to its end; returns the marks of its requests."""
    server.watch()
    process = start_build(server)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "failed" not in out
    return server.asked


def check_stopped_by_full_disk(process):
    out, err = process.communicate(timeout=60)
    assert process.returncode == StoreError.exit_code, err
    assert out == ""
    assert "check the disk" in err
    assert err.count("\n") == 1


def read_export(path):
    with Tome.open(path) as tome:
        return list(tome.export())


@pytest.fixture(scope="module")
def whole(library, tmp_path_factory):
    """The marks of the requests of an undisturbed build, and its export."""
    path = Path(shutil.copy(library, tmp_path_factory.mktemp("whole") / "memory.tome"))
    with Watched() as server:
        process = start_build(server, "--tome", path)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        asked = server.asked
        assert Counter(map(role, server.requests)).keys() == LAYERS.keys()
    assert len(set(asked)) == len(asked) > 30
    assert read_marks(path) == set(asked)
    return set(asked), read_export(path)


@pytest.mark.parametrize("has_full_disk", [False, pytest.param(True, marks=HAS_LIMITS)])
def test_stopped_at_any_moment_it_asks_for_no_reply_again_that_it_had(path, whole, has_full_disk):
    """It is killed, or the disk is full; then the next build sends nothing, and there is room again."""
    every, lines = whole
    dice = random.Random(7)
    remembered: set[str] = set()
    counts: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    with Watched() as server:
        for stop in range(2):
            last = dice.randint(1, (len(every) - len(remembered)) // 2)
            orderly = stop % 2 == 0 and not has_full_disk
            server.watch(last if orderly else None)
            process = start_build(server)
            if orderly:  # the server stops replying, and all replies are in the file
                wait_until(lambda last=last: len(server.replied) == last and server.replied <= read_marks(path))
            else:
                wait_until(lambda last=last: len(server.requests) >= last)
                time.sleep(dice.uniform(0, 2 * LATENCY))
            if has_full_disk:
                limit(process.pid)
                check_stopped_by_full_disk(process)
                asked = server.asked
                if stop == 0:
                    check_stopped_by_full_disk(start_build(server, first=NO_ROOM))
                    assert server.asked == asked, "without room no request is sent"
                assert len(set(asked) - read_marks(path)) <= 4 * LIMIT, "what was under way"
            else:
                process.kill()
                _, err = process.communicate()
                assert process.returncode == -signal.SIGKILL, err
            asked = server.asked
            assert remembered.isdisjoint(asked)
            assert len(set(asked)) == len(asked)
            remembered = read_marks(path)
            if orderly:
                assert len(set(asked) - remembered) <= LIMIT, "the concurrent requests"
            counts.update(asked)
            lost.update(set(asked) - remembered)
        assert remembered < every, "the last stop came before the end"
        counts.update(finish_build(server))
        assert counts == Counter(every) + lost, "each once, and once more for each stop while it was running"
        assert read_export(path) == lines
        if not has_full_disk:
            assert finish_build(server) == []


# Kills the process while its layer number `left` is written: after all its requests, before its commit.
DYING = """
import os, signal
from tomewise.store.sql.write import Write
original, left = Write.record_intake, [None] * {left}
def record(self, layer, *given):
    original(self, layer, *given)
    left.pop()
    if not left:
        print(layer, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
Write.record_intake = record
"""


def test_killed_while_a_layer_is_written_it_asks_nothing_of_that_layer_again(path, whole):
    every, lines = whole
    remembered: set[str] = set()
    with Watched() as server:
        for done, left in enumerate((1, 2, 2)):
            server.watch()
            process = start_build(server, first=DYING.format(left=left))
            out, err = process.communicate(timeout=60)
            assert process.returncode == -signal.SIGKILL, err
            with Tome.open(path) as tome:
                assert len(tome.store.notes(BUILDS)) == done
            assert remembered.isdisjoint(server.asked)
            remembered = read_marks(path)
            dying = out.split()[-1]
            assert {mark(request) for request in server.requests if LAYERS[role(request)] == dying} <= remembered
        last = finish_build(server)
        assert remembered.isdisjoint(last)
        assert remembered | set(last) == every
        assert read_export(path) == lines


def test_ctrl_c_keeps_what_was_finished_and_says_how_to_go_on(path, whole):
    every, lines = whole
    replies = 20
    with Watched() as server:
        server.watch(replies)
        process = start_build(server)
        wait_until(lambda: len(server.requests) == replies + LIMIT)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SOON)
        assert process.returncode == 130
        assert out == ""
        assert err == "tome: interrupted; what was finished is kept, the same command goes on from there\n"
        remembered = read_marks(path)
        assert server.replied == remembered
        assert len(remembered) == replies
        assert set(finish_build(server)) == every - remembered
        assert read_export(path) == lines
