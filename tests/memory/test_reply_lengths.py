"""Reckoning how long replies will be."""

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
def test_what_a_model_that_costs_nothing_will_use_is_known_within_a_tenth(story, system):
    estimates = story.estimate(system)
    assert sum(one.calls for one in estimates) > 0
    kept = story.store.path.stat().st_mtime_ns
    story.estimate(system)
    assert story.store.path.stat().st_mtime_ns == kept, "an estimate writes nothing"
    used = story.build(system).usage.total
    first = estimates[0]  # what is made from layers that do not exist yet can only be guessed
    if system == "hipporag2":
        assert used.calls == first.calls
        assert abs(first.output_tokens / used.output_tokens - 1) <= 0.1
        assert abs(first.input_tokens / used.input_tokens - 1) <= 0.1
    else:
        assert used.calls == sum(one.calls for one in estimates)
