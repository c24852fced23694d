"""The graph as arrays, compared with a slow reading of the same rows, while documents are added and removed."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.recall.graph_tomes import GRAPH, NAMES, add_and_build, build_store, rebuild, remove_and_build, vertices

from tomewise.recall import graph_index
from tomewise.recall.csr import CsrGraph
from tomewise.recall.graph_index import GraphIndex, GraphIndexes
from tomewise.recall.walk import Walk
from tomewise.store.lookups import read_edges, read_sources
from tomewise.store.sql.sql_store import SqlStore

TWINS = ["the old stone tower house", "the old stone tower houses", "the old stone towers house"]
PEOPLE = ["Ada Marsh", "Tom Hale", "Skerry", *TWINS]


def weigh_slowly(store: SqlStore, links: str, between: float) -> dict[tuple[str, str], float]:
    """The weights of the graph by names, computed from the rows one by one."""
    entities = {key: node.text for key, node in store.nodes(NAMES.entities).items()}
    homes = {key: passage.document for key, passage in store.passages().items()}
    fact_sources = read_sources(store, store.nodes(NAMES.facts), NAMES.facts)
    entity_sources = read_sources(store, entities, NAMES.entities)
    ends: dict[int, list[int]] = {}
    for fact, entity, _ in read_edges(store, NAMES.ends).rows.tolist():
        ends.setdefault(int(fact), []).append(int(entity))
    weights: Counter[tuple[str, str]] = Counter()
    entity_links = {(entity, passage) for entity, passages in entity_sources.items() for passage in passages}
    if links == "facts":
        entity_links = {
            (end, passage) for fact, passages in fact_sources.items() for passage in passages for end in ends[fact]
        }
    for entity, passage in entity_links:
        weights[entities[entity], homes[passage]] += 1
    for fact, pair in ends.items():
        if len(pair) == 2:
            weights[tuple(sorted(entities[end] for end in pair))] += between * len(fact_sources[fact])
    for a, b, cosine in read_edges(store, NAMES.synonyms).rows.tolist():
        weights[tuple(sorted((entities[int(a)], entities[int(b)])))] += between * cosine
    return dict(weights)


def read_weights(store: SqlStore, index: GraphIndex) -> dict[tuple[str, str], float]:
    names = vertices(store, index)
    entities = len(index.entities)
    edges = zip(*(array.tolist() for array in index.walk.graph.edges()), strict=True)
    return {
        ((names[a], names[b]) if b >= entities else tuple(sorted((names[a], names[b])))): weight
        for a, b, weight in edges
    }


def spreads(store: SqlStore, index: GraphIndex) -> dict[str, int]:
    return dict(zip(vertices(store, index), index.spread.tolist(), strict=False))


def lines() -> st.SearchStrategy[str]:
    name = st.sampled_from(PEOPLE)
    return st.one_of(name, st.tuples(name, st.sampled_from(["met", "sold"]), name).map(" > ".join))


@settings(max_examples=12, deadline=None)
@given(
    texts=st.lists(st.lists(lines(), max_size=5), min_size=1, max_size=5),
    gone=st.sets(st.integers(0, 4)),
    links=st.sampled_from(["facts", "extracted"]),
    between=st.sampled_from([1.0, 2.0]),
)
def test_the_arrays_agree_with_the_rows(texts, gone, links, between):
    with TemporaryDirectory() as folder:
        asyncio.run(compare_arrays(Path(folder), texts, gone, links, between))


async def compare_arrays(folder, texts, gone, links, between):
    contents = ["\n".join([*text_lines, f"text {at}"]) for at, text_lines in enumerate(texts)]
    store = await build_store(folder, *contents)
    indexes = GraphIndexes(store, GRAPH, links=links, between=between)
    assert read_weights(store, indexes.current()) == pytest.approx(weigh_slowly(store, links, between))
    for number in gone & set(range(len(texts))):
        await remove_and_build(store, f"d{number}")
    index = indexes.current()
    assert read_weights(store, index) == pytest.approx(weigh_slowly(store, links, between))
    ties = Counter(name for (name, home), _ in read_weights(store, index).items() if home.startswith("d"))
    assert spreads(store, index) == {name: ties[name] for name in vertices(store, index)[: len(index.entities)]}
    assert index.is_passage.tolist() == [False] * len(index.entities) + [True] * len(index.passages)
    assert index.facts.tolist() == sorted(store.nodes(NAMES.facts))
    store.close()


async def test_by_hand(tmp_path):
    store = await build_store(tmp_path, "Ada > met > Tom\nSkerry", "Ada > met > Tom\nTom > is > Tom", "nothing")
    index = GraphIndexes(store, GRAPH).current()
    assert read_weights(store, index) == {
        ("ada", "tom"): 2,
        ("ada", "d0"): 1,
        ("tom", "d0"): 1,
        ("ada", "d1"): 1,
        ("tom", "d1"): 1,
    }
    assert spreads(store, index) == {"ada": 2, "tom": 2, "skerry": 0, "nothing": 0}
    more = GraphIndexes(store, GRAPH, links="extracted", between=2.0).current()
    assert read_weights(store, more) == {
        **read_weights(store, index),
        ("ada", "tom"): 4,
        ("skerry", "d0"): 1,
        ("nothing", "d2"): 1,
    }
    assert spreads(store, more) == {"ada": 2, "tom": 2, "skerry": 1, "nothing": 1}
    names = vertices(store, index)
    facts = store.nodes_at(index.facts.tolist())
    ends = zip(index.facts.tolist(), index.heads.tolist(), index.tails.tolist(), strict=True)
    assert {facts[key].text: (names[head], names[tail]) for key, head, tail in ends} == {
        "ada met tom": ("ada", "tom"),
        "tom is tom": ("tom", "tom"),
    }


async def test_it_is_built_again_only_when_the_graph_has_changed(tmp_path):
    store = await build_store(tmp_path, "Ada > met > Tom")
    indexes = GraphIndexes(store, GRAPH)
    first = indexes.current()
    assert indexes.current() is first
    store.save_trace(asked="now", question="who?", record={})
    assert indexes.current() is first
    await add_and_build(store, "later", "Ida > met > Ada")
    grown = read_weights(store, indexes.current())
    assert ("ada", "ida") in grown
    await remove_and_build(store, "later")
    assert read_weights(store, indexes.current()) == read_weights(store, first)
    second = SqlStore.open(store.path)  # as another process would
    await add_and_build(second, "later", "Ida > met > Ada")
    second.close()
    assert read_weights(store, indexes.current()) == grown


async def test_a_tome_without_a_graph_has_an_empty_one(tmp_path):
    store = SqlStore.open(tmp_path / "a.tome")
    index = GraphIndexes(store, GRAPH).current()
    assert (len(index.entities), len(index.passages), len(index.facts), index.walk.graph.nodes) == (0, 0, 0, 0)
    await rebuild(store)
    assert len(GraphIndexes(store, GRAPH, links="extracted").current().passages) == 0


async def test_readers_never_see_half_a_change(tmp_path):
    """An index of mixed versions would link entities to the wrong passages, or raise an IndexError."""
    store = await build_store(tmp_path, *(f"Name {number} > met > Name {number + 1}" for number in range(8)))
    indexes = GraphIndexes(store, GRAPH, links="extracted")
    done = threading.Event()

    def read() -> list[list[int]]:
        odd = []
        while not done.is_set():
            index = indexes.current()
            # Each passage here states one fact of two entities, so it has two links. A document is added before the
            # graph layer reads it; until then its passage has no links.
            links = np.diff(index.walk.graph.indptr)[len(index.entities) :].tolist()
            if links.count(2) != len(index.facts) or len(index.facts) < len(links) - 1:
                odd.append(links)
        return odd

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for number in range(8):
            await add_and_build(store, f"new{number}", f"Fresh {number} > met > Fresher {number}")
            await remove_and_build(store, f"d{number}")
        done.set()
        assert [reader.result() for reader in readers] == [[], []]


def make_index(store: SqlStore) -> GraphIndex:
    return GraphIndexes(store, GRAPH).current()


def assert_equal(a: GraphIndex, b: GraphIndex) -> None:
    for name in ("entities", "passages", "facts", "heads", "tails", "spread", "is_passage"):
        assert getattr(a, name).tolist() == getattr(b, name).tolist(), name
    for name in ("indptr", "indices", "weights"):
        assert getattr(a.walk.graph, name).tolist() == getattr(b.walk.graph, name).tolist(), name


@pytest.fixture
def large_store(tmp_path, monkeypatch):
    monkeypatch.setattr(graph_index, "_LEAST_KEPT", 1)
    store = asyncio.run(build_store(tmp_path, "Ada Marsh > met > Tom Hale"))
    yield store
    store.close()


def test_a_large_index_is_kept_until_the_graph_changes(large_store, monkeypatch):
    made = make_index(large_store)
    indexes = GraphIndexes(large_store, GRAPH)
    with monkeypatch.context() as patch:
        patch.setattr(GraphIndexes, "_make", None)
        assert_equal(indexes.current(), made)
    assert indexes.current().walk.push([0], [1.0]).nodes.size
    asyncio.run(add_and_build(large_store, "b", "Ada Marsh > sold > Skerry"))
    assert len(make_index(large_store).facts) == len(indexes.current().facts) == 2


def test_a_small_index_is_not_kept(large_store, monkeypatch):
    monkeypatch.setattr(graph_index, "_LEAST_KEPT", 1000)
    make_index(large_store)
    assert not list(large_store.cache_folder.glob("kept*"))


def test_an_index_with_weights_of_its_own_is_kept_if_they_have_a_name(large_store, monkeypatch):
    def weigh(entities, passages):
        return np.full(len(entities), 3.0)

    made = GraphIndexes(large_store, GRAPH, weigh=weigh).current()
    assert not list(large_store.cache_folder.glob("kept*"))
    assert_equal(GraphIndexes(large_store, GRAPH, weigh=weigh, rule="threes").current(), made)
    make_index(large_store)
    monkeypatch.setattr(GraphIndexes, "_make", None)
    assert_equal(GraphIndexes(large_store, GRAPH, weigh=weigh, rule="threes").current(), made)


@settings(deadline=None)
@given(place=st.integers(0, 10_000), value=st.integers(-128, 127), length=st.integers(0, 10_000))
def test_changed_bytes_give_an_index_that_can_be_walked_on_or_none(place, value, length):
    graph = CsrGraph.from_edges(4, [0, 0, 1], [1, 2, 3], [1.0, 2.0, 0.5])
    ids = np.array([5, 6], np.int64)
    ends = np.array([0, 1], np.int32)
    index = GraphIndex(ids, ids, ids, ends, ends[::-1], ids, np.arange(4) >= 2, Walk(graph))
    content = index.encode()
    assert_equal(GraphIndex.decode(content, 0.5), index)
    assert GraphIndex.decode(content[: length % len(content)], 0.5) is None
    content[place % len(content)] = value
    decoded = GraphIndex.decode(content, 0.5)
    if decoded is not None:
        assert decoded.walk.push([0, 1], [1.0, 1.0]).nodes.max() < 4
        assert decoded.spread[decoded.heads].shape == decoded.tails.shape


def test_a_graph_whose_rows_jump_is_not_sound():
    graph = CsrGraph.from_edges(4, [0, 0, 1], [1, 2, 3], [1.0, 2.0, 0.5])
    jump = np.array([0, 2**62, -(2**62) - 1, 5, 6])
    assert graph.is_sound()
    assert not CsrGraph(jump, graph.indices, graph.weights).is_sound()


def make_small(**changed: object) -> GraphIndex:
    graph = CsrGraph.from_edges(4, [0, 0, 1], [1, 2, 3], [1.0, 2.0, 0.5])
    ids, ends = np.array([5, 6], np.int64), np.array([0, 1], np.int32)
    return replace(GraphIndex(ids, ids, ids, ends, ends[::-1], ids, np.arange(4) >= 2, Walk(graph)), **changed)


@pytest.mark.parametrize("name", ["entities", "passages", "facts"])
@pytest.mark.parametrize("keys", [(6, 5), (5, 5), (0, 5), (-1, 5)])
def test_an_index_with_keys_that_no_store_gives_is_refused(name, keys):
    assert GraphIndex.decode(make_small().encode(), 0.5) is not None
    assert GraphIndex.decode(make_small(**{name: np.array(keys, np.int64)}).encode(), 0.5) is None


def test_an_index_with_fewer_passages_than_none_is_refused():
    assert GraphIndex.decode(make_small(spread=np.array([2, -1], np.int64)).encode(), 0.5) is None


def test_an_index_whose_neighbours_do_not_ascend_is_refused():
    graph = make_small().walk.graph
    turned = graph.indices.copy()
    turned[:2] = turned[:2][::-1]
    assert GraphIndex.decode(make_small(walk=Walk(CsrGraph(graph.indptr, turned, graph.weights))).encode(), 0.5) is None


def test_a_kept_index_of_other_passages_is_made_again(large_store):
    indexes = GraphIndexes(large_store, GRAPH)
    made = indexes.current()
    forged = replace(made, passages=made.passages + 1000)
    large_store.keep(indexes._kept_name, large_store.versions(indexes._names), forged.encode())
    assert_equal(make_index(large_store), made)
