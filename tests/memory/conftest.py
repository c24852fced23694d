"""Empty stores for the tests of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tomewise.store.sql.sql_store import SqlStore


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Callable[[], SqlStore]]:
    """Opens a new store with each call."""
    with ExitStack() as opened:
        folder = tmp_path / "stores"
        folder.mkdir()

        def open_new() -> SqlStore:
            return opened.enter_context(closing(SqlStore.open(folder / f"{len(list(folder.glob('*.tome')))}.tome")))

        yield open_new


@pytest.fixture
def store(open_store: Callable[[], SqlStore]) -> SqlStore:
    return open_store()
