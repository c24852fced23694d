"""From a question to facts: by cosine, and by what a model recognises."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from tests.recall.graph_tomes import EMBEDDER, GRAPH, NAMES, add_and_build, build_store, remove_and_build

from tomewise.errors import BadReply, ModelUnavailable, Refused
from tomewise.recall.linking import Hits, NearestFacts, RecognisedFacts
from tomewise.testing import ScriptedModel

QUERY = "Who sold the boat to Tom Hale?"
TEXTS = (
    "Ada Marsh > kept > the light\nTom Hale > bought > the boat",
    "the light > kept > Ada Marsh\nIda Poe > sold > the boat",  # the first fact with its ends exchanged: a tie
    "Tom Hale > is > Tom Hale",
)


def vector(text):
    return EMBEDDER.embed([text])[0]


def rank_slowly(store, query):
    """Every fact with its cosine, in order."""
    found = []
    for node in store.nodes(NAMES.facts).values():
        embedded = str((node.data["head"], node.data["relation"], node.data["tail"]))
        found.append((-round(float(vector(embedded) @ vector(query)), 6), node.id, node.text))
    return sorted(found)


async def test_the_nearest_are_those_of_a_plain_ranking(tmp_path):
    store = await build_store(tmp_path, *TEXTS)
    for query in (QUERY, "Ada Marsh kept the light"):
        for limit in (1, 2, 3, 10):
            hits = await NearestFacts(store, GRAPH, limit=limit).find_hits(query, vector(query))
            assert list(hits.texts) == [text for _, _, text in rank_slowly(store, query)[:limit]]
            assert [store.nodes_at([key])[key].text for key in hits.keys.tolist()] == list(hits.texts)
    hits = await NearestFacts(store, GRAPH, limit=3).find_hits(QUERY, vector(QUERY))
    every = [-cosine for cosine, _, _ in rank_slowly(store, QUERY)]
    assert hits.cosines == pytest.approx(every[:3], abs=1e-6)
    low, high = min(every), max(every)
    scaled = [(cosine - low) / (high - low) for cosine in every[:3]]
    assert hits.scores == pytest.approx(scaled, abs=1e-5)  # over all facts, not over those hit


async def test_facts_come_and_go_with_their_documents(tmp_path):
    store = await build_store(tmp_path, *TEXTS)
    nearest = NearestFacts(store, GRAPH, limit=2)
    await add_and_build(store, "new", "Tom Hale > sold > the boat")
    assert (await nearest.find_hits(QUERY, vector(QUERY))).texts[0] == "tom hale sold the boat"
    await remove_and_build(store, "new")
    await remove_and_build(store, "d1")
    hits = await nearest.find_hits(QUERY, vector(QUERY))
    assert list(hits.texts) == [text for _, _, text in rank_slowly(store, QUERY)[:2]]
    assert "ida poe sold the boat" not in hits.texts


async def test_without_facts_there_are_no_hits(tmp_path):
    store = await build_store(tmp_path, "only a name")
    hits = await NearestFacts(store, GRAPH).find_hits(QUERY, vector(QUERY))
    assert (len(hits.keys), hits.texts, len(hits.cosines), len(hits.scores)) == (0, (), 0, 0)


async def test_the_only_fact_counts_in_full(tmp_path):
    store = await build_store(tmp_path, "Ada Marsh > kept > the light")
    hits = await NearestFacts(store, GRAPH).find_hits(QUERY, vector(QUERY))
    assert hits.scores.tolist() == [1]


class Fixed:
    """The same three hits for every question."""

    async def find_hits(self, query, vector, within=None):
        return Hits(np.array([4, 7, 9]), ("a", "b", "c"), np.array([0.9, 0.8, 0.7]), np.array([1.0, 0.5, 0.25]))


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ({"keep": [1, 3]}, "ac"),
        ({"keep": [3, 1]}, "ca"),
        ({"keep": [2, 2, 0, -1, 4, 99]}, "b"),
        ({"keep": []}, ""),
        (BadReply("no JSON"), "abc"),
        (Refused("I would rather not"), "abc"),
    ],
    ids=str,
)
async def test_recognition_keeps_what_the_model_says(reply, kept):
    model = ScriptedModel({"filter_facts": [reply]})
    hits = await RecognisedFacts(Fixed(), model).find_hits("q", np.zeros(3, np.float32))
    assert "".join(hits.texts) == kept
    places = ["abc".index(text) for text in kept]
    assert hits.keys.tolist() == [[4, 7, 9][place] for place in places]
    assert hits.scores.tolist() == [[1.0, 0.5, 0.25][place] for place in places]
    assert hits.cosines.tolist() == [[0.9, 0.8, 0.7][place] for place in places]
    (call,) = model.calls
    assert call.given.facts == ["a", "b", "c"]


async def test_recognition_calls_no_model_if_no_fact_was_hit(tmp_path):
    store = await build_store(tmp_path, "only a name")
    model = ScriptedModel({})
    hits = await RecognisedFacts(NearestFacts(store, GRAPH), model).find_hits(QUERY, vector(QUERY))
    assert (hits.texts, model.calls) == ((), [])


def test_an_unavailable_model_is_an_error():
    model = ScriptedModel({"filter_facts": [ModelUnavailable("down")]})
    with pytest.raises(ModelUnavailable):
        asyncio.run(RecognisedFacts(Fixed(), model).find_hits("q", np.zeros(3, np.float32)))
