"""What a second machine reads when somebody else adds a document to a tome in PostgreSQL.

`python bench/second_machine.py [share]`. Makes the tome of `bench/store.py` (40,000 passages, 300,000 entities and
facts, 1.1 million edges, times `share`) in a database of a server that this script starts. A second machine is a
process with a cache folder of its own. All that the server sends to it goes through a relay, which counts the bytes:
when it reads all arrays and makes its index of words, and after the first machine has added a document of four
passages, three times.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import store
from postgres import lend, start_server
from tomewise.store.address import find_tome_address
from tomewise.store.sql.sql_store import SqlStore


class Relay:
    """A socket that passes everything to the socket of a server, and counts what this sends."""

    def __init__(self, server: Path, folder: Path) -> None:
        self.received = 0
        self._server, self._folder = server / ".s.PGSQL.5432", folder / ".s.PGSQL.5432"

    async def serve(self) -> None:
        await (await asyncio.start_unix_server(self._connect, self._folder)).serve_forever()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection(self._server)
        await asyncio.gather(self._pass(reader, far_writer, False), self._pass(far_reader, writer, True))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counts: bool) -> None:
        while data := await reader.read(1 << 16):
            self.received += len(data) * counts
            writer.write(data)
            await writer.drain()
        writer.close()


@contextmanager
def start_relay(server: Path) -> Iterator[tuple[Relay, str]]:
    """A relay, and the folder of its socket."""
    with tempfile.TemporaryDirectory(prefix="relay-", dir="/tmp") as folder:
        relay = Relay(server, Path(folder))
        threading.Thread(target=lambda: asyncio.run(relay.serve()), daemon=True).start()
        while not (Path(folder) / ".s.PGSQL.5432").exists():
            time.sleep(0.01)
        yield relay, folder


def read_all(address: str, cache: str) -> None:
    """Open the tome in a new process, as the second machine, read all its arrays, and search for words."""
    environment = {**os.environ, "TOMEWISE_CACHE": cache}
    subprocess.run([sys.executable, __file__, "read", address], check=True, env=environment)


def main() -> None:
    if sys.argv[1:2] == ["read"]:
        opened = SqlStore.open(find_tome_address(sys.argv[2]))
        store._map_arrays(opened)
        opened.lexical(store.WORDS[3], 3)
        return opened.close()
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    rng = np.random.default_rng(3)
    with (
        tempfile.TemporaryDirectory() as caches,
        start_server() as server,
        start_relay(server.folder) as (relay, folder),
    ):
        os.environ["TOMEWISE_CACHE"] = f"{caches}/first"
        elsewhere = server.url.replace(str(server.folder), folder) + "#large"
        with lend(f"{server.url}#large") as address:
            store.make_tome(find_tome_address(address), share)
            read_all(elsewhere, f"{caches}/second")
            whole = relay.received
            print(f"all arrays, and the texts for the index of words: {whole:,} bytes")
            first = SqlStore.open(find_tome_address(address))
            known = [node.id for node in first.nodes(store.ENTITIES).values()][:20]
            for turn in range(3):
                with first.write() as change:
                    store.add_document(change, rng, f"new{turn}", random.Random(turn).sample(known, len(known)))
                before = relay.received
                read_all(elsewhere, f"{caches}/second")
                print(
                    f"after a document: {relay.received - before:,} bytes, 1/{whole / (relay.received - before):,.0f}"
                )
            first.close()
    return None


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    main()
