"""`kill -9` at random moments of `tome add`, `tome build` and `tome ask`, a thousand times, and what is left each time.

`python bench/soak.py [--rounds 1000] [--minutes 10] [--seed 0]`. A round begins one of the three commands on a small
library and kills it after a random time; some end before. After each round, by reading the file itself: it is sound,
every document, reply and trace that lay in it before the round still does, and no reply that lay in it was asked for
again. When a build has ended, the memory must be that of a build that nobody disturbed, and the next one starts from an
empty file. Commands are forked off a process that has imported everything, so that a round takes a fraction of a
second; the server that plays the model counts what it is asked.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the server

from tests.building import mark, play_role, read_marks, role
from tests.language.openai_server import Behaviour, OpenAIServer
from tests.texts import prose

from tomewise.errors import StoreError
from tomewise.tome.tome import Tome

DOCUMENTS = 8
LATENCY = 0.02  # seconds that a reply takes
FORKING = """
import json, os, sys
sys.modules["umap"] = None
import tomewise.language.provider, tomewise.memory.tree.mixture, tomewise.reading.read, tomewise.terminal.render
import tomewise.tome.tome
from tomewise.terminal.program import main
for line in sys.stdin:
    child = os.fork()
    if not child:
        sys.argv = ["tome", *json.loads(line)]
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open("errors.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        main()
    print(child, flush=True)
    sys.stdin.readline()
    print(os.waitpid(child, 0)[1], flush=True)
"""


class Commands:
    """Runs `tome` in processes forked off one that waits."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        environment = {**os.environ, "NO_PROXY": "127.0.0.1", "TOMEWISE_LIMIT": "4"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", FORKING],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=folder,
        )

    def run(self, words: Sequence[str], seconds: float | None = None) -> int:
        """The exit code of one command, or -9 where it was killed after so many seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(list(words)) + "\n")
        self._process.stdin.flush()
        child = int(self._process.stdout.readline())
        if seconds is not None:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)  # nobody waits for it yet, so the number is still its own
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return os.waitstatus_to_exitcode(int(self._process.stdout.readline()))

    def errors(self) -> str:
        """What the last command wrote to standard error."""
        return (self._folder / "errors.txt").read_text()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@dataclass(frozen=True)
class Held:
    """What lies in the file of a tome."""

    documents: frozenset[tuple[str, str]]
    replies: frozenset[str]
    traces: int


def read_file(path: Path) -> Held:
    """Read with SQLite alone, without any help from the code that wrote it."""
    with closing(sqlite3.connect(path)) as file:
        tables = {name for (name,) in file.execute("SELECT name FROM sqlite_master")}
        if "traces" not in tables:
            return Held(frozenset(), frozenset(), 0)
        assert file.execute("PRAGMA quick_check").fetchone() == ("ok",), "the file is damaged"
        documents = frozenset(file.execute("SELECT id, digest FROM documents"))
        (traces,) = file.execute("SELECT count(*) FROM traces").fetchone()
    return Held(documents, frozenset(read_marks(path)), traces)


def export(path: Path) -> list[str]:
    with Tome.open(path, embedder="hash") as tome:
        return list(tome.export())


class Soak:
    """One tome after the other, from nothing to a memory that is asked."""

    def __init__(self, folder: Path, server: OpenAIServer, commands: Commands, dice: random.Random) -> None:
        self._server = server
        self._commands = commands
        self._dice = dice
        self._path = folder / "killed.tome"
        texts = [str(path) for path in sorted(folder.glob("*.txt"))]
        model = ["--model", "openai:test", "--base-url", server.url]
        self._words = {
            "add": ["add", *texts, "--embedder", "hash", "--passage-tokens", "64"],
            "build": ["build", "--system", "comorag", *model],
            "ask": ["ask", "Who burned the letter?", "--system", "comorag", *model],
        }
        self._built = False
        self.counts: Counter[str] = Counter()
        self._seconds: dict[str, float] = {}
        for whole in (folder / "first.tome", folder / "whole.tome"):  # the first run of all takes longer
            for verb, words in self._words.items():
                begun = time.perf_counter()
                assert commands.run(["-m", str(whole), *words]) == 0
                self._seconds[verb] = time.perf_counter() - begun
        self._whole = export(whole)
        self.calls = len(read_marks(whole))

    def round(self) -> None:
        """One command, killed or not, and a look at what is left."""
        before = read_file(self._path) if self._path.exists() else Held(frozenset(), frozenset(), 0)
        verb = self._choose(before)
        self._server.requests = []
        seconds = self._dice.uniform(0, 1.15 * self._seconds[verb])
        code = self._commands.run(["-m", str(self._path), *self._words[verb]], seconds)
        self.counts[f"{verb} killed" if code == -signal.SIGKILL else f"{verb} ended"] += 1
        allowed = (0, -signal.SIGKILL) if verb != "ask" or self._built else (StoreError.exit_code, -signal.SIGKILL)
        assert code in allowed, f"{verb} ended with {code}: {self._commands.errors()}"
        self._check(before, verb, ended=code == 0)

    def _choose(self, held: Held) -> str:
        if self._built:
            return "ask"
        if len(held.documents) < DOCUMENTS:
            return self._dice.choice(["add", "add", "add", "ask"]) if held.documents else "add"
        return self._dice.choice(["build", "build", "build", "ask"])  # asked too early, it says what is missing

    def _check(self, before: Held, verb: str, *, ended: bool) -> None:
        if not self._path.exists():
            return
        asked = [mark(request) for request in list(self._server.requests) if role(request)]
        repeated = before.replies.intersection(asked)
        after = read_file(self._path)
        assert not repeated, f"{len(repeated)} replies that were there are asked for again"
        assert len(asked) == len(set(asked)), "one call is made twice"
        assert before.documents <= after.documents, "a document is lost"
        assert before.replies <= after.replies, "a reply is lost"
        assert after.traces >= before.traces + (verb == "ask" and ended), "a trace is lost"
        self.counts["calls"] += len(asked)
        if verb == "build" and ended:
            assert export(self._path) == self._whole, "the memory differs from that of an undisturbed build"
            self.counts["memories compared"] += 1
            self._built = True
        elif verb == "ask" and ended:
            self._clear()

    def _clear(self) -> None:
        self._built = False
        for path in (self._path, *self._path.parent.glob("killed.tome-*")):
            if path.is_dir():
                for one in path.iterdir():
                    one.unlink()
                path.rmdir()
            elif path.exists():
                path.unlink()


def play(request: dict[str, Any]) -> Behaviour:
    return play_role(request, delay=LATENCY)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=1000)
    options.add_argument("--minutes", type=float, default=60)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, OpenAIServer(play) as server:
        for number in range(DOCUMENTS):
            (Path(folder) / f"{number}.txt").write_text(prose(number, 20 * (number % 3 + 1)))
        commands = Commands(Path(folder))
        try:
            soak = Soak(Path(folder), server, commands, random.Random(given.seed))
            print(f"undisturbed: {soak.calls} calls", flush=True)
            begun = time.monotonic()
            for number in range(1, given.rounds + 1):
                soak.round()
                if number % 50 == 0:
                    print(f"{number} rounds in {time.monotonic() - begun:.0f} s: {dict(soak.counts)}", flush=True)
                if time.monotonic() - begun > 60 * given.minutes:
                    break
            print(f"{number} rounds, nothing lost and no finished call repeated: {dict(sorted(soak.counts.items()))}")
        finally:
            commands.close()


if __name__ == "__main__":
    main()
