"""A build that is killed or interrupted goes on where it was: no reply that it had is asked for again.

Who was asked what is counted by the server. A reply counts as had once it lies in the file of the tome.
"""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.building import LAYERS, mark, play_role, read_marks, role, start_command
from tests.language.openai_server import OpenAIServer
from tests.texts import prose

from tomewise.tome.tome import Tome

LIMIT = 4  # requests under way at a time
LATENCY = 0.02  # seconds


class Watched(OpenAIServer):
    """A server that watches one command at a time, and gives it `enough` replies and no more; None for all."""

    def __init__(self) -> None:
        super().__init__(self._play)
        self.enough: int | None = None

    def watch(self, enough: int | None = None) -> None:
        self.requests, self.enough = [], enough

    def _play(self, request):
        held = self.enough is not None and len(self.requests) > self.enough
        return play_role(request, delay=3600 if held else LATENCY)

    @property
    def asked(self) -> list[str]:
        return [mark(request) for request in list(self.requests)]

    @property
    def replied(self) -> set[str]:
        watched = set(map(id, list(self.requests)))  # a reply to one who is dead may still leave
        return {mark(request) for request in list(self.sent) if id(request) in watched}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A tome with three documents that nothing was built for yet."""
    folder = tmp_path_factory.mktemp("library")
    for number in range(3):
        (folder / f"{number}.txt").write_text(prose(number, 60))
    with Tome.open(folder / "empty.tome", embedder="hash", passage_tokens=64) as tome:
        assert tome.add(*sorted(folder.glob("*.txt"))).passages > 30
    return folder / "empty.tome"


@pytest.fixture
def path(library, here):
    return Path(shutil.copy(library, here / "memory.tome"))


def building(server, *words, first=""):
    asking = ("--model", "openai:test", "--base-url", server.url)
    return start_command("build", "--system", "comorag", *asking, *words, first=first, TOMEWISE_LIMIT=str(LIMIT))


def built(server):
    """A build that nobody disturbs: the marks of what it asked."""
    server.watch()
    process = building(server)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "failed" not in out
    return server.asked


def exported(path):
    with Tome.open(path) as tome:
        return list(tome.export())


@pytest.fixture(scope="module")
def whole(library, tmp_path_factory):
    """What a build asks and makes that nobody disturbs."""
    path = Path(shutil.copy(library, tmp_path_factory.mktemp("whole") / "memory.tome"))
    with Watched() as server:
        process = building(server, "--tome", path)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        asked = server.asked
        assert Counter(map(role, server.requests)).keys() == LAYERS.keys()
    assert len(set(asked)) == len(asked) > 50
    assert read_marks(path) == set(asked)
    return set(asked), exported(path)


def until(holds, process, seconds=30.0):
    """Wait until something holds, or the process has ended."""
    end = time.monotonic() + seconds
    while not holds() and process.poll() is None:
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.01)


def test_killed_at_any_moment_it_asks_for_no_reply_again_that_it_had(path, whole):
    every, lines = whole
    dice = random.Random(7)
    had: set[str] = set()
    counts: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    with Watched() as server:
        for kill in range(4):
            last = dice.randint(1, (len(every) - len(had)) // 2)
            orderly = kill % 2 == 0
            server.watch(last if orderly else None)
            process = building(server)
            if orderly:  # no further reply comes, and those that came are in the file
                until(lambda last=last: len(server.replied) == last and server.replied <= read_marks(path), process)
            else:
                until(lambda last=last: len(server.requests) >= last, process)
                time.sleep(dice.uniform(0, 2 * LATENCY))
            process.kill()
            _, err = process.communicate()
            assert process.returncode == -signal.SIGKILL, err
            asked = server.asked
            assert had.isdisjoint(asked)
            assert len(set(asked)) == len(asked)
            had = read_marks(path)
            if orderly:
                assert len(set(asked) - had) <= LIMIT, "what was under way"
            counts.update(asked)
            lost.update(set(asked) - had)
        assert had < every, "the last kill came before the end"
        counts.update(built(server))
        assert counts == Counter(every) + lost, "each once, and once more for each kill that it was under way at"
        assert exported(path) == lines
        assert built(server) == []


# Dies while the given layer in turn is written, after all it asked for and before it is committed.
DYING = """
import os, signal
from tomewise.store.sqlite.write import Write
noted, left = Write.record_build, [None] * {left}
def record(self, layer, record):
    noted(self, layer, record)
    left.pop()
    if not left:
        print(layer, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
Write.record_build = record
"""


def test_killed_while_a_layer_is_written_it_asks_nothing_of_that_layer_again(path, whole):
    every, lines = whole
    had: set[str] = set()
    with Watched() as server:
        for done, left in enumerate((1, 2, 2)):
            server.watch()
            process = building(server, first=DYING.format(left=left))
            out, err = process.communicate(timeout=60)
            assert process.returncode == -signal.SIGKILL, err
            with Tome.open(path) as tome:
                assert len(tome.store.builds()) == done
            assert had.isdisjoint(server.asked)
            had = read_marks(path)
            dying = out.split()[-1]
            assert {mark(request) for request in server.requests if LAYERS[role(request)] == dying} <= had
        last = built(server)
        assert had.isdisjoint(last)
        assert had | set(last) == every
        assert exported(path) == lines


def test_ctrl_c_keeps_what_was_finished_and_says_how_to_go_on(path, whole):
    every, lines = whole
    replies = 20
    with Watched() as server:
        server.watch(replies)
        process = building(server)
        until(lambda: len(server.requests) == replies + LIMIT, process)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert time.monotonic() - begun < 2
        assert process.returncode == 130
        assert out == ""
        assert err == "tome: interrupted; what was finished is kept, the same command goes on from there\n"
        had = read_marks(path)
        assert server.replied == had
        assert len(had) == replies
        assert set(built(server)) == every - had
        assert exported(path) == lines
