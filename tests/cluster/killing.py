"""What is needed to kill workers in the middle of an evaluation, and to see that nothing was lost or paid for twice."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tests.building import mark, play_role, role
from tests.language.openai_server import Behaviour, OpenAIServer, reply_with
from tests.patience import wait_until
from tests.texts import prose

from tomewise.evaluate.experiment import Experiment
from tomewise.evaluate.items import Dataset, Item
from tomewise.evaluate.results import find_journal
from tomewise.evaluate.rows import make_row_record
from tomewise.types import Document, Question

TIMES = ("seconds", "asked", "reused")  # a reply that was kept is used again after something ended
MARK = re.compile(r"mark[a-p]{20}")


def find_processes(kind: str = "Worker") -> list[int]:
    """The processes of workers, or of other actors, of the cluster of tests: those that started last come first."""
    own = f"RAY_TMPDIR={os.environ['RAY_TMPDIR']}".encode()
    found = []
    for path in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: -int(path.name)):
        with suppress(OSError):
            is_ours = own in (path / "environ").read_bytes().split(b"\0")
            if is_ours and (path / "cmdline").read_bytes().startswith(f"ray::{kind}".encode()):
                found.append(int(path.name))
    return found


def kill(kind: str = "Worker") -> None:
    """Kill a worker, or another actor: the one that started last."""
    found = find_processes(kind)
    assert found, "no worker runs"
    os.kill(found[0], signal.SIGKILL)


def make_dataset(memories: int, sentences: int = 30) -> Dataset:
    """Documents with two questions about each, asked over that document alone."""
    documents = tuple(Document(id=f"d{number}", text=prose(number, sentences)) for number in range(memories))
    items = tuple(
        Item(
            id=f"q{number}{turn}",
            question=Question(text=f"What is said {turn} in the {number}th place?"),
            answers=(document.text.split()[5],),
            supporting=(document.id,),
            documents=(document.id,),
        )
        for number, document in enumerate(documents)
        for turn in ("first", "last")
    )
    return Dataset(name="town", documents=documents, items=items)


def make_killed(out: str, url: str, **place: Any) -> Experiment:
    """An evaluation of six memories that takes long enough for something to end meanwhile."""
    given: dict[str, Any] = {"model": "openai:test", "base_url": url, "embedder": "hash", "passage_tokens": 64}
    return Experiment(["hipporag2:without recognition", "naive"], make_dataset(6), out=out, limit=4, **given, **place)


def play(request: dict[str, Any]) -> Behaviour:
    """Reply after a while; every reply has the mark of its request."""
    if role(request):
        return play_role(request, delay=0.05)
    return reply_with(json.dumps({"answer": mark(request), "choice": None, "quotes": []}), delay=0.05)


def read_kept(file: Path) -> set[str]:
    """The marks of the replies that a file keeps."""
    with closing(sqlite3.connect(file)) as connection:
        return {found for (reply,) in connection.execute("SELECT reply FROM calls") for found in MARK.findall(reply)}


def wait_for(server: OpenAIServer, count: int) -> None:
    """Wait until so many requests have come."""
    wait_until(lambda: len(server.requests) >= count)


def check_rows(experiment: Experiment, undisturbed: Experiment) -> None:
    """Every row and every build stands once in the journal, and they are those of an undisturbed run."""
    records = find_journal(experiment.out / experiment.design.name()).read()
    counts = Counter((each["key"], each["system"]) for each in records if each["kind"] == "row")
    assert set(counts.values()) == {1}
    assert len(counts) == 24
    assert list_rows(experiment) == list_rows(undisturbed)


def drop_times(value: Any) -> Any:
    """The value without what is measured by a clock."""
    if isinstance(value, dict):
        return {name: drop_times(each) for name, each in value.items() if not any(word in name for word in TIMES)}
    return [drop_times(each) for each in value] if isinstance(value, list) else value


def list_rows(experiment: Experiment) -> list[dict[str, Any]]:
    return [drop_times(json.loads(json.dumps(make_row_record(row)))) for row in experiment.results.rows]
