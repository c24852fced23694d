"""The server of PostgreSQL that scripts measure with: one of their own on a socket, or TOMEWISE_TEST_POSTGRES."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the server

from tests.postgres_server import Server, run_server

from tomewise.store.address import find_tome_address
from tomewise.tome.open_store import delete_tome, exists

# What users have: changes are on disk before a commit returns, and the sizes are those of PostgreSQL.
OPTIONS = "fsync=on", "shared_buffers=128MB"


@contextmanager
def start_server() -> Iterator[Server]:
    """A new server that keeps what it commits, as that of a user does."""
    with run_server() as server:
        server.stop()
        server.start(*OPTIONS)
        yield server


@contextmanager
def find_server() -> Iterator[tuple[str, Path | None]]:
    """The address of a database, and the log of its server if this script started it."""
    if stated := os.environ.get("TOMEWISE_TEST_POSTGRES"):
        yield stated, None
        return
    with start_server() as server:
        yield server.url, server.folder / "log"


@contextmanager
def lend(address: str) -> Iterator[str]:
    """The address of a tome, which goes at the end."""
    try:
        yield address
    finally:
        if exists(place := find_tome_address(address)):
            delete_tome(place)
