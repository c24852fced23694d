"""One server for the tests that only read or add."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.server.served import Served, make_tome, serve


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="module", name="served")
def serve_library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "lib").mkdir()
    make_tome(folder / "lib" / "novel.tome")
    with serve(folder, "--root", "lib") as running:
        yield running
