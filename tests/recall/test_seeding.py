"""From a question to facts and to where walks start, compared with cases computed by hand or by slow code."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial

import numpy as np
import pytest
from tests.recall.graph_tomes import EMBEDDER, GRAPH, NAMES, add_and_build, build_store, vertices

from tomewise.errors import BadReply, ModelUnavailable, Refused
from tomewise.recall.graph_index import GraphIndexes
from tomewise.recall.seeding import (
    GraphQuestion,
    Hits,
    NearestFacts,
    seed_cogito,
    seed_hippo,
    seed_mentions,
    seed_passages,
)
from tomewise.testing import ScriptedModel

# ---------------------------------------------------------------- facts

QUERY = "Who sold the boat to Tom Hale?"


def embed(text):
    return EMBEDDER.embed([text])[0]


async def find_nearest(store, query=QUERY, **settings):
    return await NearestFacts(store, GRAPH, **settings).find_hits(query, embed(query))


async def test_without_facts_there_are_no_hits_and_no_model_is_asked_and_a_single_one_counts_in_full(build_graph):
    store = await build_graph("only a name")
    hits = await find_nearest(store)
    assert (len(hits.keys), hits.texts, len(hits.cosines), len(hits.scores)) == (0, (), 0, 0)
    model = ScriptedModel({})
    hits = await NearestFacts(store, GRAPH, model=model).find_hits(QUERY, embed(QUERY))
    assert (hits.texts, model.calls) == ((), [])
    store = await build_graph("Ada Marsh > kept > the light")
    assert (await find_nearest(store)).scores.tolist() == [1]


class Fixed(NearestFacts):
    """The same three hits for every question."""

    def find_nearest(self, vector, within):
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
        (ModelUnavailable("down"), None),
    ],
    ids=str,
)
async def test_recognition_keeps_what_the_model_says(reply, kept):
    model = ScriptedModel({"filter_facts": [reply]})
    finding = Fixed(None, GRAPH, model=model).find_hits("q", np.zeros(3, np.float32))
    if kept is None:
        with pytest.raises(ModelUnavailable, match="down"):
            await finding
        return
    hits = await finding
    assert "".join(hits.texts) == kept
    places = ["abc".index(text) for text in kept]
    assert hits.keys.tolist() == [[4, 7, 9][place] for place in places]
    assert hits.scores.tolist() == [[1.0, 0.5, 0.25][place] for place in places]
    assert hits.cosines.tolist() == [[0.9, 0.8, 0.7][place] for place in places]
    assert [call.given.facts for call in model.calls] == [["a", "b", "c"]]


# ---------------------------------------------------------------- seeds

TEXTS = ("Ada > met > Tom\nAda > kept > light", "Ada > met > Tom\nTom > is > Tom", "Ida > sold > boat", "light")


@pytest.fixture
async def store(build_graph):
    return await build_graph(*TEXTS)


@pytest.fixture
def index(store):
    """Ada and tom stand in two passages, light and ida in one."""
    return GraphIndexes(store, GRAPH).current()


def make_question(store, text="who?", cosines=None, **scores):
    """A question that hits the facts "ada_met_tom=0.5"; an unknown fact has an unknown key."""
    texts = [name.replace("_", " ") for name in scores]
    keys = {node.text: key for key, node in store.nodes(NAMES.facts).items()}
    values = np.array(list(scores.values()), np.float64)
    hits = Hits(
        np.array([keys.get(text, 10**6) for text in texts], np.int64),
        tuple(texts),
        values if cosines is None else np.array(cosines),
        values,
    )
    return GraphQuestion(text, embed(text), hits)


async def find_seeds(seeding, question, store, index):
    """The sum of the weights on each vertex, by name."""
    found, weights = seeding(question, index)
    names = vertices(store, index)
    sums = Counter()
    for vertex, weight in zip(found.tolist(), weights.tolist(), strict=True):
        sums[names[vertex]] += weight
    return {name: pytest.approx(weight) for name, weight in sums.items()}


@pytest.mark.parametrize("seeding", [seed_hippo, seed_cogito])
async def test_facts_that_the_index_does_not_know_give_nothing(store, index, seeding):
    known = await find_seeds(seeding, make_question(store, ida_sold_boat=0.5), store, index)
    both = make_question(store, unheard_of=1.0, ida_sold_boat=0.5)
    assert await find_seeds(seeding, both, store, index) == known != {}
    assert await find_seeds(seeding, make_question(store, unheard_of=1.0), store, index) == {}
    assert await find_seeds(seeding, make_question(store), store, index) == {}


NAMED = """Barry Wesson
Wesson
Houston Astros
Houston
World Series
series
1930
Saint-Denis
Denis
O'Brien
McDonald's
team
Émile Zola
सीता
J. R. R. Tolkien
state of new york
york"""


@pytest.fixture(scope="module")
def names_tome(tmp_path_factory):
    """A tome with these names, and its index."""
    made = asyncio.run(build_store(tmp_path_factory.mktemp("names"), NAMED))
    yield made, GraphIndexes(made, GRAPH, links="extracted").current()
    made.close()


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Which team did Barry Wesson leave?", ["barry wesson"]),  # the longest name; `team` is not capitalised
        ("Wesson left whom?", []),  # the first word is always capitalised
        ("Who is Wesson?", ["wesson"]),
        ("where was barry wesson born?", ["barry wesson"]),  # as people type
        ("which team is in houston?", []),  # one word in small letters may be no name
        ("What is Barry Wesson's team?", ["barry wesson"]),
        ("What is McDonald's?", ["mcdonald s"]),
        ("Who is O'Brien?", ["o brien"]),
        ("Did the Houston Astros win the World Series in 1930?", ["1930", "houston astros", "world series"]),
        ("1930 was when?", []),
        ("What lies near Saint-Denis?", ["saint denis"]),
        ("Which Houston-based team?", ["houston"]),
        ("What did J.R.R. Tolkien write?", ["j r r tolkien"]),
        ("What did émile ZOLA write?", ["émile zola"]),
        ("Who was SÍTA, सीता?", []),  # the script has no capital letters
        ("Where in the state of New York is it?", ["state of new york"]),
        ("", []),
    ],
)
async def test_mentions(names_tome, question, names):
    store, index = names_tome
    found = await find_seeds(partial(seed_mentions, store, NAMES), make_question(store, question), store, index)
    assert found == dict.fromkeys(names, 1.0)


async def test_what_the_index_does_not_know_yet_is_left_out(store, index):
    await add_and_build(store, "new", "Uma\nAda met a boat")
    question = make_question(store, "Are Uma, Ida here?")
    assert await find_seeds(partial(seed_mentions, store, NAMES), question, store, index) == {"ida": 1}
    found, _ = seed_passages(store, make_question(store, "Ada met a boat"), index)
    assert sorted(found.tolist()) == list(range(len(index.entities), len(index.entities) + 4))
