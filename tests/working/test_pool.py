"""The pool: which units are near to a question, and what outlives it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tomewise.errors import StoreError
from tomewise.testing import HashEmbedder, NotingEmbedder
from tomewise.types import Evidence, Place
from tomewise.working.pool import Pool, Unit


def make_piece(node: str) -> Evidence:
    return Evidence(id=node, layer="passages", text=node, score=1.0, sources=(node,))


def make_unit(cue: str, *nodes: str) -> Unit:
    return Unit("probe", "veridical", tuple(map(make_piece, nodes)), cue)


def make_pool(*units: Unit, dimensions: int = 32) -> Pool:
    pool = Pool(HashEmbedder(dimensions))
    pool.add(list(units))
    return pool


def list_cues(units) -> list[str]:
    return [unit.cue for unit in units]


def test_a_share_of_the_pool_nearest_first_at_least_so_many_and_none_without_cues():
    cues = ("bread and butter", "the tide turned at nine", "a red boat", "tide tables")
    pool = make_pool(*map(make_unit, cues), dimensions=1024)
    assert list_cues(pool.find_relevant("when did the tide turn", 0.5, 2)) == ["the tide turned at nine", "tide tables"]
    assert len(pool.find_relevant("tide", 1.0, 2)) == 4
    assert [make_pool(*units).find_relevant("tide", 0.5, 2) for units in ((), (make_unit("", "n1"),))] == [[], []]
    pool = make_pool(*map(make_unit, ("tide", "boat", "lamp")), make_unit("tide", "n2"))
    assert list_cues(pool.find_relevant("tide", 0.1, 1)) == ["tide"]
    two = pool.find_relevant("tide", 0.5, 2)
    assert len(two) == 2, "half of three different cues, rounded down, would be one"
    assert two[0].cue == "tide"
    assert pool.find_relevant("tide", 0.0, 2) == []


def test_a_cue_is_embedded_once():
    embedder = NotingEmbedder(32)
    pool = Pool(embedder)
    units = [make_unit("tide"), make_unit("", "n1"), make_unit("tide", "n2"), make_unit("boat")]
    pool.add(units)
    pool.add([*units, make_unit("river")])
    assert embedder.batches == [("tide", "boat"), ("river",)]
    assert list_cues(pool.find_relevant("boat", 0.25, 1)) == ["boat"]


def test_units_with_a_cue_outlive_the_question_with_what_the_cue_rests_on():
    place = Place(chapter=("One", "Two"), page=3)
    rich = replace(make_piece("n1"), place=place, sources=("n1", "n9"), title="T")
    tide = Unit("probe", "tree", (rich, make_piece("n2")), "tide", ("n1",))
    pool = make_pool(tide, make_unit("", "n3"), make_unit("boat", "n4"))
    loaded = Pool.load(json.loads(json.dumps(pool.dump())), HashEmbedder(32))
    assert loaded.units == (replace(tide, evidence=(rich,)), make_unit("boat", "n4"))
    assert loaded.dump() == pool.dump()
    pool.begin_question()
    assert pool.units == loaded.units
    assert loaded.find_nodes() == {"n1", "n9", "n4"}
    assert loaded.forget(["n9"]) == ("tide",)
    assert loaded.notes == ("boat",)


def test_a_full_pool_keeps_the_newest_units():
    pool = make_pool(make_unit("tide", "n1"), make_unit("boat", "n2"), make_unit("tide", "n3"))
    assert pool.shrink(2) == (), "the cue of the oldest unit is kept by another one"
    assert pool.shrink(1) == ("boat",)
    assert pool.notes == ("tide",)


@pytest.mark.parametrize("data", [{}, {"units": [{"probe": 1}]}, "text"])
def test_a_damaged_pool_is_refused(data):
    with pytest.raises(StoreError, match="damaged"):
        Pool.load(data, HashEmbedder(32))
