"""Whatever happened to a tome before, its memory is that of a fresh one; `bench/churn.py` takes more histories."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.churn import Churn


@pytest.mark.parametrize("seed", range(12))
def test_a_random_history_leaves_no_trace_and_pays_nothing_twice(seed: int, tmp_path: Path) -> None:
    churn = Churn(seed, tmp_path)
    churn.run()
    assert churn.compare() == [], churn.steps
