"""Diffusion recall against the exact walk, its fallbacks, CogniRank, decomposition, and a memory that changes."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.recall.exact_walk import power_iteration
from tests.recall.graph_tomes import EMBEDDER, GRAPH, NAMES, add_and_build, build_store, remove_and_build, vertices

from tomewise.errors import BadReply, ModelUnavailable, Refused
from tomewise.recall.cognirank import merge_rankings, scale_scores
from tomewise.recall.diffusion import CogniRank, DecomposedRecall, Diffusion, walk_one_step, walk_to_end
from tomewise.recall.flat import Dense
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
from tomewise.store.records import SETTINGS
from tomewise.testing import ScriptedModel, check_retriever
from tomewise.types import Evidence

QUERY = "Who sold Tom Hale the boat?"
PEOPLE = ["Ada Marsh", "Tom Hale", "Ida Poe", "Sam Reed", "Uma Voss"]
THINGS = ["boat", "light", "letter", "map"]
TEXTS = (
    *(f"{PEOPLE[n % 5]} > sold > {THINGS[n % 4]}\n{PEOPLE[n % 5]} > met > {PEOPLE[n % 3]}" for n in range(9)),
    "nothing of note",
    "a lone boat",
)
ALONE = {"d9", "d10"}  # passages without facts


@pytest.fixture
async def store(tmp_path):
    made = await build_store(tmp_path, *TEXTS)
    yield made
    made.close()


def hippo(store):
    return SumOfSeeds([HippoSeeds(), PassageSeeds(store)])


def diffusion(store, *, seeding=None, linking=None, links="facts", spreading=walk_to_end):
    facts = linking or NearestFacts(store, GRAPH)
    indexes = GraphIndexes(store, GRAPH, links=links)
    return Diffusion(store, EMBEDDER, indexes, facts, seeding or hippo(store), spreading=spreading)


def ours(store):
    seeding = SumOfSeeds([HippoSeeds(), MentionSeeds(store, NAMES), ExpandedPassageSeeds(store, EMBEDDER)])
    return diffusion(store, seeding=seeding, links="extracted")


def homes(store, found):
    passages = {passage.id: passage.document for passage in store.passages().values()}
    return [passages[piece.node] for piece in found]


def cosines(store, query=QUERY):
    passages = list(store.passages().values())
    rows = EMBEDDER.embed([passage.content for passage in passages])
    return dict(
        zip([passage.document for passage in passages], (rows @ EMBEDDER.embed([query])[0]).tolist(), strict=True)
    )


async def exact(store, seeding, query=QUERY):
    """The mass of each passage by power iteration, divided by the greatest; without passages of mass 0."""
    index = GraphIndexes(store, GRAPH).current()
    vector = EMBEDDER.embed([query])[0]
    hits = await NearestFacts(store, GRAPH).find_hits(query, vector)
    where, weights = await seeding.find_seeds(GraphQuestion(query, vector, hits), index)
    start = np.zeros(index.walk.graph.nodes)
    np.add.at(start, where, weights)
    masses = power_iteration(index.walk.graph, start)[len(index.entities) :]
    names = vertices(store, index)[len(index.entities) :]
    return {name: mass / masses.max() for name, mass in zip(names, masses.tolist(), strict=True) if mass}


@pytest.mark.parametrize("query", [QUERY, "Did Ida Poe meet Ada Marsh?", "What of the map?"])
@pytest.mark.parametrize("seeds", ["hippo", "cogito"])
async def test_scores_are_masses_of_the_exact_walk(store, query, seeds):
    seeding = {"hippo": hippo(store), "cogito": CogitoSeeds()}[seeds]
    found = await diffusion(store, seeding=seeding).retrieve(query, 9)
    expected = await exact(store, seeding, query)
    scores = dict(zip(homes(store, found), [piece.score for piece in found], strict=True))
    assert scores == pytest.approx({name: expected[name] for name in scores}, abs=1e-4)
    assert min(scores.values()) > max([0, *(mass for name, mass in expected.items() if name not in scores)]) - 1e-4
    assert found[0].score == 1


async def test_one_step_is_what_seeds_hand_to_their_passages_and_what_passages_keep(store):
    index = GraphIndexes(store, GRAPH).current()
    names = vertices(store, index)
    seeds = {"ada marsh": 0.5, "boat": 0.25, "d3": 1.0, "d9": 2.0, "nothing of note": 2.0}
    where = np.array([names.index(name) for name in seeds])
    weights = np.array(list(seeds.values()))
    reached = walk_one_step(index, where, weights, index.is_passage)
    graph = index.walk.graph
    slow = {}
    for a, b, weight in zip(*(array.tolist() for array in graph.edges()), strict=True):
        for from_, to in ((a, b), (b, a)):
            if index.is_passage[to]:
                share = 0.5 * seeds.get(names[from_], 0) * weight / graph.degrees()[from_]
                slow[names[to]] = slow.get(names[to], 0) + share
    for name in ("d3", "d9"):
        slow[name] = slow.get(name, 0) + 0.5 * seeds[name]
    assert {names[n]: v for n, v in zip(reached.nodes, reached.values, strict=True)} == pytest.approx(
        {name: mass for name, mass in slow.items() if mass}
    )


async def test_passages_that_no_walk_reaches_follow_by_cosine(store):
    found = await diffusion(store, seeding=CogitoSeeds()).retrieve(QUERY, 20)
    ranking = homes(store, found)
    near = cosines(store)
    assert sorted(ranking) == sorted(f"d{n}" for n in range(len(TEXTS)))
    reached = [piece.score for piece in found if piece.score > 0]
    rest = ranking[len(reached) :]
    assert set(rest) >= ALONE
    assert rest == sorted(rest, key=lambda name: -near[name])
    assert [piece.score for piece in found[len(reached) :]] == pytest.approx(
        [near[name] - 1 for name in rest], abs=1e-5
    )
    for limit in range(len(found)):
        assert await diffusion(store, seeding=CogitoSeeds()).retrieve(QUERY, limit) == found[:limit]


class Nowhere:
    """Seeds that weigh nothing."""

    async def find_seeds(self, question, index):
        return np.arange(2), np.zeros(2)


class UnknownFact:
    """Hits of a fact that the index does not have."""

    async def find_hits(self, query, vector, within=None):
        return Hits(np.array([10**6]), ("x",), np.ones(1), np.ones(1))


async def test_without_seeds_passages_rank_by_cosine(tmp_path, store):
    dense = await Dense(store, EMBEDDER).retrieve(QUERY, 7)
    none = ScriptedModel({"filter_facts": lambda _: {"keep": []}})
    without = {
        "zero seeds": diffusion(store, seeding=Nowhere()),
        "no fact kept": diffusion(store, linking=RecognisedFacts(NearestFacts(store, GRAPH), none)),
        "an unknown fact": diffusion(store, seeding=CogitoSeeds(), linking=UnknownFact()),
    }
    for name, retriever in without.items():
        assert await retriever.retrieve(QUERY, 7) == dense, name
        assert await CogniRank(store, retriever).retrieve(QUERY, 7) == dense, name
    (tmp_path / "b").mkdir()
    bare = await build_store(tmp_path / "b", "boat", "a boat for Tom Hale", "light")
    assert await diffusion(bare).retrieve(QUERY, 5) == await Dense(bare, EMBEDDER).retrieve(QUERY, 5)
    bare.close()


async def test_an_empty_tome_has_nothing(tmp_path):
    empty = await build_store(tmp_path)
    with empty.write() as change:
        change.put_note(SETTINGS, "dimensions", str(EMBEDDER.dimensions))
    for retriever in (diffusion(empty), ours(empty), CogniRank(empty, diffusion(empty))):
        assert await retriever.retrieve(QUERY, 5) == []
    empty.close()


async def test_cognirank_by_its_formula(store):
    for candidates, limit in ((4, 3), (200, 9), (1, 2)):
        retriever = CogniRank(store, diffusion(store), blend=0.7, candidates=candidates)
        masses = await exact(store, hippo(store))
        names = sorted(masses, key=lambda name: -masses[name])[: max(candidates, limit)]
        near = cosines(store)
        scores = 0.7 * scale_scores([masses[name] for name in names]) + 0.3 * scale_scores(
            [near[name] for name in names]
        )
        expected = dict(sorted(zip(names, scores.tolist(), strict=True), key=lambda pair: -pair[1])[:limit])
        found = await retriever.retrieve(QUERY, limit)
        assert homes(store, found) == list(expected)
        assert [piece.score for piece in found] == pytest.approx(list(expected.values()), abs=1e-3)


def piece(node, score=0.0):
    return Evidence(node=node, layer="passages", text=node, score=score, sources=(node,))


class FixedLists:
    """A retriever with a fixed list of nodes for each query."""

    def __init__(self, **lists):
        self.lists = lists
        self.asked = []

    async def retrieve(self, query, limit, *, within=None):
        self.asked.append(query)
        return [piece(node, 1 - rank / 10 - (query != "p") / 100) for rank, node in enumerate(self.lists[query])][
            :limit
        ]


def parts(*names):
    return ScriptedModel({"decompose": lambda given: {"subqueries": list(names)}})


async def test_each_part_gives_two_passages_and_the_best_of_the_rest_follows():
    found = await DecomposedRecall(FixedLists(p="abcdef", r="axyz"), parts("p", "r")).retrieve("whole", 5)
    # p gives a and b, r gives x and y (a is taken), and c scores highest of the rest.
    assert [piece.node for piece in found] == ["a", "b", "x", "c", "y"]
    assert [piece.score for piece in found] == pytest.approx([1, 0.9, 0.89, 0.8, 0.79])


async def test_a_short_part_leaves_its_places_to_the_others():
    found = await DecomposedRecall(FixedLists(p="a", r="axyz"), parts("p", "r")).retrieve("whole", 5)
    assert [piece.node for piece in found] == ["a", "x", "y", "z"]
    lists = [[("a", 1.0)], [("a", 0.99), ("x", 0.89), ("y", 0.79), ("z", 0.69)]]
    assert [(piece.node, pytest.approx(piece.score)) for piece in found] == merge_rankings(lists, 5)


@pytest.mark.parametrize(
    "model",
    [
        parts(),
        parts("only one"),
        parts("twice", "twice"),
        parts("", "one"),
        ScriptedModel({"decompose": [BadReply("no JSON")]}),
        ScriptedModel({"decompose": [Refused("no")]}),
    ],
)
async def test_a_question_that_is_not_taken_apart_is_asked_whole(model):
    inner = FixedLists(whole="abc")
    found = await DecomposedRecall(inner, model).retrieve("whole", 2)
    assert inner.asked == ["whole"]
    assert [piece.node for piece in found] == ["a", "b"]


async def test_no_more_parts_than_asked_for():
    inner = FixedLists(p="a", r="b", s="c")
    await DecomposedRecall(inner, parts("p", "r", "s")).retrieve("whole", 5)
    assert inner.asked == ["p", "r"]
    inner.asked.clear()
    await DecomposedRecall(inner, parts("p", "r", "s"), parts=3).retrieve("whole", 5)
    assert inner.asked == ["p", "r", "s"]


async def test_an_unavailable_model_is_an_error():
    model = ScriptedModel({"decompose": [ModelUnavailable("down")]})
    with pytest.raises(ModelUnavailable):
        await DecomposedRecall(FixedLists(whole="a"), model).retrieve("whole", 2)


@pytest.mark.parametrize("kind", ["hippo", "cogito", "ours", "one step", "cognirank", "decomposed"])
async def test_contract(store, kind):
    retriever = {
        "hippo": lambda: diffusion(store),
        "cogito": lambda: diffusion(store, seeding=CogitoSeeds()),
        "ours": lambda: ours(store),
        "one step": lambda: diffusion(store, spreading=walk_one_step),
        "cognirank": lambda: CogniRank(store, diffusion(store)),
        "decomposed": lambda: DecomposedRecall(CogniRank(store, diffusion(store)), parts("Who sold?", "What boat?")),
    }[kind]()
    await check_retriever(retriever, QUERY, store)
    everything = await retriever.retrieve(QUERY, 50)
    assert len(everything) == len(TEXTS)
    order = [(-piece.score, piece.node) for piece in everything]
    assert order == sorted(order)


NEW = "Zoe Quill > forged > the Vellum Codex\nZoe Quill > fled to > Ghent"


@pytest.mark.parametrize("make", [diffusion, ours, lambda store: CogniRank(store, diffusion(store))])
async def test_a_retriever_in_use_finds_new_documents_and_forgets_removed_ones(store, make):
    retriever = make(store)
    question = "Who forged the Vellum Codex?"
    before = await retriever.retrieve(question, 20)
    await add_and_build(store, "new", NEW)
    assert homes(store, await retriever.retrieve(question, 3))[0] == "new"
    assert await retriever.retrieve(question, 20) == await make(store).retrieve(question, 20)
    await remove_and_build(store, "new")
    assert await retriever.retrieve(question, 20) == before


async def test_retrievers_in_threads_while_documents_come_and_go(store):
    retriever = ours(store)
    expected = await retriever.retrieve(QUERY, 4)

    def ask():
        return [asyncio.run(retriever.retrieve(QUERY, 4)) for _ in range(6)]

    with ThreadPoolExecutor(2) as pool:
        asking = [pool.submit(ask) for _ in range(2)]
        for number in range(3):
            await add_and_build(store, "guest", f"Guest {number} > ate > bread {number}")
            await remove_and_build(store, "guest")
        found = [evidence for future in asking for evidence in await asyncio.wrap_future(future)]
    assert {len(evidence) for evidence in found} == {4}
    assert [piece.node for piece in found[-1]] == [piece.node for piece in expected]
    assert await retriever.retrieve(QUERY, 4) == expected
