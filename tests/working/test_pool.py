from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import StoreError
from tomewise.types import Evidence, Place
from tomewise.working.pool import Pool, Unit


def piece(node: str) -> Evidence:
    return Evidence(node=node, layer="passages", text=node, score=1.0, sources=(node,))


def unit(cue: str, *nodes: str) -> Unit:
    return Unit("probe", "veridical", tuple(piece(node) for node in nodes), cue)


def test_what_was_seen_is_dropped_before_the_cut():
    pool = Pool(HashEmbedder(32))
    pool.add([unit("a cue", "n1", "n2")])
    fresh = pool.find_unseen([piece("n1"), piece("n3"), piece("n2"), piece("n4"), piece("n5")], 2)
    assert [found.node for found in fresh] == ["n3", "n4"]
    assert pool.size == 2, "what is merely looked at is not in the pool"


def test_half_of_the_pool_nearest_first():
    pool = Pool(HashEmbedder(1024))
    pool.add([unit("bread and butter"), unit("the tide turned at nine"), unit("a red boat"), unit("tide tables")])
    assert [found.cue for found in pool.find_relevant("when did the tide turn", 0.5, 2)] == [
        "the tide turned at nine",
        "tide tables",
    ]
    assert len(pool.find_relevant("tide", 1.0, 2)) == 4


def test_at_least_so_many_and_none_without_cues():
    pool = Pool(HashEmbedder(32))
    assert pool.find_relevant("tide", 0.5, 2) == []
    pool.add([unit("", "n1")])
    assert pool.find_relevant("tide", 0.5, 2) == []
    pool.add([unit("tide"), unit("tide", "n2"), unit("boat"), unit("lamp")])
    assert [found.cue for found in pool.find_relevant("tide", 0.1, 1)] == ["tide"]
    two = pool.find_relevant("tide", 0.5, 2)
    assert len(two) == 2, "half of three different cues, rounded down, would be one"
    assert two[0].cue == "tide"
    assert pool.find_relevant("tide", 0.0, 2) == []


def test_searches_are_kept_by_layer_and_a_query_that_comes_again_adds_what_is_new():
    pool = Pool(HashEmbedder(32))
    pool.record("q", "veridical", [piece("n1"), piece("n2")])
    pool.record("probe", "veridical", [piece("n2")])
    pool.record("q", "veridical", [piece("n3"), piece("n1")])
    found = [[each.node for each in ranking] for ranking in pool.list_searches("veridical")]
    assert found == [["n1", "n2", "n3"], ["n2"]]
    assert pool.list_searches("semantic") == []
    pool.begin_question()
    assert pool.list_searches("veridical") == []


def test_what_was_prepared_is_not_embedded_again():
    asked: list[list[str]] = []

    class Counting(HashEmbedder):
        def embed(self, texts):
            asked.append(list(texts))
            return super().embed(texts)

    pool = Pool(Counting(32))
    units = [unit("tide"), unit("", "n1"), unit("tide", "n2"), unit("boat")]
    pool.prepare(units)
    assert pool.units == (), "only what is taken is in the pool"
    pool.add([*units, unit("river")])
    assert asked == [["tide", "boat"], ["river"]]
    assert [found.cue for found in pool.find_relevant("boat", 0.25, 1)] == ["boat"]


def test_units_with_a_cue_outlive_the_question_with_what_the_cue_rests_on():
    pool = Pool(HashEmbedder(32))
    place = Place(chapter=("One", "Two"), page=3)
    rich = replace(piece("n1"), place=place, sources=("n1", "n9"), title="T")
    pool.add([Unit("probe", "tree", (rich, piece("n2")), "tide", ("n1",)), unit("", "n3"), unit("boat", "n4")])
    pool.record("probe", "tree", [piece("n2")])
    loaded = Pool.load(json.loads(json.dumps(pool.dump())), HashEmbedder(32))
    assert loaded.units == (Unit("probe", "tree", (rich,), "tide", ("n1",)), unit("boat", "n4"))
    assert loaded.dump() == pool.dump()
    pool.begin_question()
    assert (pool.units, pool.size, pool.list_searches("tree"), pool.new_units) == (loaded.units, 0, [], ())
    assert loaded.find_nodes() == {"n1", "n9", "n4"}
    assert loaded.forget(["n9"]) == ("tide",)
    assert loaded.notes == ("boat",)


def test_a_full_pool_keeps_the_newest_units():
    pool = Pool(HashEmbedder(32))
    pool.add([unit("tide", "n1"), unit("boat", "n2"), unit("tide", "n3")])
    assert pool.shrink(2) == (), "the cue of the oldest unit is kept by another one"
    assert pool.shrink(1) == ("boat",)
    assert pool.notes == ("tide",)


@pytest.mark.parametrize("data", [{}, {"units": [{"probe": 1}]}, "text"])
def test_a_damaged_pool_is_refused(data):
    with pytest.raises(StoreError, match="damaged"):
        Pool.load(data, HashEmbedder(32))
