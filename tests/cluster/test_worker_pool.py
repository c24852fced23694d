"""A pool of two nodes: what dies is replaced, what fails says why, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.patience import NEVER, SOON, wait_until

from tomewise.cluster import worker_parts, worker_pool
from tomewise.cluster.pool_worker import Failed
from tomewise.cluster.pooled_embedder import PooledEmbedder
from tomewise.cluster.ray_cluster import RayCluster
from tomewise.cluster.worker_parts import ModelParts, WorkerParts, describe_here
from tomewise.cluster.worker_pool import WorkerPool
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import BadReply, PartError, StoreError, TomewiseError, UnknownName, UsageError
from tomewise.language.extractive import ExtractiveModel
from tomewise.testing import check_embedder

pytestmark = pytest.mark.cluster
TEXTS = [f"The tide of day {number} turned " + "late " * (number % 50) for number in range(1100)]


class Unsendable(Exception):
    """An error that holds what cannot be pickled."""


def interrupt(rows: Any) -> Any:
    raise KeyboardInterrupt


def stop(rows: Any) -> Any:
    raise StopIteration


ODD_ROWS: dict[str, Callable[[Any], Any]] = {
    "one row": lambda rows: rows[:1],
    "fewer columns": lambda rows: rows[:, :-1],
    "no numbers": lambda rows: rows * np.nan,
    "objects": lambda rows: rows.astype(object),
    "a list": lambda rows: rows.tolist(),
    "a lock": lambda rows: threading.Lock(),
    "an exit": sys.exit,
    "an interrupt": interrupt,
    "a stop": stop,
}


@dataclass
class Odd:
    """The rows of the hash embedder. Each process that embeds leaves a file with its number in `folder`.

    The text "wait" is embedded once the folder has a file "go", and noted before; a new process embeds nothing while
    there is a file "hold". `apart` is what happens in every process but the one of the number `home`.
    """

    folder: Path
    name: str = "odd"
    dimensions: int = 256
    max_tokens: int = 256
    home: int = 0
    apart: str = ""

    @property
    def tokenizer(self) -> object:
        return HashEmbedder().tokenizer

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        own = self.folder / str(os.getpid())
        if not own.exists():
            wait_until(lambda: not (self.folder / "hold").exists())
            own.touch()
        if os.getpid() != self.home and self.apart == "fail":
            raise TomewiseError("the file of the embedder cannot be written (no space left): make room there")
        if os.getpid() != self.home and self.apart == "sleep":
            time.sleep(NEVER)
        if "die" in texts:
            os.kill(os.getpid(), signal.SIGKILL)
        if "fail" in texts:
            raise StoreError("the tide is late: wait for it")
        if "break" in texts:
            raise Unsendable(lambda: None)
        if "wait" in texts:
            (self.folder / f"waits-{os.getpid()}").touch()
            wait_until((self.folder / "go").exists)
        for kind in ODD_ROWS.keys() & set(texts):
            return ODD_ROWS[kind](HashEmbedder().embed(texts))
        return HashEmbedder().embed(texts)

    def let_go(self) -> None:
        """Let what waits be embedded."""
        (self.folder / "go").touch()

    def list_waiting(self) -> list[int]:
        """The processes that have embedded the text "wait", or do."""
        return [int(path.name.partition("-")[2]) for path in self.folder.glob("waits-*")]

    def list_workers(self) -> set[int]:
        """The other processes that have embedded."""
        return {int(path.name) for path in self.folder.iterdir() if path.name.isdigit()} - {os.getpid()}


class Outdated(Odd):
    """An embedder that comes with another version to workers."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        worker_parts.version = lambda package: "0.0.7"  # type: ignore[assignment]


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="module")
def odd(nodes: object, tmp_path_factory: pytest.TempPathFactory) -> Odd:
    return Odd(tmp_path_factory.mktemp("odd"))


@pytest.fixture(scope="module")
def pool(odd: Odd) -> Iterator[WorkerPool]:
    """A pool of two workers whose embedder is `odd`."""
    made = WorkerPool(WorkerParts(embedder=odd), 2)
    made.open()
    yield made
    made.close()


def test_rows_are_those_of_one_process_from_any_thread(pool: WorkerPool, odd: Odd) -> None:
    pooled = PooledEmbedder(odd, pool)
    check_embedder(pooled)
    assert len(odd.list_workers()) == 2
    parts = [TEXTS, *(TEXTS[part::4] for part in range(4))]
    with ThreadPoolExecutor(len(parts)) as threads:
        for part, rows in zip(parts, threads.map(pooled.embed, parts), strict=True):
            assert np.array_equal(rows, odd.embed(part))


