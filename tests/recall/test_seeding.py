"""From a question to facts and to where walks start, compared with cases computed by hand or by slow code."""

from __future__ import annotations

import asyncio
from collections import Counter

import numpy as np
import pytest
from tests.recall.graph_tomes import EMBEDDER, GRAPH, NAMES, add_and_build, build_store, remove_and_build, vertices

from tomewise.errors import BadReply, ModelUnavailable, Refused
from tomewise.recall.graph_index import GraphIndexes
from tomewise.recall.linking import Hits, NearestFacts, RecognisedFacts
from tomewise.recall.seeding import (
    CogitoSeeds,
    ExpandedPassageSeeds,
    GraphQuestion,
    HippoSeeds,
    MentionSeeds,
    PassageSeeds,
    SumOfSeeds,
)
from tomewise.testing import NotingEmbedder, ScriptedModel

# ---------------------------------------------------------------- facts

QUERY = "Who sold the boat to Tom Hale?"
STATED = (
    "Ada Marsh > kept > the light\nTom Hale > bought > the boat",
    "the light > kept > Ada Marsh\nIda Poe > sold > the boat",  # the first fact with its ends exchanged: a tie
    "Tom Hale > is > Tom Hale",
)


def embed(text):
    return EMBEDDER.embed([text])[0]


def rank_slowly(store, query):
    """Every fact with its cosine, in order."""
    found = []
    for node in store.nodes(NAMES.facts).values():
        embedded = str((node.data["head"], node.data["relation"], node.data["tail"]))
        found.append((-round(float(embed(embedded) @ embed(query)), 6), node.id, node.text))
    return sorted(found)


async def find_nearest(store, query=QUERY, **settings):
    return await NearestFacts(store, GRAPH, **settings).find_hits(query, embed(query))


async def test_the_nearest_facts_are_those_of_a_plain_ranking(build_graph):
    store = await build_graph(*STATED)
    for query in (QUERY, "Ada Marsh kept the light"):
        for limit in (1, 2, 3, 10):
            hits = await find_nearest(store, query, limit=limit)
            assert list(hits.texts) == [text for _, _, text in rank_slowly(store, query)[:limit]]
            assert [store.nodes_at([key])[key].text for key in hits.keys.tolist()] == list(hits.texts)
    hits = await find_nearest(store, limit=3)
    every = [-cosine for cosine, _, _ in rank_slowly(store, QUERY)]
    assert hits.cosines == pytest.approx(every[:3], abs=1e-6)
    scaled = [(cosine - min(every)) / (max(every) - min(every)) for cosine in every[:3]]
    assert hits.scores == pytest.approx(scaled, abs=1e-5)  # over all facts, not over those hit


async def test_without_facts_there_are_no_hits_and_no_model_is_asked_and_a_single_one_counts_in_full(build_graph):
    store = await build_graph("only a name")
    hits = await find_nearest(store)
    assert (len(hits.keys), hits.texts, len(hits.cosines), len(hits.scores)) == (0, (), 0, 0)
    model = ScriptedModel({})
    hits = await RecognisedFacts(NearestFacts(store, GRAPH), model).find_hits(QUERY, embed(QUERY))
    assert (hits.texts, model.calls) == ((), [])
    store = await build_graph("Ada Marsh > kept > the light")
    assert (await find_nearest(store)).scores.tolist() == [1]


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
        (ModelUnavailable("down"), None),
    ],
    ids=str,
)
async def test_recognition_keeps_what_the_model_says(reply, kept):
    model = ScriptedModel({"filter_facts": [reply]})
    finding = RecognisedFacts(Fixed(), model).find_hits("q", np.zeros(3, np.float32))
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
    found, weights = await seeding.find_seeds(question, index)
    names = vertices(store, index)
    sums = Counter()
    for vertex, weight in zip(found.tolist(), weights.tolist(), strict=True):
        sums[names[vertex]] += weight
    return {name: pytest.approx(weight) for name, weight in sums.items()}


async def test_hippo_seeds_by_hand(store, index):
    question = make_question(store, ada_met_tom=1.0, ada_kept_light=0.6, tom_is_tom=0.2)
    found = await find_seeds(HippoSeeds(), question, store, index)
    assert found == {"ada": (1.0 / 2 + 0.6 / 2) / 2, "tom": (1.0 / 2 + 0.2 / 2 + 0.2 / 2) / 3, "light": 0.6}
    assert await find_seeds(HippoSeeds(keep=2), question, store, index) == {"light": 0.6, "ada": 0.4}


async def test_cogito_seeds_by_hand(store, index):
    question = make_question(store, cosines=[0.9, 0.5, -0.4], ada_met_tom=1.0, ada_kept_light=0.5, tom_is_tom=0.0)
    once, twice = 1 + 2 * (1 - np.exp(-1)), 1 + 2 * (1 - np.exp(-2))
    found = await find_seeds(CogitoSeeds(), question, store, index)
    assert found == {"ada": 0.7 * twice / 2, "tom": 0.45 * twice / 2, "light": 0.5 * once}
    plain = await find_seeds(CogitoSeeds(alpha=0), question, store, index)
    assert plain == {"ada": 0.35, "tom": 0.225, "light": 0.5}


