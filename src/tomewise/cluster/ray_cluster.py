"""The one place that imports Ray: it joins or starts a cluster, starts workers there, and names what went wrong."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from math import ceil
from random import randrange
from shutil import rmtree
from threading import Lock, current_thread, main_thread
from time import monotonic, sleep
from typing import Any

from tomewise.cluster.pool_worker import Worker
from tomewise.cluster.worker_parts import WorkerParts
from tomewise.errors import MissingDependency, TomewiseError, UsageError
from tomewise.settings import read_variable

# Far above what can wait: calls past this number wait, also those that end others. Ray's own is 1,000.
_CALLS_AT_ONCE = 10_000
_SHARE = 0.01  # of a CPU: with whole ones the workers of a machine that died would wait for a place for ever
_OBJECTS = 128 << 20  # bytes of shared memory in a cluster of our own; lists on their way need some megabytes
_KNOCK_SECONDS = 10.0
# How long the processes of a cluster that starts here wait for each other, with their units in a second.
_WAITS = {
    "RAY_agent_register_timeout_ms": 1000,
    "RAY_gcs_rpc_server_connect_timeout_s": 1,
    "RAY_py_gcs_connect_timeout_s": 1,
    "RAY_worker_register_timeout_seconds": 1,
}
# An agent that chooses its port writes it into a file, and Ray ends where that takes more than 15 s.
_UNUSED_PORTS = ("dashboard_agent_listen_port", "metrics_agent_port", "metrics_export_port")
_TRIES = {"RAY_gcs_server_port_wait_time_s": "1"}  # to reach the first process, each as long as the start may take
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

    def start_worker(self, parts: WorkerParts, threads: int) -> Any:
        """A new worker, on the machine that has the fewest. Raises ConnectionError after this process has left."""
        with self._stay_joined():
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
        with suppress(self._ray.exceptions.RayError, ConnectionError, ValueError), self._stay_joined():
            self._ray.kill(worker)

    @contextmanager
    def _stay_joined(self) -> Iterator[None]:
        """Keep this process in the cluster meanwhile. Raises ConnectionError where it has left: Ray would join anew."""
        with _joining:
            if not self._ray.is_initialized():
                raise ConnectionError("this process has left the cluster")
            yield

    def find_loss(self, error: BaseException) -> str:
        """Why a worker was lost, in a line; empty for an error that is not the loss of a worker."""
        lost = self._ray.exceptions
        kinds = (lost.RayActorError, lost.OutOfMemoryError, lost.WorkerCrashedError, lost.ObjectLostError)
        return shorten(error) if isinstance(error, (*kinds, lost.NodeDiedError)) else ""

    def leave(self) -> None:
        """Leave the cluster when no pool uses it any more; one that was started here ends."""
        global _users
        with _joining:
            _users -= self._joined
            if self._joined and not _users:
                _leave(self._ray)


def shorten(error: BaseException) -> str:
    """An error in a line: Ray puts tracebacks and advice around what happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    cause = next((line for line in reversed(lines) if "Error" in line), lines[0] if lines else "")
    return f"{type(error).__name__}: {cause[:300]}"


