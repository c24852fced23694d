"""Where walks start: each seeding, compared with cases computed by hand or by slow code."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from tests.recall.graph_tomes import EMBEDDER, GRAPH, NAMES, add_and_build, build_store, remove_and_build, vertices

from tomewise.recall.graph_index import GraphIndexes
from tomewise.recall.linking import Hits
from tomewise.recall.seeding import (
    CogitoSeeds,
    ExpandedPassageSeeds,
    GraphQuestion,
    HippoSeeds,
    MentionSeeds,
    PassageSeeds,
    SumOfSeeds,
)

TEXTS = ("Ada > met > Tom\nAda > kept > light", "Ada > met > Tom\nTom > is > Tom", "Ida > sold > boat", "light")


def hits(store, scores, cosines=None):
    """Hits of the facts with these texts; an unknown text gives an unknown key."""
    keys = {node.text: key for key, node in store.nodes(NAMES.facts).items()}
    values = np.array(list(scores.values()))
    return Hits(
        np.array([keys.get(text, 10**6) for text in scores], np.int64),
        tuple(scores),
        values if cosines is None else np.array(cosines),
        values,
    )


def make_question(found, text="who?"):
    return GraphQuestion(text, EMBEDDER.embed([text])[0], found)


def no_hits():
    return Hits(np.empty(0, np.int64), (), np.empty(0), np.empty(0))


async def seeds(seeding, question, store, index):
    """The sum of the weights on each vertex, by name."""
    found, weights = await seeding.find_seeds(question, index)
    names = vertices(store, index)
    sums = Counter()
    for vertex, weight in zip(found.tolist(), weights.tolist(), strict=True):
        sums[names[vertex]] += weight
    return {name: pytest.approx(weight) for name, weight in sums.items()}


@pytest.fixture
async def store(tmp_path):
    made = await build_store(tmp_path, *TEXTS)
    yield made
    made.close()


async def test_hippo_seeds_by_hand(store):
    index = GraphIndexes(store, GRAPH).current()  # ada and tom stand in two passages, light and ida in one
    question = make_question(hits(store, {"ada met tom": 1.0, "ada kept light": 0.6, "tom is tom": 0.2}))
    found = await seeds(HippoSeeds(), question, store, index)
    assert found == {"ada": (1.0 / 2 + 0.6 / 2) / 2, "tom": (1.0 / 2 + 0.2 / 2 + 0.2 / 2) / 3, "light": 0.6}
    assert await seeds(HippoSeeds(keep=2), question, store, index) == {"light": 0.6, "ada": 0.4}


async def test_cogito_seeds_by_hand(store):
    index = GraphIndexes(store, GRAPH).current()
    question = make_question(
        hits(store, {"ada met tom": 1.0, "ada kept light": 0.5, "tom is tom": 0.0}, [0.9, 0.5, -0.4])
    )
    once, twice = 1 + 2 * (1 - np.exp(-1)), 1 + 2 * (1 - np.exp(-2))
    found = await seeds(CogitoSeeds(), question, store, index)
    assert found == {"ada": 0.7 * twice / 2, "tom": 0.45 * twice / 2, "light": 0.5 * once}
    plain = await seeds(CogitoSeeds(alpha=0), question, store, index)
    assert plain == {"ada": 0.35, "tom": 0.225, "light": 0.5}


@pytest.mark.parametrize("seeding", [HippoSeeds(), CogitoSeeds()])
async def test_facts_that_the_index_does_not_know_give_nothing(store, seeding):
    index = GraphIndexes(store, GRAPH).current()
    both = await seeds(seeding, make_question(hits(store, {"unheard of": 1.0, "ida sold boat": 0.5})), store, index)
    assert both == await seeds(seeding, make_question(hits(store, {"ida sold boat": 0.5})), store, index) != {}
    assert await seeds(seeding, make_question(hits(store, {"unheard of": 1.0})), store, index) == {}
    assert await seeds(seeding, make_question(no_hits()), store, index) == {}


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


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Which team did Barry Wesson leave?", ["barry wesson"]),  # the longest name; `team` is not capitalised
        ("Barry Wesson left whom?", ["barry wesson"]),
        ("Wesson left whom?", []),  # the first word is always capitalised
        ("Who is Wesson?", ["wesson"]),
        ("Did Wesson meet Barry Wesson?", ["barry wesson", "wesson"]),
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
async def test_mentions(tmp_path, question, names):
    store = await build_store(tmp_path, NAMED)
    index = GraphIndexes(store, GRAPH, links="extracted").current()
    found = await seeds(MentionSeeds(store, NAMES), make_question(no_hits(), question), store, index)
    assert found == dict.fromkeys(names, 1.0)
    store.close()


async def test_a_mention_weighs_less_the_more_passages_it_stands_in(store):
    index = GraphIndexes(store, GRAPH, links="extracted").current()
    question = make_question(no_hits(), "Did Ada, Ida and Light meet?")
    assert await seeds(MentionSeeds(store, NAMES), question, store, index) == {"ada": 1 / 2, "ida": 1, "light": 1 / 2}
    heavy = await seeds(MentionSeeds(store, NAMES, weight=2.0), question, store, index)
    assert heavy == {"ada": 1, "ida": 2, "light": 1}
    by_facts = GraphIndexes(store, GRAPH).current()
    assert (await seeds(MentionSeeds(store, NAMES), question, store, by_facts))["light"] == 1


async def test_a_mention_of_what_the_index_does_not_know_yet_is_left_out(store):
    index = GraphIndexes(store, GRAPH).current()
    await add_and_build(store, "new", "Uma")
    assert await seeds(MentionSeeds(store, NAMES), make_question(no_hits(), "Are Uma, Ida here?"), store, index) == {
        "ida": 1
    }


def by_cosine(store, vectors):
    """Each document with its best cosine, scaled over all: best first."""
    passages = list(store.passages().values())
    cosines = (EMBEDDER.embed([passage.content for passage in passages]) @ np.array(vectors).T).max(axis=1)
    scores = (cosines - cosines.min()) / (cosines.max() - cosines.min())
    ranking = sorted(zip(scores.tolist(), [passage.document for passage in passages], strict=True), reverse=True)
    return {name: score for score, name in ranking}


async def test_passage_seeds_are_cosines_scaled_over_all(store):
    index = GraphIndexes(store, GRAPH).current()
    question = make_question(no_hits(), "Ada met a boat")
    whole = by_cosine(store, [question.vector])
    found = await seeds(PassageSeeds(store, weight=0.1), question, store, index)
    assert found == {name: 0.1 * score for name, score in whole.items()}
    best = await seeds(PassageSeeds(store, weight=0.1, keep=2), question, store, index)
    assert best == {name: 0.1 * whole[name] for name in list(whole)[:2]}


async def test_passages_that_the_index_does_not_know_yet_are_left_out(store):
    index = GraphIndexes(store, GRAPH).current()
    await add_and_build(store, "new", "Ada met a boat")
    found, _ = await PassageSeeds(store).find_seeds(make_question(no_hits(), "Ada met a boat"), index)
    assert sorted(found.tolist()) == list(range(len(index.entities), len(index.entities) + 4))


class RecordingEmbedder:
    """The embedder, with a record of the texts that it embedded."""

    def __init__(self):
        self.texts = []

    def embed(self, texts):
        self.texts += texts
        return EMBEDDER.embed(texts)


async def test_expanded_passage_seeds_take_the_best_of_the_question_and_its_expansions(store):
    index = GraphIndexes(store, GRAPH).current()
    found = hits(store, {"ida sold boat": 1.0, "ada met tom": 0.9, "tom is tom": 0.8, "ada kept light": 0.7})
    question = make_question(found, "Did Tom find the boat?")
    embedder = RecordingEmbedder()
    got = await seeds(ExpandedPassageSeeds(store, embedder, weight=1.0), question, store, index)
    # The question names all ends of the third fact.
    assert embedder.texts == ["ida Did Tom find the boat?", "ada Did Tom find the boat?"]
    assert got == by_cosine(store, [question.vector, *EMBEDDER.embed(embedder.texts)])


async def test_both_ends_that_the_question_does_not_name_come_before_it(store):
    index = GraphIndexes(store, GRAPH).current()
    embedder = RecordingEmbedder()
    question = make_question(
        hits(store, {"ada kept light": 1.0, "ida sold boat": 0.5}), "Who saw the adamant lighthouse?"
    )
    await seeds(ExpandedPassageSeeds(store, embedder, facts=1), question, store, index)
    assert embedder.texts == ["ada light Who saw the adamant lighthouse?"]  # only whole words count as named


async def test_without_hits_expanded_seeds_are_plain_ones(store):
    index = GraphIndexes(store, GRAPH).current()
    embedder = RecordingEmbedder()
    question = make_question(no_hits(), "Ada met a boat")
    got = await seeds(ExpandedPassageSeeds(store, embedder), question, store, index)
    assert got == await seeds(PassageSeeds(store), question, store, index)
    assert embedder.texts == []


async def test_an_expansion_leaves_out_an_entity_that_was_removed(store):
    index = GraphIndexes(store, GRAPH).current()
    question = make_question(hits(store, {"ida sold boat": 1.0}), "Ada met whom?")
    await remove_and_build(store, "d2")
    embedder = RecordingEmbedder()
    found, _ = await ExpandedPassageSeeds(store, embedder).find_seeds(question, index)
    assert embedder.texts == []
    assert len(found) == 3


async def test_sums_of_seeds(store):
    index = GraphIndexes(store, GRAPH).current()
    question = make_question(hits(store, {"ida sold boat": 0.5}), "Is Ida there?")
    both = await seeds(SumOfSeeds([HippoSeeds(), MentionSeeds(store, NAMES)]), question, store, index)
    assert both == {"ida": 1.5, "boat": 0.5}