def test_a_killed_worker_loses_no_block_and_lost_work_does_not_wait_for_the_next_one(
    pool: WorkerPool, odd: Odd
) -> None:
    victim = min(filter(is_alive, odd.list_workers()))
    waiting = [pool.submit("embed", ["wait", str(number)]) for number in range(4)]
    wait_until(lambda: victim in odd.list_waiting())
    (odd.folder / "hold").touch()
    os.kill(victim, signal.SIGKILL)
    odd.let_go()
    rows = [each.result(SOON) for each in waiting]
    assert np.array_equal(rows[3], HashEmbedder().embed(["wait", "3"]))
    assert pool.size == 1
    (odd.folder / "hold").unlink()
    wait_until(lambda: pool.size == 2)
    assert not is_alive(victim)


def test_work_that_kills_its_worker_is_given_up(pool: WorkerPool) -> None:
    with pytest.raises(TomewiseError, match=r"3 workers ended with the same piece of work.*more memory"):
        pool.submit("embed", ["die"]).result(90)
    assert pool.submit("embed", ["after"]).result(60).shape == (1, 256)


def test_errors_come_back_as_they_were_raised(pool: WorkerPool) -> None:
    with pytest.raises(StoreError, match=r"^the tide is late: wait for it$"):
        pool.submit("embed", ["fail"]).result(30)
    with pytest.raises(PartError, match=r"^a part failed on \S+ \(Unsendable: .*\): mend it, or use another one$"):
        pool.submit("embed", ["break"]).result(30)


@pytest.mark.parametrize("kind", ODD_ROWS)
def test_what_is_no_row_for_each_text_is_one_error(pool: WorkerPool, odd: Odd, kind: str) -> None:
    """It comes at once, and the workers go on."""
    processes, texts = odd.list_workers(), [kind, *TEXTS[:31]]
    with pytest.raises((BadReply, PartError), match=r"^[^\n]+: mend it, or use another one$"):
        pool.submit("embed", texts).result(SOON)
    with pytest.raises((BadReply, PartError)):
        PooledEmbedder(odd, pool).embed(texts)
    assert pool.submit("embed", TEXTS[:1]).result(SOON).shape == (1, 256)
    assert odd.list_workers() == processes


def test_a_closed_pool_leaves_no_worker(nodes: object, tmp_path: Path) -> None:
    odd = Odd(tmp_path)
    made = WorkerPool(WorkerParts(embedder=odd), 2)
    made.open()
    workers, under_way = odd.list_workers(), made.submit("embed", ["wait"])
    made.close()
    for each in (under_way, made.submit("embed", ["more"])):
        with pytest.raises(TomewiseError, match="the pool of workers was closed"):
            each.result(30)
    assert workers
    wait_until(lambda: not any(map(is_alive, workers)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Outdated, r"^the worker on \S+ has Tomewise 0\.0\.7, and this process \S+: install"),
        (
            lambda here: Odd(here, home=os.getpid(), apart="fail"),
            r"^the worker on \S+: the file of the embedder cannot",
        ),
        (
            lambda here: Odd(here, home=os.getpid(), apart="sleep"),
            r"^a worker did not start within 1 s: .* raise the setting start_seconds$",
        ),
    ],
    ids=["of another version", "cannot make its parts", "takes too long"],
)
def test_a_worker_that_cannot_be_used_is_named_and_ends(
    nodes: object, tmp_path: Path, make: Callable[[Path], Odd], message: str
) -> None:
    odd = make(tmp_path)
    with pytest.raises(TomewiseError, match=message):
        WorkerPool(WorkerParts(embedder=odd), 1, start_seconds=1 if odd.apart == "sleep" else SOON).open()
    wait_until(lambda: not any(map(is_alive, odd.list_workers())))


def test_parts_that_workers_cannot_have_are_refused_before_any_work(nodes: object) -> None:
    with pytest.raises(UnknownName, match="no embedder has the name 'no such one'"):
        WorkerPool(WorkerParts(embedder="no such one"), 1).open()
    locked = Odd(Path())
    locked.lock = threading.Lock()  # type: ignore[attr-defined]
    model = ModelParts(model=ExtractiveModel(locked))
    for parts in (WorkerParts(embedder=locked), WorkerParts(embedder="hash", model=model)):
        with pytest.raises(UsageError, match=r"cannot be sent to workers.*give its name"):
            WorkerPool(parts, 1).open()


class Played(RayCluster):
    """A cluster without machines. `play` replies to what workers are called with, but for their description."""

    cpus = 4

    def __init__(self, play: Callable[..., Future[Any]]) -> None:
        import ray

        super().__init__(ray, joined=False)
        self.play = play
        self.is_full = False

    def start_worker(self, parts: WorkerParts, threads: int) -> Any:
        if self.is_full:
            raise TomewiseError("the machines are full")
        return object()

    def call(self, worker: Any, verb: str, *given: Any) -> Future[Any]:
        if verb == "describe":
            return settle(describe_here(WorkerParts(embedder="hash"), HashEmbedder()))
        return self.play(verb, *given)

    def end_worker(self, worker: Any) -> None:
        pass


