"""Diffusion recall against the exact walk, its fallbacks, CogniRank, decomposition, and a memory that changes."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from tests.recall.exact_walk import list_edges
from tests.recall.graph_tomes import EMBEDDER, GRAPH, NAMES, add_and_build, build_store, remove_and_build, vertices
from tests.recall.shelves import Shelves, join_nodes, make_pieces

from tomewise.errors import BadReply
from tomewise.recall.diffusion import (
    CogniRank,
    DecomposedRecall,
    Diffusion,
    walk_one_step,
)
from tomewise.recall.flat import Dense
from tomewise.recall.graph_index import GraphIndexes
from tomewise.recall.seeding import (
    Hits,
    NearestFacts,
    seed_cogito,
    seed_hippo,
    seed_mentions,
    seed_passages,
)
from tomewise.testing import ScriptedModel, check_retriever

QUERY = "Who sold Tom Hale the boat?"
PEOPLE = ["Ada Marsh", "Tom Hale", "Ida Poe", "Sam Reed", "Uma Voss"]
THINGS = ["boat", "light", "letter", "map"]
TEXTS = (
    *(f"{PEOPLE[n % 5]} > sold > {THINGS[n % 4]}\n{PEOPLE[n % 5]} > met > {PEOPLE[n % 3]}" for n in range(9)),
    "nothing of note",
    "a lone boat",
)
ALONE = {"d9", "d10"}  # passages without facts


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Tests read it alone; those that change a memory build their own."""
    made = asyncio.run(build_store(tmp_path_factory.mktemp("diffusion"), *TEXTS))
    yield made
    made.close()


def seed_as_hippo(store):
    return [seed_hippo, partial(seed_passages, store)]


def make_diffusion(store, *, kind=Diffusion, seedings=None, linking=None, links="facts", **settings):
    facts = linking or NearestFacts(store, GRAPH)
    indexes = GraphIndexes(store, GRAPH, links=links)
    return kind(store, EMBEDDER, indexes, facts, seedings or seed_as_hippo(store), **settings)


def make_ours(store):
    seedings = [seed_hippo, partial(seed_mentions, store, NAMES), partial(seed_passages, store)]
    return make_diffusion(store, seedings=seedings, links="extracted")


def rank_cognitively(store, **settings):
    return make_diffusion(store, kind=CogniRank, **settings)


def list_homes(store, found):
    passages = {passage.id: passage.document for passage in store.passages().values()}
    return [passages[piece.id] for piece in found]


def list_cosines(store):
    passages = store.passages().values()
    rows = EMBEDDER.embed([passage.content for passage in passages])
    cosines = (rows @ EMBEDDER.embed([QUERY])[0]).tolist()
    return dict(zip([passage.document for passage in passages], cosines, strict=True))


async def test_one_step_is_what_seeds_hand_to_their_passages_and_what_passages_keep(store):
    index = GraphIndexes(store, GRAPH).current()
    names, graph = vertices(store, index), index.walk.graph
    seeds = {"ada marsh": 0.5, "boat": 0.25, "d3": 1.0, "d9": 2.0}
    where = np.array([names.index(name) for name in seeds])
    reached = walk_one_step(index, where, np.array(list(seeds.values())), among=index.is_passage)
    slow = {name: 0.5 * seeds[name] for name in ("d3", "d9")}
    for a, b, weight in list_edges(graph):
        for from_, to in ((a, b), (b, a)):
            if index.is_passage[to]:
                share = 0.5 * seeds.get(names[from_], 0) * weight / graph.degrees()[from_]
                slow[names[to]] = slow.get(names[to], 0) + share
    found = {names[node]: value for node, value in zip(reached.nodes, reached.values, strict=True)}
    assert found == pytest.approx({name: mass for name, mass in slow.items() if mass})


async def test_passages_that_no_walk_reaches_follow_by_cosine(store):
    diffusion, near = make_diffusion(store, seedings=[seed_cogito]), list_cosines(store)
    found = await diffusion.retrieve(QUERY, 20)
    ranking = list_homes(store, found)
    assert sorted(ranking) == sorted(f"d{n}" for n in range(len(TEXTS)))
    reached = sum(piece.score > 0 for piece in found)
    rest = ranking[reached:]
    assert set(rest) >= ALONE
    assert rest == sorted(rest, key=lambda name: -near[name])
    assert [piece.score for piece in found[reached:]] == pytest.approx([near[name] - 1 for name in rest], abs=1e-5)
    for limit in range(len(found)):
        assert await diffusion.retrieve(QUERY, limit) == found[:limit]


