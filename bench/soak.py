"""`kill -9` at random moments of `tome add`, `tome build` and `tome ask`, and what the file holds then.

`python bench/soak.py [--rounds 1000] [--minutes 10] [--seed 0]`. A round starts one of the three commands on a small
library and kills it after a random time; some commands end before. After each round the script reads the file itself
and checks that

- the file is sound;
- it still holds every document, reply and trace that it held before the round;
- the command did not ask the model for a reply that the file already held.

When a build ends, its memory must equal that of an undisturbed build. After that an ask that ends clears the file, and
the next round starts without one. Commands are forked off a process that has imported everything, so a round takes a
fraction of a second. The server that plays the model counts the calls.
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
_ASKS = 2  # of a memory, before the next one
LATENCY = 0.02  # seconds that a reply takes
FORKING = """
import json, os, sys
sys.modules["umap"] = None
import tomewise.language.connect_model, tomewise.memory.tree.clustering, tomewise.reading.read, tomewise.terminal.render
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
    """Runs each `tome` command in a process that is forked off a waiting one."""

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
        """Run one command and kill it after `seconds`. Returns its exit code, -9 if it was killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(list(words)) + "\n")
        self._process.stdin.flush()
        child = int(self._process.stdout.readline())
        if seconds is not None:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)  # its parent has not waited for it yet, so the process id is still its own
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return os.waitstatus_to_exitcode(int(self._process.stdout.readline()))

    def read_errors(self) -> str:
        """What the last command wrote to standard error."""
        return (self._folder / "errors.txt").read_text()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@dataclass(frozen=True)
class TomeContent:
    """What the file of a tome holds."""

    documents: frozenset[tuple[str, str]]
    replies: frozenset[str]
    traces: int


def read_file(path: Path) -> TomeContent:
    """Read the file with SQLite alone, without the code that wrote it."""
    with closing(sqlite3.connect(path)) as file:
        tables = {name for (name,) in file.execute("SELECT name FROM sqlite_master")}
        if "traces" not in tables:
            return TomeContent(frozenset(), frozenset(), 0)
        assert file.execute("PRAGMA quick_check").fetchone() == ("ok",), "the file is damaged"
        documents = frozenset(file.execute("SELECT id, digest FROM documents"))
        (traces,) = file.execute("SELECT count(*) FROM traces").fetchone()
    return TomeContent(documents, frozenset(read_marks(path)), traces)


def export(path: Path) -> list[str]:
    with Tome.open(path, embedder="hash") as tome:
        return list(tome.export())


class Soak:
    """Takes one tome after the other from an absent file to a memory that answers a question."""

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
        self._asked: int | None = None  # how often the memory was asked since it was built
        self.counts: Counter[str] = Counter()
        self._seconds: dict[str, float] = {}
        # The first run takes longer than those that follow, so the times of the second one count.
        for whole in (folder / "first.tome", folder / "whole.tome"):
            for verb, words in self._words.items():
                start = time.perf_counter()
                assert commands.run(["-m", str(whole), *words]) == 0
                self._seconds[verb] = time.perf_counter() - start
        self._whole = export(whole)
        self.calls = len(read_marks(whole))

    def run_round(self) -> None:
        """Run one command, killed or not, and check what the file then holds."""
        before = read_file(self._path) if self._path.exists() else TomeContent(frozenset(), frozenset(), 0)
        verb = self._choose(before)
        self._server.requests = []
        seconds = self._dice.uniform(0, 1.15 * self._seconds[verb])
        code = self._commands.run(["-m", str(self._path), *self._words[verb]], seconds)
        self.counts[f"{verb} killed" if code == -signal.SIGKILL else f"{verb} ended"] += 1
        self._seconds[verb] *= 1.05 if code == -signal.SIGKILL else 0.8  # as fast as the machine is just now
        allowed = (
            (0, -signal.SIGKILL)
            if verb != "ask" or self._asked is not None
            else (StoreError.exit_code, -signal.SIGKILL)
        )
        assert code in allowed, f"{verb} ended with {code}: {self._commands.read_errors()}"
        self._check(before, verb, ended=code == 0)

    def _choose(self, content: TomeContent) -> str:
        if self._asked is not None:
            self._asked += 1
            return "ask"
        if len(content.documents) < DOCUMENTS:
            return self._dice.choice(["add", "add", "add", "ask"]) if content.documents else "add"
        return self._dice.choice(["build", "build", "build", "ask"])  # an ask before the build fails: no memory yet

    def _check(self, before: TomeContent, verb: str, *, ended: bool) -> None:
        if not self._path.exists():
            return
        asked = [mark(request) for request in list(self._server.requests) if role(request)]
        repeated = before.replies.intersection(asked)
        after = read_file(self._path)
        assert not repeated, f"{len(repeated)} replies in the file were asked for again"
        assert len(asked) == len(set(asked)), "one call was made twice"
        assert before.documents <= after.documents, "a document is lost"
        assert before.replies <= after.replies, "a reply is lost"
        assert after.traces >= before.traces + (verb == "ask" and ended), "a trace is lost"
        self.counts["calls"] += len(asked)
        if verb == "build" and ended:
            assert export(self._path) == self._whole, "the memory differs from that of an undisturbed build"
            self.counts["memories compared"] += 1
            self._asked = 0
        elif self._asked == _ASKS:
            self._clear()

    def _clear(self) -> None:
        self._asked = None
        for path in (self._path, *self._path.parent.glob("killed.tome-*")):
            if path.is_dir():
                for file in path.iterdir():
                    file.unlink()
                path.rmdir()
            elif path.exists():
                path.unlink()


def play(request: dict[str, Any]) -> Behaviour:
    return play_role(request, delay=LATENCY)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, OpenAIServer(play) as server:
        for number in range(DOCUMENTS):
            (Path(folder) / f"{number}.txt").write_text(prose(number, 20 * (number % 3 + 1)))
        commands = Commands(Path(folder))
        try:
            soak = Soak(Path(folder), server, commands, random.Random(options.seed))
            print(f"undisturbed: {soak.calls} calls", flush=True)
            start = time.monotonic()
            for number in range(1, options.rounds + 1):
                soak.run_round()
                if number % 50 == 0:
                    print(f"{number} rounds in {time.monotonic() - start:.0f} s: {dict(soak.counts)}", flush=True)
                if time.monotonic() - start > 60 * options.minutes:
                    break
            print(f"{number} rounds, nothing lost and no finished call repeated: {dict(sorted(soak.counts.items()))}")
        finally:
            commands.close()


if __name__ == "__main__":
    main()