def settle(result: Any) -> Future[Any]:
    """A future with a result, or an error."""
    future: Future[Any] = Future()
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
    return future


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[WorkerPool, Played]]:
    """Opens a pool of so many workers that are played."""

    def open_pool(count: int, play: Callable[..., Future[Any]]) -> tuple[WorkerPool, Played]:
        cluster = Played(play)
        monkeypatch.setattr(worker_pool, "join_cluster", lambda _: cluster)
        made = WorkerPool(WorkerParts(embedder="hash"), count)
        made.open()
        return made, cluster

    return open_pool


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (42, "sent int in place of ndarray"),
        (None, "sent NoneType in place of ndarray"),
        (RuntimeError("System error: a\ntraceback: ...\nImportError: a"), r"sent .* \(RuntimeError: Imp.*\)"),
    ],
)
def test_a_reply_of_another_type_is_one_error(play: Any, reply: Any, line: str) -> None:
    replies = [reply, np.zeros((1, 256))]
    pool, _ = play(1, lambda *_: settle(replies.pop(0)))
    with pytest.raises(TomewiseError, match=rf"^the worker on \S+ {line}: install the same Tomewise"):
        pool.submit("embed", ["a"]).result(SOON)
    assert pool.submit("embed", ["a"]).result(SOON).shape == (1, 256)


def test_workers_out_of_memory_and_a_pool_without_workers_say_so(play: Any) -> None:
    """Ray ends the worker that takes most, and says so to whoever waits for it."""
    from ray.exceptions import OutOfMemoryError

    out_of_memory = OutOfMemoryError("Task was killed due to the node running low on memory.")
    pool, cluster = play(4, lambda *_: settle(out_of_memory))
    cluster.is_full = True
    with pytest.raises(TomewiseError, match=r"3 workers ended with the same.*low on memory.*give the machines more"):
        pool.submit("embed", ["a"]).result(30)
    wait_until(lambda: pool.size == 1)
    with pytest.raises(
        TomewiseError, match=r"no worker of the pool is left \(the last one ended on \S+, OutOfMemoryError: .*"
    ) as last:
        pool.submit("embed", ["a"]).result(30)
    assert "no other one could start: the machines are full" in str(last.value)
    assert str(last.value).endswith("start workers again and repeat the command, which goes on from here")


def test_work_that_is_given_up_while_it_is_sent_again_frees_its_worker(play: Any) -> None:
    from ray.exceptions import WorkerCrashedError

    called: list[str] = []
    lost: Future[Any] = Future()

    def reply(verb: str, *_: Any) -> Future[Any]:
        if verb == "ask" and not called:
            called.append("lost")
            return lost
        if verb == "ask":
            pool.give_up(asked, "give_up", 1)  # before the ask has gone
        called.append(verb)
        return settle(Failed(TomewiseError("the ask was given up"), "near") if verb == "ask" else None)

    pool, cluster = play(2, reply)
    cluster.is_full = True
    asked = pool.submit("ask", 1)
    lost.set_exception(WorkerCrashedError())
    with pytest.raises(TomewiseError, match="the ask was given up"):
        asked.result(SOON)
    assert called == ["lost", "give_up", "ask"], "the worker ends an ask that comes after its end"
    assert pool.size == 1


def test_no_process_of_the_cluster_reports_to_anybody(nodes: object) -> None:
    """With statistics off, Ray's API server still says so to its makers, and asks which cloud this is."""
    logs = {path.name for path in Path(os.environ["RAY_TMPDIR"]).rglob("logs/*")}
    assert "gcs_server.out" in logs
    assert "dashboard.log" not in logs
    assert os.environ["RAY_USAGE_STATS_REPORT_URL"] == "http://127.0.0.1:9/"


CLOSE = """
import sys
from pathlib import Path
from tests.cluster.test_worker_pool import Odd
from tomewise.cluster.worker_parts import WorkerParts
from tomewise.cluster.worker_pool import WorkerPool

pool = WorkerPool(WorkerParts(embedder=Odd(Path(sys.argv[1]))), 1)
pool.open()
waiting = [pool.submit("embed", ["wait"]) for _ in range(20)]
pool.close()
assert all("was closed" in str(each.exception(0)) for each in waiting)
"""


def test_the_last_pool_of_a_process_fails_its_work_and_leaves(nodes: object, tmp_path: Path) -> None:
    """Ray, which this pool leaves, would not say what came of the work."""
    subprocess.run([sys.executable, "-c", CLOSE, str(tmp_path)], check=True, timeout=60)
