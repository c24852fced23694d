"""Two nodes of Ray on this machine, which all tests here share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cluster.two_nodes import Nodes, start_nodes


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    """Two nodes, which RAY_ADDRESS names, in this process and in those that tests start."""
    with start_nodes() as started:
        yield started
