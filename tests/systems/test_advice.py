"""Which system is recommended, by a simple rule; and the groups in which systems are listed."""

from __future__ import annotations

import json

import pytest

from tomewise.systems.advice import GROUPS, find_group, recommend_system
from tomewise.tome.tome import Tome
from tomewise.types import Document

MODEL = "openai:gpt-4o-mini"


@pytest.mark.parametrize(
    ("passages", "model", "system"),
    [
        ([10], MODEL, "hybrid"),  # fits into one prompt
        ([1] * 2000, MODEL, "associative"),  # short documents
        ([1] * 100 + [300], MODEL, "investigate"),  # short ones beside a long one
        ([400], MODEL, "investigate"),  # a novel
        ([400], "extractive", "hybrid"),
    ],
)
def test_the_rule(passages, model, system):
    found = recommend_system(passages, 256, model)
    assert found is not None
    assert found.system == system
    assert ("with a model: investigate" in found.because) == (model == "extractive")


def test_every_system_of_ours_has_a_group_and_what_it_costs(command):
    rows = json.loads(command("systems", "--json").out)
    assert {row["group"] for row in rows} <= set(GROUPS)
    assert all(row["group"] != "others" and row["ask"] and row["build"] for row in rows)
    assert {row["name"]: row["build"] for row in rows}["hybrid"] == "none"
    ours = {row["name"] for row in rows if row["group"] == "by effort"}
    assert ours == {row["name"] for row in rows[: len(ours)]}, "ours lead"
    assert {"auto", "hybrid", "associative", "investigate"} <= ours
    shown = command("systems").out
    assert all(title in shown for title in GROUPS if title != "others")
    assert find_group("own", "a kind of a plugin") == "others"


def test_a_tome_is_recommended_a_system(tome: Tome, command):
    assert tome.memory.recommend() is None
    tome.add(Document(id="a", text="Ada Marsh put out the light."))
    found = tome.memory.recommend()
    assert found is not None
    path = tome.store.address
    assert json.loads(command("show", "-m", path, "--json").out)["recommended"]["system"] == found.system == "hybrid"
    assert "recommended: --system hybrid" in command("show", "-m", path).out
