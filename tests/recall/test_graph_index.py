"""The graph as arrays, compared with a slow reading of the same rows, while documents are added and removed."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.recall.graph_tomes import GRAPH, NAMES, add_and_build, build_store, rebuild, remove_and_build, vertices

from tomewise.recall.graph_index import GraphIndex, GraphIndexes
from tomewise.store.sqlite.sqlite_store import SqliteStore

TWINS = ["the old stone tower house", "the old stone tower houses", "the old stone towers house"]
PEOPLE = ["Ada Marsh", "Tom Hale", "Skerry", *TWINS]


def weigh_slowly(store: SqliteStore, links: str, between: float) -> dict[tuple[str, str], float]:
    """The weights of the graph by names, computed from the rows one by one."""
    entities = {key: node.text for key, node in store.nodes(NAMES.entities).items()}
    homes = {key: passage.document for key, passage in store.passages().items()}
    fact_sources = store.sources(store.nodes(NAMES.facts), NAMES.facts)
    entity_sources = store.sources(entities, NAMES.entities)
    ends: dict[int, list[int]] = {}
    for fact, entity, _ in store.edges(NAMES.ends).rows.tolist():
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
    for a, b, cosine in store.edges(NAMES.synonyms).rows.tolist():
        weights[tuple(sorted((entities[int(a)], entities[int(b)])))] += between * cosine
    return dict(weights)


def read_weights(store: SqliteStore, index: GraphIndex) -> dict[tuple[str, str], float]:
    names = vertices(store, index)
    entities = len(index.entities)
    edges = zip(*(array.tolist() for array in index.walk.graph.edges()), strict=True)
    return {
        ((names[a], names[b]) if b >= entities else tuple(sorted((names[a], names[b])))): weight
        for a, b, weight in edges
    }


def spreads(store: SqliteStore, index: GraphIndex) -> dict[str, int]:
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
    second = SqliteStore.open(store.path)  # as another process would
    await add_and_build(second, "later", "Ida > met > Ada")
    second.close()
    assert read_weights(store, indexes.current()) == grown


async def test_a_tome_without_a_graph_has_an_empty_one(tmp_path):
    store = SqliteStore.open(tmp_path / "a.tome")
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
