"""A pool of two nodes: what dies is replaced, what fails says why, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.cluster.two_nodes import Nodes
from tests.patience import NEVER, SOON, wait_until

from tomewise.cluster import worker_parts
from tomewise.cluster.pool_worker import Failed
from tomewise.cluster.pooled_embedder import PooledEmbedder
from tomewise.cluster.ray_cluster import RayCluster
from tomewise.cluster.worker_parts import ModelParts, WorkerParts
from tomewise.cluster.worker_pool import WorkerPool, _Piece, _Seat
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import BadReply, PartError, StoreError, TomewiseError, UnknownName, UsageError
from tomewise.language.extractive import ExtractiveModel
from tomewise.testing import check_embedder

pytestmark = pytest.mark.cluster
TEXTS = [f"The tide of day {number} turned " + "late " * (number % 50) for number in range(1000)]


@dataclass
class Odd:
    """An embedder that writes down which process embeds, and does odd things at odd texts."""

    folder: Path
    name: str = "odd"
    dimensions: int = 256
    max_tokens: int = 256

    @property
    def tokenizer(self) -> object:
        return HashEmbedder().tokenizer

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        (self.folder / str(os.getpid())).touch()
        if "die" in texts:
            os.kill(os.getpid(), signal.SIGKILL)
        if "fail" in texts:
            raise StoreError("the tide is late: wait for it")
        if "break" in texts:
            raise Unsendable(lambda: None)
        for kind in ODD_ROWS.keys() & set(texts):
            return ODD_ROWS[kind](HashEmbedder().embed(texts))
        if "wait" in texts:
            time.sleep(1)
        return HashEmbedder().embed(texts)


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
    "whole numbers": lambda rows: rows.astype(int),
    "objects": lambda rows: rows.astype(object),
    "a list": lambda rows: rows.tolist(),
    "a lock": lambda rows: threading.Lock(),
    "an exit": sys.exit,
    "an interrupt": interrupt,
    "a stop": stop,
}


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


def list_workers(folder: Path) -> set[int]:
    return {int(path.name) for path in folder.iterdir()} - {os.getpid()}


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_rows_are_those_of_one_process(pool: WorkerPool, odd: Odd) -> None:
    pooled = PooledEmbedder(odd, pool)
    check_embedder(pooled)
    assert np.array_equal(pooled.embed(TEXTS), odd.embed(TEXTS))
    assert len(list_workers(odd.folder)) == 2


def test_lists_from_several_threads_do_not_mix(pool: WorkerPool, odd: Odd) -> None:
    pooled = PooledEmbedder(odd, pool)
    found: dict[int, NDArray[np.float32]] = {}

    def embed(part: int) -> None:
        found[part] = pooled.embed(TEXTS[part::4])

    threads = [threading.Thread(target=embed, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for part in range(4):
        assert np.array_equal(found[part], odd.embed(TEXTS[part::4]))


def test_a_killed_worker_loses_no_block(pool: WorkerPool, odd: Odd) -> None:
    victim = min(filter(is_alive, list_workers(odd.folder)))
    waiting = [pool.submit("embed", ["wait", str(number)]) for number in range(4)]
    time.sleep(0.3)
    os.kill(victim, signal.SIGKILL)
    rows = [each.result(60) for each in waiting]
    assert np.array_equal(rows[3], HashEmbedder().embed(["wait", "3"]))
    deadline = time.monotonic() + 30
    while pool.size < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert pool.size == 2, "the worker is replaced"
    assert not is_alive(victim)


def test_lost_work_does_not_wait_for_the_next_worker(
    pool: WorkerPool, odd: Odd, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_start, greet = threading.Event(), pool._greet

    def greet_late(*worker: Any) -> Any:
        may_start.wait(30)
        return greet(*worker)

    monkeypatch.setattr(pool, "_greet", greet_late)
    waiting = [pool.submit("embed", ["wait", str(number)]) for number in range(4)]
    time.sleep(0.3)
    os.kill(min(filter(is_alive, list_workers(odd.folder))), signal.SIGKILL)
    assert len([each.result(20) for each in waiting]) == 4
    assert pool.size == 1
    may_start.set()
    deadline = time.monotonic() + 30
    while pool.size < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert pool.size == 2


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
    processes, texts = list_workers(odd.folder), [kind, *TEXTS[:31]]
    with pytest.raises((BadReply, PartError), match=r"^[^\n]+: mend it, or use another one$"):
        pool.submit("embed", texts).result(SOON)
    with pytest.raises((BadReply, PartError)):
        PooledEmbedder(odd, pool).embed(texts)
    assert pool.submit("embed", TEXTS[:1]).result(SOON).shape == (1, 256)
    assert list_workers(odd.folder) == processes


def test_a_killed_node_loses_no_block(nodes: Nodes, tmp_path: Path) -> None:
    third = nodes.add()
    made = WorkerPool(WorkerParts(embedder=Odd(tmp_path)), 6)
    made.open()
    waiting = [made.submit("embed", ["wait", str(number)]) for number in range(12)]
    time.sleep(0.3)
    nodes.cluster.remove_node(third, allow_graceful=False)
    begun = time.monotonic()
    rows = [each.result(60) for each in waiting]
    assert time.monotonic() - begun < 20
    assert np.array_equal(rows[11], HashEmbedder().embed(["wait", "11"]))
    made.close()


def test_a_closed_pool_leaves_no_worker(nodes: object, tmp_path: Path) -> None:
    odd = Odd(tmp_path)
    made = WorkerPool(WorkerParts(embedder=odd), 2)
    made.open()
    workers = list_workers(odd.folder)
    under_way = made.submit("embed", ["wait"])
    made.close()
    with pytest.raises(TomewiseError, match="the pool of workers was closed"):
        under_way.result(30)
    with pytest.raises(TomewiseError, match="the pool of workers was closed"):
        made.submit("embed", ["more"]).result(30)
    deadline = time.monotonic() + 10
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, workers))


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


class Outdated(Odd):
    """An embedder that comes with another version to workers."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        worker_parts.version = lambda package: "0.0.7"  # type: ignore[assignment]


