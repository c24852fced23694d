"""A tome of the sample story."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra `server` is not installed")

from tests.mcp_server.mcp_tomes import make_tome


@pytest.fixture
def story(here: Path) -> Path:
    """A tome of the sample story."""
    return make_tome(here / "novel.tome")
