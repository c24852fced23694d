"""Which evidence an attempt of the probing loop sees first."""

from __future__ import annotations

from tomewise.embedding.hash import HashEmbedder
from tomewise.loops.selection import BestSoFar
from tomewise.types import Evidence
from tomewise.working.pool import Pool, Unit

QUESTION = "when did the tide turn"


def pieces(*nodes: str) -> tuple[Evidence, ...]:
    return tuple(Evidence(node=node, layer="passages", text=node, score=1.0, sources=(node,)) for node in nodes)


def rank(*units: Unit, layer: str = "v") -> list[str]:
    pool = Pool(HashEmbedder(256))
    pool.credit(layer, pieces("own1", "own2", "own3"))
    pool.add(units)
    return [piece.node for piece in BestSoFar().rank(QUESTION, layer, [], pool)]


def test_own_hits_and_what_cues_rest_on_take_turns_the_nearest_cue_first():
    far = Unit("p", "v", pieces("far1", "far2"), "a red boat", ("far2",))
    near = Unit("q", "v", pieces("near1", "near2", "near3"), "the tide did turn at nine", ("near3", "near1"))
    assert rank(far, near)[:6] == ["near3", "own1", "far2", "own2", "near1", "own3"]


def test_where_no_support_is_named_shared_words_decide():
    assert rank(Unit("p", "v", pieces("boat", "tide"), "the tide"))[:4] == ["tide", "own1", "boat", "own2"]


def test_a_cue_that_rests_on_another_layer_brings_nothing_of_this_one_to_the_front():
    foreign = Unit("p", "v", pieces("new1", "new2"), "the tide", ("window",))
    assert rank(foreign)[:3] == ["own1", "own2", "own3"]
