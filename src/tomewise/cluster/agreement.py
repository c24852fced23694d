"""Fail early: what must be equal in this process and on every worker, compared before any work."""

from __future__ import annotations

from urllib.parse import urlsplit

import numpy as np

from tomewise.addresses import find_loopback
from tomewise.cluster.worker_parts import WorkerFacts, WorkerParts
from tomewise.errors import MissingDependency, ModelUnavailable, UsageError

_SAME = 0.999  # the least cosine of one text's vectors by one embedder on two machines


def check_agreement(here: WorkerFacts, there: WorkerFacts, parts: WorkerParts) -> None:
    """Raise an error that names the machine and what differs there: a UsageError, or that of the missing part."""
    where = f"the worker on {there.machine}"
    for name in ("tomewise", "python", "ray"):
        near, far = getattr(here, name), getattr(there, name)
        if near != far:
            raise UsageError(f"{where} has {name.capitalize()} {far}, and this process {near}: install the same one")
    if missing := [package for package in here.packages if package not in there.packages]:
        raise MissingDependency(
            f"{where} lacks packages with parts that this process has ({', '.join(missing)}): install them there"
        )
    if keys := [name for name in here.keys if name not in there.keys]:
        raise ModelUnavailable(f"{where} lacks a key that is set here: set {', '.join(keys)} where workers are started")
    if len(here.row) != len(there.row) or (here.row and float(np.dot(here.row, there.row)) < _SAME):
        raise UsageError(
            f"{where} has another embedder than this process: its vectors for one text differ; "
            "install the same weights on both, and empty the cache (TOMEWISE_CACHE)"
        )
    if here.machine != there.machine:
        _refuse_local_servers(parts, there.machine)


def _refuse_local_servers(parts: WorkerParts, machine: str) -> None:
    """Raise UsageError for a server at `localhost`: each machine would ask itself."""
    for address in (spec.address for spec in parts.list_specs()):
        if address and find_loopback(urlsplit(address).hostname or ""):
            raise UsageError(
                f"{address} means another machine on each machine of the cluster, such as {machine}: name the server "
                "by an address that all of them can reach"
            )
