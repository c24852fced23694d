"""The graph as arrays, compared with a slow reading of the same rows, while documents are added and removed."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.recall.exact_walk import list_edges
from tests.recall.graph_tomes import (
    GRAPH,
    NAMES,
    add_and_build,
    build_graph,
    build_store,
    remove_and_build,
    vertices,
)

from tomewise.recall.graph_index import GraphIndex, GraphIndexes
from tomewise.recall.walk import CsrGraph, Walk
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
    joined = {end for pair in ends.values() for end in pair} if links == "facts" else set(entities)
    for a, b, cosine in read_edges(store, NAMES.synonyms).rows.tolist():
        if joined >= {a, b}:
            weights[tuple(sorted((entities[int(a)], entities[int(b)])))] += between * cosine
    return dict(weights)


def read_weights(store: SqlStore, index: GraphIndex) -> dict[tuple[str, str], float]:
    names = vertices(store, index)
    entities = len(index.entities)
    return {
        ((names[a], names[b]) if b >= entities else tuple(sorted((names[a], names[b])))): weight
        for a, b, weight in list_edges(index.walk.graph)
    }


def spreads(store: SqlStore, index: GraphIndex) -> dict[str, int]:
    return dict(zip(vertices(store, index), index.spread.tolist(), strict=False))


def lines() -> st.SearchStrategy[str]:
    name = st.sampled_from(PEOPLE)
    return st.one_of(name, st.tuples(name, st.sampled_from(["met", "sold"]), name).map(" > ".join))


@settings(max_examples=8)
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


async def test_it_is_built_again_only_when_the_graph_has_changed(open_store):
    store = await build_graph(open_store(), "Ada > met > Tom")
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
    await add_and_build(open_store(store.path), "later", "Ida > met > Ada")  # as another process would
    assert read_weights(store, indexes.current()) == grown


async def test_readers_never_see_half_a_change(open_store):
    """An index of mixed versions would link entities to the wrong passages, or raise an IndexError."""
    store = await build_graph(open_store(), *(f"Name {number} > met > Name {number + 1}" for number in range(8)))
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


# ---------------------------------------------------------------- kept beside the tome


class NotingStore(SqlStore):
    """Notes under which names and versions bytes were kept."""

    def keep(self, name, versions, content):
        self.kept.append((name, versions))
        super().keep(name, versions, content)


@pytest.fixture
async def store_with_notes(open_store):
    made = await build_graph(open_store(), "Ada Marsh > met > Tom Hale")
    noting = NotingStore.open(made.path)
    noting.kept = []
    yield noting
    noting.close()


def make_index(store: SqlStore, **settings: Any) -> GraphIndex:
    return GraphIndexes(store, GRAPH, least_kept=1, **settings).current()


def assert_equal(a: GraphIndex, b: GraphIndex) -> None:
    for name in ("entities", "passages", "facts", "heads", "tails", "spread", "is_passage"):
        assert getattr(a, name).tolist() == getattr(b, name).tolist(), name
    for name in ("indptr", "indices", "weights"):
        assert getattr(a.walk.graph, name).tolist() == getattr(b.walk.graph, name).tolist(), name


def forge(store: NotingStore, index: GraphIndex) -> GraphIndex:
    """Keep this index in place of the one that was kept last."""
    store.keep(*store.kept[-1], index.encode())
    return index


async def test_a_large_index_is_kept_until_the_graph_changes(store_with_notes):
    made = make_index(store_with_notes)
    forged = forge(store_with_notes, replace(made, spread=made.spread + 7))  # so that it is seen that this one is read
    read = GraphIndexes(store_with_notes, GRAPH, least_kept=1)
    assert_equal(read.current(), forged)
    assert read.current().walk.push([0], [1.0]).nodes.size
    await add_and_build(store_with_notes, "b", "Ada Marsh > sold > Skerry")
    assert len(make_index(store_with_notes).facts) == len(read.current().facts) == 2


async def test_a_kept_index_of_other_passages_is_made_again(store_with_notes):
    made = make_index(store_with_notes)
    forge(store_with_notes, replace(made, passages=made.passages + 1000))
    assert_equal(make_index(store_with_notes), made)


SMALL_GRAPH = CsrGraph.from_edges(4, [0, 0, 1], [1, 2, 3], [1.0, 2.0, 0.5])


def make_small(**changed: object) -> GraphIndex:
    ids, ends = np.array([5, 6], np.int64), np.array([0, 1], np.int32)
    return replace(GraphIndex(ids, ids, ids, ends, ends[::-1], ids, Walk(SMALL_GRAPH)), **changed)


@settings(max_examples=60)
@given(place=st.integers(0, 10_000), value=st.integers(-128, 127), length=st.integers(0, 10_000))
def test_changed_bytes_give_an_index_that_can_be_walked_on_or_none(place, value, length):
    content = make_small().encode()
    assert_equal(GraphIndex.decode(content, 0.5), make_small())
    assert GraphIndex.decode(content[: length % len(content)], 0.5) is None
    content[place % len(content)] = value
    decoded = GraphIndex.decode(content, 0.5)
    if decoded is not None:
        assert decoded.walk.push([0, 1], [1.0, 1.0]).nodes.max() < 4
        assert decoded.spread[decoded.heads].shape == decoded.tails.shape


def turn_neighbours() -> Walk:
    turned = SMALL_GRAPH.indices.copy()
    turned[:2] = turned[:2][::-1]
    return Walk(CsrGraph(SMALL_GRAPH.indptr, turned, SMALL_GRAPH.weights))


@pytest.mark.parametrize(
    "changed",
    [
        *(
            {name: np.array(keys, np.int64)}
            for name in ("entities", "passages", "facts")
            for keys in ((6, 5), (5, 5), (0, 5), (-1, 5))
        ),
        {"spread": np.array([2, -1], np.int64)},
        {"walk": turn_neighbours()},
    ],
    ids=lambda changed: " ".join(f"{name}={value}" for name, value in changed.items())[:20],
)
def test_an_index_with_what_no_store_gives_is_refused(changed):
    """Keys that do not ascend from 1, fewer passages than none, neighbours out of order."""
    assert GraphIndex.decode(make_small(**changed).encode(), 0.5) is None


def test_a_graph_whose_rows_jump_is_not_sound():
    assert SMALL_GRAPH.is_sound()
    jump = np.array([0, 2**62, -(2**62) - 1, 5, 6])
    assert not CsrGraph(jump, SMALL_GRAPH.indices, SMALL_GRAPH.weights).is_sound()
