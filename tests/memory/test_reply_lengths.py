"""Estimate how long replies will be."""

from __future__ import annotations

import pytest

from tomewise.sample import STORY
from tomewise.tome.tome import Tome


@pytest.fixture
def story(tmp_path):
    with Tome.open(tmp_path / "a.tome", embedder="hash") as tome:
        tome.add(STORY)
        yield tome


@pytest.mark.parametrize("system", ["hipporag2", "cogitorag"])
def test_the_use_of_a_model_without_cost_is_estimated_within_a_tenth(story, system):
    estimates = story.estimate(system)
    assert sum(layer.calls for layer in estimates) > 0
    written_at = story.store.path.stat().st_mtime_ns
    story.estimate(system)
    assert story.store.path.stat().st_mtime_ns == written_at, "an estimate writes nothing"
    used = story.build(system).usage.total
    first = estimates[0]  # layers above a missing layer can only be approximated
    if system == "hipporag2":
        assert used.calls == first.calls
        assert abs(first.output_tokens / used.output_tokens - 1) <= 0.1
        assert abs(first.input_tokens / used.input_tokens - 1) <= 0.1
    else:
        assert used.calls == sum(layer.calls for layer in estimates)
