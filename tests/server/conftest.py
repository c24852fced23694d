"""One server for the tests that only read or add."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.served import Served, serve

from tomewise.tome.tome import Tome
from tomewise.types import Document

TEXTS = {
    "light": "Ada Marsh put out the light at nine. The keeper had gone to the harbour.",
    "letter": "The clerk forged the letter in May. The doctor was away and knew nothing of it.",
}


def make_tome(path: Path) -> None:
    with Tome.open(path, embedder="hash") as tome:
        tome.add(*(Document(id=id, text=text) for id, text in TEXTS.items()))


@pytest.fixture(scope="module", name="served")
def serve_novel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "lib").mkdir()
    make_tome(folder / "lib" / "novel.tome")
    with serve(folder, "--root", "lib") as running:
        yield running
