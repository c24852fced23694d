"""The one place that imports Ray: it joins or starts a cluster, starts workers there, and names what went wrong."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from shutil import rmtree
from threading import Lock
from typing import Any

from tomewise.cluster.pool_worker import Worker
from tomewise.cluster.worker_parts import WorkerParts
from tomewise.errors import MissingDependency, TomewiseError, UsageError
from tomewise.settings import read_variable

# Far above what can wait: calls past this number wait, also those that end others. Ray's own is 1,000.
_CALLS_AT_ONCE = 10_000
_SHARE = 0.01  # of a CPU: with whole ones the workers of a machine that died would wait for a place for ever
_OBJECTS = 128 << 20  # bytes of shared memory in a cluster of our own; lists on their way need some megabytes
_CPUS_PER_WORKER = 2
_KNOCK_SECONDS = 10.0
# Ray 2.60 tells its makers even that it shall tell them nothing, so it gets an address where nobody listens.
SILENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_USAGE_STATS_REPORT_URL": "http://127.0.0.1:9/"}
_joining = Lock()
_users = 0  # pools of this process that use the cluster that this module joined


class RayCluster:
    """The cluster that this process has joined. Make it with `join_cluster`."""

    def __init__(self, ray: Any, *, joined: bool) -> None:
        self._ray = ray
        self._joined = joined  # by this module; a program that joined by itself leaves by itself

    @property
    def cpus(self) -> int:
        """The CPUs of all machines."""
        return int(self._ray.cluster_resources().get("CPU", 1))

    def count_workers(self, stated: int | None) -> int:
        """The workers of a pool: as many as are stated, else one for every two CPUs."""
        return stated or max(1, self.cpus // _CPUS_PER_WORKER)

    def start_worker(self, parts: WorkerParts, threads: int) -> Any:
        """A new worker, on the machine that has the fewest."""
        return self._make_actor(Worker, "SPREAD").remote(parts, threads)

    def start_beside(self, kind: type, *given: Any) -> Any:
        """A new actor on the machine of this process. Raises UsageError where that is not one of the cluster."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        if self._ray.util.client.ray.is_connected():
            raise UsageError("replies are kept on a machine of the cluster: start there, and set RAY_ADDRESS=HOST:PORT")
        here = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=False)
        return self._make_actor(kind, here).remote(*given)

    def _make_actor(self, kind: type, strategy: Any) -> Any:
        options = {"num_cpus": _SHARE, "max_restarts": 0, "max_concurrency": _CALLS_AT_ONCE}
        return self._ray.remote(kind).options(**options, scheduling_strategy=strategy)

    def check_parts(self, parts: WorkerParts) -> None:
        """Raise UsageError for an object among the parts that cannot be sent."""
        try:
            self._ray.cloudpickle.dumps(parts)
        except Exception as error:  # what an object raises when it is pickled is its own
            raise UsageError(
                f"a part that was given as an object cannot be sent to workers ({error}): give its name, and let "
                "a package bring it"
            ) from error

    def call(self, worker: Any, verb: str, *given: Any) -> Future[Any]:
        """Call a worker; the future has its result, or an error that `find_loss` knows."""
        future: Future[Any] = getattr(worker, verb).remote(*given).future()
        return future

    def end_worker(self, worker: Any) -> None:
        """End a worker at once."""
        with suppress(self._ray.exceptions.RayError, ConnectionError, ValueError):
            self._ray.kill(worker)

    def find_loss(self, error: BaseException) -> str:
        """Why a worker was lost, in a line; empty for an error that is not the loss of a worker."""
        lost = self._ray.exceptions
        kinds = (lost.RayActorError, lost.OutOfMemoryError, lost.WorkerCrashedError, lost.ObjectLostError)
        if not isinstance(error, (*kinds, lost.NodeDiedError)):
            return ""
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        cause = next((line for line in reversed(lines) if "Error" in line), lines[0] if lines else "")
        return f"{type(error).__name__}: {cause[:300]}"

    def leave(self) -> None:
        """Leave the cluster when no pool uses it any more; one that was started here ends."""
        global _users
        with _joining:
            _users -= self._joined
            if self._joined and not _users:
                _leave(self._ray)


def join_cluster() -> RayCluster:
    """Join the cluster that RAY_ADDRESS names, or start one on this machine that only this machine can reach.

    Nothing is reported to anybody. Raises MissingDependency without Ray, UsageError where no cluster can be joined.
    """
    global _users
    if find_spec("ray") is None:
        raise MissingDependency(
            'a pool on Ray needs ray, which the extra `ray` installs: run `pip install "tomewise[ray]"`'
        )
    os.environ.update(SILENT)
    address = read_variable("RAY_ADDRESS")
    if address is None:
        os.environ.setdefault("RAY_AUTH_MODE", "token")  # Ray's own default, without the line that it writes
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # its servers listen to this machine alone
    with _joining:
        import ray

        logging.getLogger("ray").setLevel(logging.CRITICAL)  # we name what goes wrong
        if ray.is_initialized() and not _users:
            return RayCluster(ray, joined=False)
        if not _users:
            _start_or_join(ray, address)
        _users += 1
        return RayCluster(ray, joined=True)


def _start_or_join(ray: Any, address: str | None) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if address is None:
        quiet |= {"include_dashboard": False, "object_store_memory": _OBJECTS}
    try:
        if address is not None:
            _knock(address)
        with start_no_api_server():
            ray.init(address or "local", **quiet)
    except Exception as error:  # Ray raises plain ones too, where a node takes too long to start
        reason = " ".join(str(error).split())[:300]
        if address is None:
            raise TomewiseError(f"Ray cannot start on this machine ({reason}): work without --on ray") from error
        raise UsageError(
            f"the cluster at RAY_ADDRESS={address} cannot be joined ({reason}): start it, correct the address, or "
            "unset RAY_ADDRESS to use this machine alone"
        ) from error
    _silence(ray)


def _leave(ray: Any) -> None:
    """Leave the cluster. One that this process started ends, and its logs, which Ray would keep for ever, go too."""
    node = ray._private.worker._global_node  # none where the cluster is reached by ray://
    logs = node.get_session_dir_path() if node is not None and node.head else ""
    ray.shutdown()
    if logs:
        rmtree(logs, ignore_errors=True)


@contextmanager
def start_no_api_server() -> Iterator[None]:
    """Inside, a cluster that starts here has no API server, which nothing of ours uses.

    Without a dashboard Ray 2.60 still starts it for its statistics, and it asks 169.254.169.254 for the cloud where it
    runs even if statistics are off.
    """
    from ray._private import node as private

    node_class: Any = private.Node
    start = node_class.start_api_server

    def skip(node: Any, **_: object) -> None:
        node._webui_url = None

    node_class.start_api_server = skip
    try:
        yield
    finally:
        node_class.start_api_server = start


def _knock(address: str) -> None:
    """Raise OSError where nobody listens at HOST:PORT: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _KNOCK_SECONDS).close()


def _silence(ray: Any) -> None:
    """Keep the messages of Ray on lost workers from standard output, where answers and JSON go.

    Ray 2.60 has no setting for that: `log_to_driver` leaves these messages on.
    """
    worker: Any = ray._private.worker
    ignore: Callable[..., None] = lambda *_, **__: None  # noqa: E731
    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = ignore