@pytest.mark.parametrize("seeding", [HippoSeeds(), CogitoSeeds()])
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
        ("Barry Wesson left whom?", ["barry wesson"]),
        ("Wesson left whom?", []),  # the first word is always capitalised
        ("Wesson?", []),
        ("Who is Wesson?", ["wesson"]),
        ("Did Wesson meet Barry Wesson?", ["barry wesson", "wesson"]),
        ("where was barry wesson born?", ["barry wesson"]),  # as people type
        ("which team is in houston?", []),  # one word in small letters may be no name
        ("What is Barry Wesson's team?", ["barry wesson"]),
        ("What is BARRY WESSON’S team?", ["barry wesson"]),
        ("What is McDonald's?", ["mcdonald s"]),
        ("Who is O'Brien?", ["o brien"]),
        ("Did the Houston Astros win the World Series in 1930?", ["1930", "houston astros", "world series"]),
        ("1930 was when?", []),
        ("Who won the series?", []),
        ("What lies near Saint-Denis?", ["saint denis"]),
        ("Which Houston-based team?", ["houston"]),
        ("What did J.R.R. Tolkien write?", ["j r r tolkien"]),
        ("What did émile ZOLA write?", ["émile zola"]),
        ("Who was SÍTA, सीता?", []),  # the script has no capital letters
        ("Where in the state of New York is it?", ["state of new york"]),
        ("Who is Nobody At All?", []),
        ("", []),
        ("???", []),
    ],
)
async def test_mentions(names_tome, question, names):
    store, index = names_tome
    found = await find_seeds(MentionSeeds(store, NAMES), make_question(store, question), store, index)
    assert found == dict.fromkeys(names, 1.0)


async def test_a_mention_weighs_less_the_more_passages_it_stands_in(store, index):
    extracted = GraphIndexes(store, GRAPH, links="extracted").current()
    question = make_question(store, "Did Ada, Ida and Light meet?")
    seeds = await find_seeds(MentionSeeds(store, NAMES), question, store, extracted)
    assert seeds == {"ada": 1 / 2, "ida": 1, "light": 1 / 2}
    heavy = await find_seeds(MentionSeeds(store, NAMES, weight=2.0), question, store, extracted)
    assert heavy == {"ada": 1, "ida": 2, "light": 1}
    assert (await find_seeds(MentionSeeds(store, NAMES), question, store, index))["light"] == 1, "by facts"


async def test_what_the_index_does_not_know_yet_is_left_out(store, index):
    await add_and_build(store, "new", "Uma\nAda met a boat")
    question = make_question(store, "Are Uma, Ida here?")
    assert await find_seeds(MentionSeeds(store, NAMES), question, store, index) == {"ida": 1}
    found, _ = await PassageSeeds(store).find_seeds(make_question(store, "Ada met a boat"), index)
    assert sorted(found.tolist()) == list(range(len(index.entities), len(index.entities) + 4))


def by_cosine(store, vectors):
    """Each document with its best cosine, scaled over all: best first."""
    passages = list(store.passages().values())
    cosines = (EMBEDDER.embed([passage.content for passage in passages]) @ np.array(vectors).T).max(axis=1)
    scores = (cosines - cosines.min()) / (cosines.max() - cosines.min())
    ranking = sorted(zip(scores.tolist(), [passage.document for passage in passages], strict=True), reverse=True)
    return {name: score for score, name in ranking}


async def test_passage_seeds_are_cosines_scaled_over_all(store, index):
    question = make_question(store, "Ada met a boat")
    whole = by_cosine(store, [question.vector])
    found = await find_seeds(PassageSeeds(store, weight=0.1), question, store, index)
    assert found == {name: 0.1 * score for name, score in whole.items()}
    best = await find_seeds(PassageSeeds(store, weight=0.1, keep=2), question, store, index)
    assert best == {name: 0.1 * whole[name] for name in list(whole)[:2]}


@pytest.mark.parametrize(
    ("text", "scores", "facts", "expansions"),
    [
        (  # the question names all ends of the third fact
            "Did Tom find the boat?",
            {"ida_sold_boat": 1.0, "ada_met_tom": 0.9, "tom_is_tom": 0.8, "ada_kept_light": 0.7},
            None,
            ["ida", "ada"],
        ),
        (  # only whole words count as named, so both ends come before the question
            "Who saw the adamant lighthouse?",
            {"ada_kept_light": 1.0, "ida_sold_boat": 0.5},
            1,
            ["ada light"],
        ),
        ("Ada met a boat", {}, None, []),
    ],
)
async def test_expanded_seeds_take_the_best_of_the_question_and_its_expansions(
    store, index, text, scores, facts, expansions
):
    embedder = NotingEmbedder(EMBEDDER.dimensions)
    question = make_question(store, text, **scores)
    seeding = ExpandedPassageSeeds(store, embedder, weight=1.0, **({"facts": facts} if facts else {}))
    found = await find_seeds(seeding, question, store, index)
    assert embedder.texts == [f"{names} {text}" for names in expansions]
    vectors = [question.vector, *(embed(expanded) for expanded in embedder.texts)]
    assert found == by_cosine(store, vectors)


async def test_an_expansion_leaves_out_an_entity_that_was_removed(store, index):
    question = make_question(store, "Ada met whom?", ida_sold_boat=1.0)
    await remove_and_build(store, "d2")
    embedder = NotingEmbedder(EMBEDDER.dimensions)
    found, _ = await ExpandedPassageSeeds(store, embedder).find_seeds(question, index)
    assert embedder.texts == []
    assert len(found) == 3


async def test_sums_of_seeds(store, index):
    question = make_question(store, "Is Ida there?", ida_sold_boat=0.5)
    both = await find_seeds(SumOfSeeds([HippoSeeds(), MentionSeeds(store, NAMES)]), question, store, index)
    assert both == {"ida": 1.5, "boat": 0.5}