def test_a_worker_of_another_version_is_refused_and_ends(nodes: object, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^the worker on \S+ has Tomewise 0\.0\.7, and this process \S+: install"):
        WorkerPool(WorkerParts(embedder=Outdated(tmp_path)), 2).open()
    wait_until(lambda: not any(map(is_alive, list_workers(tmp_path))))


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (42, "sent int in place of ndarray"),
        (None, "sent NoneType in place of ndarray"),
        (RuntimeError("System error: a\ntraceback: ...\nImportError: a"), r"sent .* \(RuntimeError: Imp.*\)"),
    ],
)
def test_a_reply_of_another_type_is_one_error(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch, reply: Any, line: str
) -> None:
    future: Future[Any] = Future()
    with monkeypatch.context() as patch:
        patch.setattr(RayCluster, "call", lambda *_: future)
        waiting = pool.submit("embed", ["a"])
        if isinstance(reply, Exception):
            future.set_exception(reply)
        else:
            future.set_result(reply)
        with pytest.raises(TomewiseError, match=rf"^the worker on \S+ {line}: install the same Tomewise"):
            waiting.result(SOON)
    assert pool.submit("embed", ["a"]).result(SOON).shape == (1, 256)


@dataclass
class Elsewhere(Odd):
    """An embedder that fails in every process but one."""

    home: int = 0

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        if os.getpid() != self.home:
            raise TomewiseError("the file of the embedder cannot be written (no space left): make room there")
        return super().embed(texts)


def test_a_worker_that_cannot_make_its_parts_is_named(nodes: object, tmp_path: Path) -> None:
    with pytest.raises(TomewiseError, match=r"^the worker on \S+: the file of the embedder cannot be written"):
        WorkerPool(WorkerParts(embedder=Elsewhere(tmp_path, home=os.getpid())), 2).open()


