"""Two nodes of Ray on this machine. They listen to loopback and report to nobody."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.patience import SOON

from tomewise.cluster.ray_cluster import SILENT, start_own_node

NODE = {"num_cpus": 2, "object_store_memory": 80 << 20, "include_dashboard": False}
HEALTH = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 500,
    "health_check_failure_threshold": 3,
}


@dataclass(frozen=True)
class Nodes:
    """The cluster, and the address at which a process joins it."""

    cluster: Any
    address: str

    def add(self) -> Any:
        """One more node."""
        with start_own_node(SOON):
            return self.cluster.add_node(**{name: value for name, value in NODE.items() if name != "include_dashboard"})


@contextmanager
def start_nodes() -> Iterator[Nodes]:
    """Two nodes, which RAY_ADDRESS names inside, in this process and in those that it starts."""
    home = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))  # short: the paths of sockets have 107 bytes
    stated = {
        "HOME": str(home),
        "NO_PROXY": "127.0.0.1",
        "RAY_AUTH_MODE": "token",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_TMPDIR": str(home),
        **SILENT,
        "TOMEWISE_CACHE": os.environ.get("TOMEWISE_CACHE") or str(Path.home() / ".cache" / "tomewise"),
    }
    before = {name: os.environ.get(name) for name in (*stated, "RAY_ADDRESS")}
    os.environ.update(stated)
    from ray._private.authentication.authentication_token_setup import ensure_token_if_auth_enabled
    from ray.cluster_utils import Cluster

    logging.getLogger("ray").setLevel(logging.CRITICAL)
    ensure_token_if_auth_enabled(create_token_if_missing=True)
    with start_own_node(SOON):
        cluster = Cluster(initialize_head=True, head_node_args={**NODE, "_system_config": HEALTH})
    os.environ["RAY_ADDRESS"] = cluster.address
    found = Nodes(cluster, cluster.address)
    found.add()
    try:
        yield found
    finally:
        cluster.shutdown()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(home, ignore_errors=True)
