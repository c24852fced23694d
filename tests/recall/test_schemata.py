"""Recall over the schemata: along links with a model, from the top down, and over all levels at once."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from tests.recall.shelves import SCENES

from tomewise.errors import BadReply
from tomewise.loops.desk import Desk
from tomewise.memory.build_records import record_build
from tomewise.memory.building import build
from tomewise.memory.schemata.schemata_layer import SchemataLayer
from tomewise.memory.schemata.schemata_names import SchemataNames, SchemataRules
from tomewise.recall.schemata_nodes import GlobalSchemata, HierarchicalSchemata, PruneAndGrow, SchemataNodes
from tomewise.run import NOT_SELECTED, meter
from tomewise.store.lookups import find_keys, read_edges
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel, check_retriever, document_of, put_document
from tomewise.types import Node, Scope

EMBEDDER = HashEmbedder(64)
NAMES = SchemataNames()
TEXTS = (*SCENES, "Nobody knows this isolated thing.")
SCHEMATA = (
    ("light", "Ada the keeper kept the lamp.", (0, 1), 1),
    ("harbour", "Tom sold a boat before the harbour froze.", (2, 3), 1),
    ("court", "A judge gave a verdict on the boat Tom sold.", (2, 4), 1),  # passage 2 is in two clusters
    ("shore", "Ada and Tom lived by the sea and its harbour.", ("light", "harbour"), 2),
)
LINKS = {0: ((0, 1), (1, 2), (2, 3), (2, 4)), 1: (("harbour", "court"), ("court", 5))}  # 5 goes up alone


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = SqlStore.open(tmp_path_factory.mktemp("schemata") / "a.tome")
    for number, text in enumerate(TEXTS):
        put_document(store, EMBEDDER, document_of(f"d{number}", text))
    ids = {int(passage.document[1:]): passage.id for passage in store.passages().values()}
    ids |= {name: name for name, *_ in SCHEMATA}
    for name, text, below, level in SCHEMATA:
        node = Node(id=name, layer="schemata", text=text, sources=tuple(ids[each] for each in below), level=level)
        with store.write() as change:
            keys = change.put_nodes([node])
            change.put_vectors("schemata", list(keys.values()), EMBEDDER.embed([text]))
    keys = find_keys(store, ids.values())
    with store.write() as change:
        for level, pairs in LINKS.items():
            ends = np.sort(np.array([[keys[ids[a]], keys[ids[b]]] for a, b in pairs]), axis=1)
            change.put_edges(NAMES.links(level), ends[:, 0], ends[:, 1], np.ones(len(ends)))
        record_build(change, "schemata", {"levels": 2})
    yield store
    store.close()


def make_nodes(store: SqlStore) -> SchemataNodes:
    return SchemataNodes(store, EMBEDDER, NAMES)


def grow(store: SqlStore, model, **options) -> PruneAndGrow:
    return PruneAndGrow(make_nodes(store), model, Desk(store, model, lambda texts: []).show, **options)


def texts_of(shown) -> set[str]:
    return {each.text for each in shown}


def keep_those_with(*words: str, **limits: int) -> ScriptedModel:
    def select(given):
        return {"keep": [n for n, each in enumerate(given.nodes, 1) if any(word in each.text for word in words)]}

    return ScriptedModel({"select_nodes": select}, **limits)


@pytest.mark.parametrize(
    "make",
    [
        lambda store: GlobalSchemata(make_nodes(store)),
        lambda store: HierarchicalSchemata(make_nodes(store)),
        lambda store: grow(store, keep_those_with("a"), seeds=3),
        lambda store: grow(store, keep_those_with("nothing")),
    ],
    ids=["global", "hierarchical", "grown", "nothing kept"],
)
async def test_the_contract_of_retrievers_holds(store, make):
    await check_retriever(make(store), "Who sold the boat in the harbour?")


async def test_global_retrieval_ranks_all_levels_as_one(store):
    query = "the boat in the harbour"
    found = await GlobalSchemata(make_nodes(store)).retrieve(query, 6)
    texts = [*TEXTS, *(text for _, text, _, _ in SCHEMATA)]
    cosines = EMBEDDER.embed(texts) @ EMBEDDER.embed([query])[0]
    assert [piece.text for piece in found] == [texts[place] for place in np.argsort(-cosines)[:6]]


async def test_traversal_goes_from_the_top_to_children_of_what_it_kept(store):
    found = await HierarchicalSchemata(make_nodes(store), top_k=1).retrieve("Ada and the sea", 20)
    assert {piece.id for piece in found if piece.layer == "schemata"} == {"shore", "light"}
    assert [piece.text for piece in found if piece.layer == "passages"] == [TEXTS[0]]
    broad = await HierarchicalSchemata(make_nodes(store), top_k=20).retrieve("Ada and the sea", 20)
    assert len(broad) == len(TEXTS) + len(SCHEMATA), "an isolated passage is a top itself"


def explore_slowly(query, keeps, *, seeds, rounds, fill=0):
    """Section 4.2 over texts: what is active in the end, in the order in which it was selected; and all pools.

    Ours: a pool is filled to `fill` texts with the nearest that no pool had.
    """
    names = [*range(len(TEXTS)), *(name for name, *_ in SCHEMATA)]
    texts = dict(zip(names, [*TEXTS, *(text for _, text, _, _ in SCHEMATA)], strict=True))
    cosines = dict(zip(names, EMBEDDER.embed([*texts.values()]) @ EMBEDDER.embed([query])[0], strict=True))
    near = {name: set() for name in names}
    for a, b in [pair for pairs in LINKS.values() for pair in pairs]:
        near[a].add(b)
        near[b].add(a)
    for name, _, below, _ in SCHEMATA:
        near[name].update(below)
    ranked = sorted(names, key=lambda name: -cosines[name])
    pool, active, pools = ranked[:seeds], [], []
    for _ in range(rounds):
        known = {text for shown in pools for text in shown}
        fresh = [name for name in ranked if name not in pool and texts[name] not in known]
        pool = pool + fresh[: max(0, fill - len(pool))]
        pools.append([texts[name] for name in pool])
        kept = [name for name in pool if keeps(texts[name])]
        active += kept
        around = set().union(*(near[name] for name in active)) - set(active)
        pool = sorted(around, key=lambda name: -cosines[name])
        if not kept or not (pool or (fill and len({text for shown in pools for text in shown}) < len(names))):
            break
    return [texts[name] for name in active], pools


@pytest.mark.parametrize("letters", ["a", "ou", "t", "k", "br", "zj"])
@pytest.mark.parametrize("rounds", [1, 3, 9])
@pytest.mark.parametrize("fill", [0, 4, 7])
async def test_what_is_active_and_each_pool_are_those_of_a_slow_reading(store, letters, rounds, fill):
    query = "Who sold the boat in the harbour?"

    def keeps(text):
        return any(letter in text[::3] for letter in letters)

    model = ScriptedModel(
        {"select_nodes": lambda given: {"keep": [n for n, each in enumerate(given.nodes, 1) if keeps(each.text)]}}
    )
    recall = grow(store, model, seeds=3, rounds=rounds, fill=fill)
    found = await recall.retrieve(query, 20)
    active, pools = explore_slowly(query, keeps, seeds=3, rounds=rounds, fill=fill)
    assert [[each.text for each in call.given.nodes] for call in model.calls] == pools
    assert [piece.text for piece in found] == (active or pools[0][:3])
    assert len(pools) <= recall.calls.most == rounds


@pytest.mark.parametrize(("fill", "finds", "pools"), [(0, False, 3), (6, True, 3)])
async def test_filled_pools_offer_what_no_link_leads_to(store, fill, finds, pools):
    model = keep_those_with("boat", "isolated")
    found = await grow(store, model, seeds=2, rounds=9, fill=fill).retrieve("Who sold the boat?", 20)
    assert (TEXTS[-1] in texts_of(found)) == finds
    assert len(model.calls) == pools


async def test_a_full_pool_of_which_nothing_helps_ends_the_search(store):
    model = keep_those_with("nothing")
    found = await grow(store, model, seeds=2, rounds=9, fill=5).retrieve("Who sold the boat?", 20)
    assert [len(call.given.nodes) for call in model.calls] == [5]
    assert len(found) == 2, "the seeds"


async def test_without_a_choice_the_seeds_are_the_evidence(store):
    seeds = [piece.id for piece in await GlobalSchemata(make_nodes(store)).retrieve("the boat", 3)]
    nothing = ScriptedModel({"select_nodes": lambda _: {"keep": [0, -1, 99]}})
    found = await grow(store, nothing, seeds=3).retrieve("the boat", 20)
    assert [piece.id for piece in found] == seeds
    assert len(nothing.calls) == 1
    found = await grow(store, ScriptedModel({}), seeds=3, rounds=0).retrieve("the boat", 20)
    assert [piece.id for piece in found] == seeds


async def test_an_unreadable_reply_ends_the_search(store):
    with meter() as used:
        broken = ScriptedModel({"select_nodes": [BadReply("no")]})
        assert len(await grow(store, broken, seeds=2).retrieve("the boat", 20)) == 2
    assert used.fallbacks[NOT_SELECTED] == len(broken.calls) == 1


async def test_a_pool_holds_what_the_window_holds_and_the_nearest_first(open_store):
    store = open_store()
    for number in range(12):
        put_document(store, EMBEDDER, document_of(f"d{number}", f"word{number} " * 600))
    keys = np.array(store.node_keys("passages"))
    with store.write() as change:
        change.put_edges(NAMES.links(0), np.full(len(keys) - 1, keys[0]), keys[1:], np.ones(len(keys) - 1))
        record_build(change, "schemata", {"levels": 1})
    model = keep_those_with("word", window=6_000)
    await grow(store, model, seeds=1, rounds=2).retrieve("word0 word7 word7", 5)
    pool = [each.text for each in model.calls[1].given.nodes]
    assert 1 <= len(pool) < len(keys) - 1
    assert sum(map(len, pool)) <= 4 * 6_000
    scores = EMBEDDER.embed(pool) @ EMBEDDER.embed(["word0 word7 word7"])[0]
    assert list(scores) == sorted(scores, reverse=True)


async def test_a_schema_is_within_a_scope_if_all_passages_below_it_are(store):
    nodes = make_nodes(store)
    scope = Scope(documents=frozenset({"d0", "d1", "d2", "d3"}))
    everything = await GlobalSchemata(nodes).retrieve("boat", 20, within=scope)
    assert {piece.id for piece in everything if piece.layer == "schemata"} == {"light", "harbour", "shore"}
    assert {piece.text for piece in everything if piece.layer == "passages"} == {*TEXTS[:4]}
    narrow = Scope(documents=frozenset({"d0", "d1", "d2"}))
    found = await HierarchicalSchemata(nodes, top_k=9).retrieve("boat", 20, within=narrow)
    assert {piece.id for piece in found if piece.layer == "schemata"} == {"light"}
    grown = await grow(store, keep_those_with(""), seeds=1).retrieve("Ada kept the light", 20, within=narrow)
    assert {piece.text for piece in grown if piece.layer == "passages"} == {*TEXTS[:3]}


@pytest.mark.parametrize(("entities", "links"), [("", 0), ("entities:x", 1)])
async def test_passages_that_share_a_rare_entity_are_linked(open_store, monkeypatch, entities, links):
    """The common entity is of 7 passages, more than 3."""
    monkeypatch.setitem(sys.modules, "umap", None)  # what is clustered by does not matter here
    store = open_store()
    for number, text in enumerate(TEXTS):
        put_document(store, EMBEDDER, document_of(f"d{number}", text))
    passages = [passage.id for passage in store.passages().values()]
    with store.write() as change:
        rare = Node(id="rare", layer="entities:x", text="rare", sources=(passages[0], passages[6]))
        common = Node(id="common", layer="entities:x", text="common", sources=tuple(passages))
        change.put_nodes([rare, common], lifetime="any")
        record_build(change, "entities:x", {})
    rules = SchemataRules(clusters="as published", theta=0.999, k=3, levels=0, entities=entities)
    layer = SchemataLayer(store, ScriptedModel({}), EMBEDDER, rules)
    await build([layer], store, lambda _: None)
    assert len(read_edges(store, layer.names.links(0)).rows) == links