class UnknownFact:
    """Hits of a fact that the index does not have."""

    async def find_hits(self, query, vector, within=None):
        return Hits(np.array([10**6]), ("x",), np.ones(1), np.ones(1))


async def test_without_seeds_passages_rank_by_cosine(build_graph, store):
    dense = await Dense(store, EMBEDDER).retrieve(QUERY, 7)
    none = ScriptedModel({"filter_facts": lambda _: {"keep": []}})
    facts = NearestFacts(store, GRAPH, model=none)
    for kind in (Diffusion, CogniRank):
        assert await make_diffusion(store, kind=kind, seedings=[seed_cogito], linking=facts).retrieve(QUERY, 7) == dense
    assert await make_diffusion(store, seedings=[seed_cogito], linking=UnknownFact()).retrieve(QUERY, 7) == dense
    bare = await build_graph("boat", "a boat for Tom Hale", "light")
    assert await make_diffusion(bare).retrieve(QUERY, 5) == await Dense(bare, EMBEDDER).retrieve(QUERY, 5)


@pytest.mark.parametrize(
    "make",
    [
        make_diffusion,
        lambda store: make_diffusion(store, seedings=[seed_cogito]),
        make_ours,
        lambda store: make_diffusion(store, one_step=True),
        rank_cognitively,
        lambda store: DecomposedRecall(rank_cognitively(store), split_into("Who sold?", "What boat?")),
    ],
    ids=["hippo", "cogito", "ours", "one step", "cognirank", "decomposed"],
)
async def test_the_contract_of_retrievers_holds(store, make):
    retriever = make(store)
    await check_retriever(retriever, QUERY, store)
    everything = await retriever.retrieve(QUERY, 50)
    assert len(everything) == len(TEXTS)
    order = [(-piece.score, piece.id) for piece in everything]
    assert order == sorted(order)


# ---------------------------------------------------------------- a memory that changes


@pytest.mark.parametrize("make", [make_diffusion, make_ours, rank_cognitively])
async def test_a_retriever_in_use_finds_new_documents_and_forgets_removed_ones(build_graph, make):
    store = await build_graph(*TEXTS)
    retriever, question = make(store), "Who forged the Vellum Codex?"
    before = await retriever.retrieve(question, 20)
    await add_and_build(store, "new", "Zoe Quill > forged > the Vellum Codex\nZoe Quill > fled to > Ghent")
    assert list_homes(store, await retriever.retrieve(question, 3))[0] == "new"
    assert await retriever.retrieve(question, 20) == await make(store).retrieve(question, 20)
    await remove_and_build(store, "new")
    assert await retriever.retrieve(question, 20) == before


async def test_retrievers_in_threads_while_documents_come_and_go(build_graph):
    store = await build_graph(*TEXTS)
    retriever = make_ours(store)
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
    assert [piece.id for piece in found[-1]] == [piece.id for piece in expected]
    assert await retriever.retrieve(QUERY, 4) == expected


# ---------------------------------------------------------------- questions taken apart


def split_into(*names):
    return ScriptedModel({"decompose": lambda _: {"subqueries": list(names)}})


@pytest.mark.parametrize(
    ("replies", "settings", "asked"),
    [
        (["p", "r", "s"], {}, ["p", "r"]),
        (["p", "r", "s"], {"parts": 3}, ["p", "r", "s"]),
        ([], {}, ["whole"]),
        (["twice", "twice"], {}, ["whole"]),
        (["", "one"], {}, ["whole"]),
        (BadReply("no JSON"), {}, ["whole"]),
    ],
    ids=str,
)
async def test_a_question_is_asked_in_as_many_parts_as_allowed_or_whole(replies, settings, asked):
    model = ScriptedModel({"decompose": [replies]}) if isinstance(replies, Exception) else split_into(*replies)
    inner = Shelves({}, make_pieces("abc"))
    assert join_nodes(await DecomposedRecall(inner, model, **settings).retrieve("whole", 2)) == "ab"
    assert inner.asked == asked
