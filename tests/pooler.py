"""A pooler before a server of PostgreSQL, as managed databases have one: pgbouncer, if it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import psycopg
import pytest
from tests.postgres_server import Server

_START_SECONDS = 30.0
_ports = count(6432)  # they name sockets in the folder of the server, so that no other process has them


def find_pgbouncer() -> str | None:
    """The program: the one that `TOMEWISE_PGBOUNCER` names, or one of the path."""
    return os.environ.get("TOMEWISE_PGBOUNCER") or shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")


@contextmanager
def run_pooler(server: Server, mode: str, size: int) -> Iterator[str]:
    """A pooler with `size` connections to the server. Gives the address of its database.

    Who waits for a connection for ten seconds gets an error.
    """
    program = find_pgbouncer()
    if program is None:
        pytest.skip("pgbouncer is not installed: install it, or name it in TOMEWISE_PGBOUNCER")
    port = next(_ports)
    config = server.folder / f"{port}.ini"
    config.write_text(f"""[databases]
* = host={server.folder} port=5432 user=postgres
[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {server.folder}
auth_type = any
pool_mode = {mode}
default_pool_size = {size}
query_wait_timeout = 10
""")
    user = ["-u", "nobody"] if os.geteuid() == 0 else []  # it does not run as root
    process = subprocess.Popen([program, "-q", *user, config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"postgresql:///postgres?host={server.folder}&port={port}&user=postgres"
    try:
        end = time.monotonic() + _START_SECONDS
        while not _answers(url):
            assert process.poll() is None, "pgbouncer ended"
            assert time.monotonic() < end, "pgbouncer does not answer"
            time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True