class Late(Elsewhere):
    """An embedder that takes for ever in every process but one."""

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        if os.getpid() != self.home:
            (self.folder / str(os.getpid())).touch()
            time.sleep(NEVER)
        return HashEmbedder().embed(texts)


def test_a_worker_may_take_as_long_to_start_as_it_is_told(nodes: object, tmp_path: Path) -> None:
    with pytest.raises(TomewiseError, match=r"^a worker did not start within 5 s: .* raise the setting start_seconds$"):
        WorkerPool(WorkerParts(embedder=Late(tmp_path, home=os.getpid())), 1, start_seconds=5).open()
    wait_until(lambda: not any(map(is_alive, list_workers(tmp_path))))


def test_parts_that_workers_cannot_have_are_refused_before_any_work(nodes: object) -> None:
    with pytest.raises(UnknownName, match="no embedder has the name 'no such one'"):
        WorkerPool(WorkerParts(embedder="no such one"), 1).open()
    locked = Odd(Path())
    locked.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match=r"cannot be sent to workers.*give its name"):
        WorkerPool(WorkerParts(embedder=locked), 1).open()
    model = ExtractiveModel(locked)
    with pytest.raises(UsageError, match=r"cannot be sent to workers.*give its name"):
        WorkerPool(WorkerParts(embedder="hash", model=ModelParts(model=model)), 1).open()


def test_workers_out_of_memory_and_a_pool_without_workers_say_so(
    nodes: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray ends the worker that takes most, and says so to whoever waits for it."""
    from ray.exceptions import OutOfMemoryError

    out_of_memory = OutOfMemoryError("Task was killed due to the node running low on memory.")

    def call(cluster: RayCluster, worker: Any, verb: str, *given: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(out_of_memory)
        return future

    made = WorkerPool(WorkerParts(embedder="hash"), 4)
    made.open()
    made._replacements = 0
    try:
        monkeypatch.setattr(RayCluster, "call", call)
        with pytest.raises(
            TomewiseError, match=r"3 workers ended with the same.*low on memory.*give the machines more"
        ):
            made.submit("embed", ["a"]).result(30)
        assert made.size == 1
        with pytest.raises(
            TomewiseError, match=r"no worker of the pool is left \(the last one ended on \S+, OutOfMemoryError: .*"
        ) as last:
            made.submit("embed", ["a"]).result(30)
        assert str(last.value).endswith("start workers again and repeat the command, which goes on from here")
    finally:
        made.close()


class Handing:
    """A lock that does something once, just after it was handed back."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = [then]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self._then:
            self._then.pop()()


def test_work_that_is_given_up_while_it_is_sent_frees_its_worker() -> None:
    called: list[tuple[str, Future[Any]]] = []

    class Cluster:
        def call(self, worker: Any, verb: str, *given: Any) -> Future[Any]:
            called.append((verb, Future()))
            return called[-1][1]

    made: Any = WorkerPool(WorkerParts(embedder="hash"), 1)
    made._cluster, made._seats = Cluster(), [_Seat("a worker", "near")]
    piece = _Piece("ask", (1,))
    made._pieces[piece.result] = piece
    made._lock = Handing(lambda: made.give_up(piece.result, "give_up", 1))
    made._send(piece)
    assert [verb for verb, _ in called] == ["give_up", "ask"], "the worker ends an ask that comes after its end"
    called[1][1].set_result(Failed(TomewiseError("the ask was given up"), "near"))
    with pytest.raises(TomewiseError, match="the ask was given up"):
        piece.result.result(0)
    assert made._seats[0].busy == 0


def test_no_process_of_the_cluster_reports_to_anybody(nodes: object) -> None:
    """With statistics off, Ray's API server still says so to its makers, and asks which cloud this is."""
    logs = {path.name for path in Path(os.environ["RAY_TMPDIR"]).rglob("logs/*")}
    assert "gcs_server.out" in logs
    assert "dashboard.log" not in logs
    assert os.environ["RAY_USAGE_STATS_REPORT_URL"] == "http://127.0.0.1:9/"
