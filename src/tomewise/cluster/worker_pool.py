"""A pool of workers: gives each piece of work to the worker with the fewest, and again to another if that one dies."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock, Thread
from time import monotonic
from types import NoneType
from typing import Any

import numpy as np

from tomewise.cluster.pool_worker import Failed, Reply
from tomewise.cluster.ray_cluster import RayCluster, join_cluster, shorten
from tomewise.cluster.worker_parts import ModelParts, WorkerFacts, WorkerParts, check_agreement, describe_here
from tomewise.embedding.openai import OpenAIEmbedder
from tomewise.errors import TomewiseError, UsageError
from tomewise.settings import Settings
from tomewise.types import Embedder

_RESULTS = {"ask": Reply, "embed": np.ndarray, "run_group": NoneType, "describe": WorkerFacts}  # by verb, or `Failed`
_CPUS_PER_WORKER = 2  # unless so many workers are stated
_TRIES = 3  # workers that may die with one piece of work
_REPLACEMENTS = 3  # for each worker of the pool


@dataclass(slots=True, eq=False)
class _Seat:
    """A worker that answered, and the pieces of work that it has."""

    worker: Any
    machine: str
    busy: int = 0


@dataclass(slots=True, eq=False)
class _Piece:
    """A piece of work: what to call with what, where its result goes, and how many workers died with it.

    `seat` is that of the worker that has it. Work that is given up goes to no other one.
    """

    verb: str
    given: tuple[Any, ...]
    result: Future[Any] = field(default_factory=Future)
    losses: int = 0
    seat: _Seat | None = None
    is_given_up: bool = False


class WorkerPool:
    """Workers on Ray. `open` starts and checks them, `close` ends them; both are called once.

    `threads` are those of each worker, by default its share of the CPUs. A worker that dies is replaced, up to three
    times for each worker; its work goes to another one. What a worker raises comes back as an error of Tomewise. With
    `share_limit` the limit of the model is that of all workers together, and there are no more workers than it allows.
    A cluster of its own, and then a worker, may take `start_seconds` to start.
    """

    def __init__(
        self,
        parts: WorkerParts,
        workers: int | None = None,
        *,
        threads: int | None = None,
        share_limit: bool = False,
        start_seconds: float = Settings.start_seconds,
    ) -> None:
        if workers is not None and workers < 1:
            raise UsageError(f"a pool of {workers} workers does nothing: give 1 or more")
        self._parts = parts
        self._stated = workers
        self._share_limit = share_limit
        self._start_seconds = start_seconds
        self._cluster: RayCluster | None = None
        self._here: WorkerFacts | None = None
        self._threads = threads
        self._seats: list[_Seat] = []
        self._beside: list[Any] = []
        self._pieces: dict[Future[Any], _Piece] = {}  # that have no result yet
        self._waiting: list[_Piece] = []  # of these, while no worker is there, but one starts
        self._starting: list[Any] = []  # workers that have not answered yet
        self._replacements = 0
        self._last_loss = ""
        self._is_closed = False
        self._lock = Lock()  # of all these
        self._sender = ThreadPoolExecutor(1, thread_name_prefix="tomewise-pool")

    @property
    def size(self) -> int:
        """The workers that are there now."""
        return len(self._seats)

    def open(self) -> None:
        """Join the cluster, start the workers, and compare them with this process.

        Raises MissingDependency without Ray, UsageError for a cluster that cannot be joined or a worker that differs,
        and what the parts of a worker raise, with the name of its machine.
        """
        self._cluster = cluster = join_cluster(self._start_seconds)
        try:
            cluster.check_parts(self._parts)
            count = self._stated or max(1, cluster.cpus // _CPUS_PER_WORKER)
            if self._share_limit:
                model = self._parts.model
                count = min(count, model.limit)
                self._parts = replace(self._parts, model=replace(model, limit=model.limit // count))
            self._replacements = count * _REPLACEMENTS
            self._threads = self._threads or max(1, cluster.cpus // count)
            end = monotonic() + self._start_seconds
            for _ in range(count):
                self._starting.append(cluster.start_worker(self._parts, self._threads))
            described = [(worker, cluster.call(worker, "describe")) for worker in self._starting]  # side by side
            self._here = describe_here(self._parts, self._parts.make_embedder())
            for worker, facts in described:
                self._seats.append(self._greet(worker, facts, end))
                self._starting.remove(worker)
        except BaseException:
            self.close()
            raise

    def submit(self, verb: str, *given: Any) -> Future[Any]:
        """Let a worker do a piece of work. The future cannot be cancelled."""
        piece = _Piece(verb, given)
        piece.result.set_running_or_notify_cancel()
        with self._lock:
            self._pieces[piece.result] = piece
        self._send(piece)
        return piece.result

    def give_up(self, result: Future[Any], verb: str, *given: Any) -> None:
        """Call this verb of the worker that has the work of a future, so that it ends; its result still comes."""
        with self._lock:
            piece = self._pieces.get(result)
            if piece is None:
                return
            piece.is_given_up = True
            cluster, seat, waits = self._cluster, piece.seat, piece in self._waiting
            if waits:
                self._waiting.remove(piece)
        if waits:
            self._fail(piece, TomewiseError(_GIVEN_UP))
        elif cluster is not None and seat is not None:
            cluster.call(seat.worker, verb, *given)

    def start_beside(self, kind: type, *given: Any) -> Any:
        """Start an actor on the machine of this process, which ends with the pool. Raises UsageError, TomewiseError."""
        if self._cluster is None:
            raise TomewiseError(_CLOSED)
        self._beside.append(self._cluster.start_beside(kind, *given))
        return self._beside[-1]

    def close(self) -> None:
        """End the workers and leave the cluster. Work that is under way fails."""
        with self._lock:
            self._is_closed = True
            workers = [*self._starting, *(seat.worker for seat in self._seats), *self._beside]
            unfinished, self._pieces = self._pieces, {}
            self._seats, self._waiting, self._starting = [], [], []
            cluster, self._cluster = self._cluster, None
        for result in unfinished:  # Ray may never say what came of them: it ends too
            result.set_exception(TomewiseError(_CLOSED))
        self._sender.shutdown(wait=False, cancel_futures=True)
        if cluster is not None:
            for worker in workers:
                cluster.end_worker(worker)
            cluster.leave()

    def _send(self, piece: _Piece) -> None:
        with self._lock:
            cluster, seat = self._cluster, min(self._seats, key=lambda seat: seat.busy, default=None)
            is_given_up = piece.is_given_up  # read once: later its worker hears of it
            if seat is None and self._starting and not is_given_up:
                self._waiting.append(piece)
                return
            if seat is not None and not is_given_up:
                seat.busy += 1
                piece.seat = seat
        if is_given_up:
            self._fail(piece, TomewiseError(_GIVEN_UP))
        elif cluster is None:
            self._fail(piece, TomewiseError(_CLOSED))
        elif seat is None:
            self._fail(piece, TomewiseError(f"no worker of the pool is left ({self._last_loss}): {_GO_ON}"))
        else:
            try:
                done = cluster.call(seat.worker, piece.verb, *piece.given)
            except Exception as error:  # noqa: BLE001 - whoever waits for the piece gets it
                with self._lock:
                    seat.busy -= 1
                self._fail(piece, TomewiseError(f"work cannot be sent to {seat.machine}: {shorten(error)}"))
            else:
                done.add_done_callback(partial(self._finish, piece, seat, cluster))

    def _finish(self, piece: _Piece, seat: _Seat, cluster: RayCluster, done: Future[Any]) -> None:
        """Pass on what came of a piece; one whose worker died goes to another."""
        with self._lock:
            seat.busy -= 1
        error = done.exception()
        loss = cluster.find_loss(error) if error else ""
        if self._is_closed or not loss:
            try:
                result = _read(done, piece.verb, f"the worker on {seat.machine}")
            except TomewiseError as failure:
                self._fail(piece, failure)
            else:
                if self._take(piece):
                    piece.result.set_result(result)
            return
        piece.losses += 1
        self._drop(seat, loss, cluster)
        if piece.losses == _TRIES:
            self._fail(
                piece,
                TomewiseError(
                    f"{_TRIES} workers ended with the same piece of work, the last one on {seat.machine} ({loss}): "
                    "give the machines more memory, or use fewer workers"
                ),
            )
            return
        # Not here: this thread belongs to Ray, which must go on before it can send anything.
        with suppress(RuntimeError):  # the pool was closed meanwhile, and has failed all work
            self._sender.submit(self._send, piece)

    def _take(self, piece: _Piece) -> bool:
        """Whether the piece still waits for its result: it does not after `close`, which has failed it."""
        with self._lock:
            return self._pieces.pop(piece.result, None) is not None

    def _fail(self, piece: _Piece, error: BaseException) -> None:
        if self._take(piece):
            piece.result.set_exception(error)

    def _drop(self, seat: _Seat, loss: str, cluster: RayCluster) -> None:
        """Take a lost worker out of the pool, and start another one where some are left to start."""
        with self._lock:
            self._last_loss = f"the last one ended on {seat.machine}, {loss}"
            if seat not in self._seats:
                return
            self._seats.remove(seat)
            starts = bool(self._replacements) and not self._is_closed
            self._replacements -= starts
            if starts:
                self._starting.append(seat.worker)  # its place, so that work waits for the next one
        # A thread of its own, which an exit does not wait for: lost work must not wait behind it either.
        Thread(target=self._replace, args=(seat.worker, cluster, starts), name="tomewise-worker", daemon=True).start()

    def _replace(self, lost: Any, cluster: RayCluster, starts: bool) -> None:
        """Start a worker in place of a lost one, and give it the work that waits."""
        cluster.end_worker(lost)  # it may only be out of reach, and still ask
        if not starts or self._is_closed:  # Ray would start a cluster for a worker of none
            return
        seat, worker = None, lost
        try:
            end = monotonic() + self._start_seconds
            worker = cluster.start_worker(self._parts, self._threads or 1)
            with self._lock:
                if lost in self._starting:
                    self._starting[self._starting.index(lost)] = worker
            seat = self._greet(worker, cluster.call(worker, "describe"), end)
        except Exception as error:  # noqa: BLE001 - work goes on with the workers that are there
            self._last_loss = f"{self._last_loss}; no other one could start: {error}"
        with self._lock:
            is_closed = self._is_closed
            if not is_closed:
                self._starting.remove(worker)
                self._seats += [seat] if seat else []
            waiting, self._waiting = self._waiting, []
        if is_closed or seat is None:
            cluster.end_worker(worker)
        for piece in waiting:
            self._send(piece)

    def _greet(self, worker: Any, described: Future[Any], end: float) -> _Seat:
        """The seat of a worker that describes itself. Raises TomewiseError if it starts after `end`, or differs."""
        cluster, here = self._cluster, self._here
        if cluster is None or here is None:
            raise TomewiseError(_CLOSED)
        try:
            error = described.exception(max(0.0, end - monotonic()))
        except Late:
            raise TomewiseError(
                f"a worker did not start within {self._start_seconds:g} s: look at `ray status`, use fewer workers, or "
                "raise the setting start_seconds"
            ) from None
        if error and (loss := cluster.find_loss(error)):
            raise TomewiseError(f"a worker could not start ({loss}): {_INSTALL}") from error
        facts: WorkerFacts = _read(described, "describe", "a worker")
        check_agreement(here, facts, self._parts)
        return _Seat(worker, facts.machine)


def _read(done: Future[Any], verb: str, worker: str) -> Any:
    """The result of a call that has ended. Raises what the worker sent as an error, or TomewiseError."""
    try:
        result = done.result()
    except Exception as error:
        raise TomewiseError(f"{worker} sent what cannot be read ({shorten(error)}): {_INSTALL}") from error
    if isinstance(result, Failed):
        raise result.error
    if not isinstance(result, _RESULTS[verb]):
        expected = _RESULTS[verb].__name__
        raise TomewiseError(f"{worker} sent {type(result).__name__} in place of {expected}: {_INSTALL}")
    return result


def open_pool(
    embedder: Embedder,
    model: ModelParts,
    workers: int | None,
    *,
    by_name: bool,
    start_seconds: float,
    share_limit: bool = False,
) -> WorkerPool:
    """Start the workers for an embedder and a model. `by_name` says that the embedder can be made by its name.

    Raises what `WorkerPool.open` raises.
    """
    parts = WorkerParts(embedder=embedder.name if by_name else embedder, model=model)
    if by_name and isinstance(embedder, OpenAIEmbedder):
        parts = replace(parts, embedder_address=embedder.address, loopback_only=embedder.loopback_only)
    pool = WorkerPool(parts, workers, share_limit=share_limit, start_seconds=start_seconds)
    pool.open()
    return pool


_GIVEN_UP = "the work was given up"
_CLOSED = "the pool of workers was closed: open the tome again"
_GO_ON = "start workers again and repeat the command, which goes on from here"
_INSTALL = "install the same Tomewise, with the same extras, on every machine of the cluster"