def join_cluster(start_seconds: float) -> RayCluster:
    """Join the cluster that RAY_ADDRESS names, or start one on this machine that only this machine can reach.

    Each process of a cluster that starts here may take `start_seconds`. Nothing is reported to anybody. Raises
    MissingDependency without Ray, UsageError where no cluster can be joined, TomewiseError where none can start.
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
            _start_or_join(ray, address, start_seconds)
        _users += 1
        return RayCluster(ray, joined=True)


def _start_or_join(ray: Any, address: str | None, start_seconds: float) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    begun = monotonic()
    try:
        if address is not None:
            _knock(address)
        else:
            quiet |= {"include_dashboard": False, "object_store_memory": _OBJECTS}
            os.environ.update(_TRIES | {name: str(ceil(start_seconds * units)) for name, units in _WAITS.items()})
            ray._raylet.Config.initialize("")  # reads them, also where it has read others before
        with start_own_node(start_seconds):
            ray.init(address or "local", **quiet)
    except Exception as error:  # Ray raises plain ones too
        reason = " ".join(str(error).split())[:300]
        if address is None:
            if monotonic() - begun > start_seconds:
                reason = f"it takes more than {start_seconds:g} s, which the setting start_seconds raises"
            raise TomewiseError(f"Ray cannot start on this machine ({reason}): work without --on ray") from error
        raise UsageError(
            f"the cluster at RAY_ADDRESS={address} cannot be joined ({reason}): start it, correct the address, or "
            "unset RAY_ADDRESS to use this machine alone"
        ) from error
    _silence(ray)


def _leave(ray: Any) -> None:
    """Leave the cluster. One that this process started ends, and its logs, which Ray would keep for ever, go too."""
    node = ray._private.worker._global_node  # none where the cluster is reached by ray://
    ray.shutdown()
    if node is not None and node.head:
        rmtree(node.get_session_dir_path(), ignore_errors=True)


@contextmanager
def start_own_node(start_seconds: float) -> Iterator[None]:
    """Inside, a node that starts here may take so long, leaves nothing if it fails, and has no API server.

    Nothing of ours uses that server. Without a dashboard Ray 2.60 still starts it for its statistics, and it asks
    169.254.169.254 for the cloud where it runs even if statistics are off.
    """
    from ray._private import node as private
    from ray._raylet import persist_port  # type: ignore[attr-defined]

    node_class: Any = private.Node
    made: list[Any] = []
    children: set[Any] = set()

    class OwnNode(node_class):  # type: ignore[misc]
        def __init__(self, *given: Any, **named: Any) -> None:
            made.append(self)
            super().__init__(*given, **named)

        def start_api_server(self, **_: object) -> None:
            self._webui_url = None

        def start_gcs_server(self) -> None:
            self._ray_params.gcs_server_port = _find_free_port()  # no thread of ours goes on while Ray waits for one
            super().start_gcs_server()

        def start_ray_processes(self) -> None:
            self._ray_params.runtime_env_agent_port = _find_free_port()
            for name in _UNUSED_PORTS:
                persist_port(self._session_dir, self._node_id, name, -1)
            super().start_ray_processes()
            _wait_for_node(self, start_seconds, children)

    private.Node = OwnNode  # type: ignore[misc]
    try:
        yield
    except BaseException:
        for node in made:
            children |= _list_children(node)
            node.kill_all_processes(check_alive=False)
            for child in children:
                with suppress(Exception):  # it has ended
                    child.kill()
            if node.head:
                rmtree(getattr(node, "_session_dir", ""), ignore_errors=True)
        raise
    finally:
        private.Node = node_class  # type: ignore[misc]


def _wait_for_node(node: Any, seconds: float, children: set[Any]) -> None:
    """Wait until the cluster has a node that starts, and collect what its processes start.

    Ray itself waits for 30 s, and hears no Ctrl-C meanwhile. A process that ends leaves its children behind.
    """
    from ray.exceptions import RayError

    end = monotonic() + seconds
    while True:
        children |= _list_children(node)
        with suppress(RayError):  # no answer yet
            if node.node_id in {each.hex() for each in node.get_gcs_client().get_all_node_info(timeout=1)}:
                return
        if dead := [kind for kind, _ in node.dead_processes()]:
            raise TomewiseError(f"its process {dead[0]} ended")
        if monotonic() > end:
            raise TomewiseError(f"it is not there after {seconds:g} s")
        sleep(0.1)


def _find_free_port() -> int:
    """A port below those that connections get, so that none takes it before its agent does."""
    while True:
        port = randrange(20_000, 32_000)
        with suppress(OSError), socket.socket() as tried:
            tried.bind(("127.0.0.1", port))
            return port


def _list_children(node: Any) -> set[Any]:
    """The processes below those of a node."""
    psutil: Any = import_module("psutil")  # comes with Ray

    found: set[Any] = set()
    for _, process in node.live_processes():
        with suppress(psutil.Error):
            found.update(psutil.Process(process.pid).children(recursive=True))
    return found


def _knock(address: str) -> None:
    """Raise OSError where nobody listens at HOST:PORT: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _KNOCK_SECONDS).close()


def _silence(ray: Any) -> None:
    """Keep the messages of Ray on lost workers from standard output, where answers and JSON go, and stacks from errors.

    Ray 2.60 has no setting for that: `log_to_driver` leaves these messages on. It writes a stack at SIGTERM, before the
    handler of Python that is set again here.
    """
    handler = signal.getsignal(signal.SIGTERM)
    if handler is not None and current_thread() is main_thread():
        signal.signal(signal.SIGTERM, handler)
    ray._private.worker.print_to_stdstream = lambda *_, **__: None
