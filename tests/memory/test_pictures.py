"""Pictures of layers: graphs, trees, lines, communities, schemata, and the trees that grow."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.drawn import read_picture
from tests.loops.community_tomes import build_tome, write_groups
from tests.memory.memories import EMBEDDER, TOPICS, build_layer, put_numbered, put_passages, put_text
from tests.memory.schemata.test_schemata_layer import build_schemata, write_text
from tests.recall.relation_tomes import NAMES as GRAPH
from tests.recall.relation_tomes import build_store

from tomewise.errors import UnknownName
from tomewise.memory.communities.communities_picture import draw_communities
from tomewise.memory.communities.community_names import CommunityNames
from tomewise.memory.episodes import EpisodesLayer
from tomewise.memory.graph.graph_picture import draw_graph
from tomewise.memory.schemata.schemata_names import SchemataNames, SchemataRules
from tomewise.memory.summary_picture import draw_schemata, draw_summaries
from tomewise.pictures import Picture, Uses
from tomewise.store.lookups import read_sources
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import ScriptedModel
from tomewise.tome.drawings import draw_layer
from tomewise.types import Node

COMMUNITIES = CommunityNames()
SCHEMATA = SchemataNames()
LINKS = SchemataNames(SchemataRules(levels=0).layer)
RELATIONS = (
    "Xodar ~ Carter ~ Carter defeated Xodar",
    "Issus ~ Xodar ~ Issus degraded Xodar",
    "Issus ~ Phaidor ~ Phaidor serves Issus",
    "Zat Arras ~ Zodanga ~ Zat Arras rules Zodanga",
    "Issus ~ Issus ~ Issus fears Issus",
)


async def fill_graph(folder: Path) -> SqlStore:
    return await build_store(folder, *RELATIONS)


async def fill_communities(folder: Path) -> SqlStore:
    return await build_tome(folder, write_groups(30, 4))


async def fill_schemata(folder: Path) -> SqlStore:
    store = SqlStore.open(folder / "a.tome")
    put_numbered(store, range(90), write_text)
    put_text(store, "y", f"{TOPICS[1]} {TOPICS[2]}")  # in two clusters
    await build_schemata(store)
    put_text(store, "zz", "It came after the build.")
    return store


async def fill_links(folder: Path) -> SqlStore:
    store = SqlStore.open(folder / "a.tome")
    put_numbered(store, range(12), write_text)
    await build_schemata(store, SchemataRules(levels=0))
    return store


async def fill_episodes(folder: Path) -> SqlStore:
    store = SqlStore.open(folder / "a.tome")
    put_passages(store, "d", *(f"Scene {number}." for number in range(6)))
    model = ScriptedModel({"narrate": lambda given: {"summary": " ".join(given.texts)}})
    await build_layer(EpisodesLayer(store, model, EMBEDDER, levels=2), store)
    return store


async def fill_tree(folder: Path) -> SqlStore:
    store = SqlStore.open(folder / "a.tome")
    put_passages(store, "d", *(f"Scene {number}." for number in range(6)))
    ids = [passage.id for passage in store.passages().values()]
    leaves = [
        Node(id=f"s{n}", layer="tree", text=f"Part {n}", level=1, position=n, sources=tuple(ids[3 * n : 3 * n + 3]))
        for n in range(2)
    ]
    with store.write() as change:
        change.put_nodes(leaves)
        change.put_nodes([Node(id="top", layer="tree", text="All", level=2, sources=("s0", "s1"))])
    return store


Draw = Callable[..., Picture]
CASES: dict[str, tuple[Any, Draw]] = {
    "graph": (fill_graph, lambda store, **more: draw_graph(store, GRAPH, **more)),
    "communities": (fill_communities, lambda store, **more: draw_communities(store, COMMUNITIES, **more)),
    "schemata": (fill_schemata, lambda store, **more: draw_schemata(store, SCHEMATA, **more)),
    "links": (fill_links, lambda store, **more: draw_schemata(store, LINKS, **more)),
    "episodes": (fill_episodes, lambda store, **more: draw_summaries(store, "episodes:levels=2", "line", **more)),
    "tree": (fill_tree, lambda store, **more: draw_summaries(store, "tree", "tree", **more)),
}


@pytest.fixture(scope="module")
def open_filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], SqlStore]]:
    """The store of a case, which is filled once."""
    opened: dict[str, SqlStore] = {}

    def find_store(name: str) -> SqlStore:
        if name not in opened:
            opened[name] = asyncio.run(CASES[name][0](tmp_path_factory.mktemp(name)))
        return opened[name]

    yield find_store
    for store in opened.values():
        store.close()


def list_labels(picture: Picture) -> list[str]:
    return [node.label for node in picture.nodes]


@pytest.mark.parametrize("name", CASES)
def test_every_picture_keeps_its_limit_marks_what_was_used_and_is_empty_without_memory(
    name: str, open_filled: Any, tmp_path: Path
) -> None:
    store, draw = open_filled(name), CASES[name][1]
    whole = draw(store)
    assert whole.shown == whole.total == len(whole.nodes) > 2
    assert read_picture(whole.to_dict()) == whole
    few = draw(store, limit=2)
    assert (few.shown, len(few.nodes), few.total) == (2, 2, whole.total)
    passage = next(node.passages[0] for node in whole.nodes if node.passages)
    marked = draw(store, uses=Uses(cited=frozenset({passage})))
    cited = {node.id for node in marked.nodes if node.use == "cited"}
    assert cited == {node.id for node in marked.nodes if node.use}
    assert cited & {passage, *(node.id for node in whole.nodes if passage in node.passages)}
    with closing(SqlStore.open(tmp_path / "empty.tome")) as empty:
        assert draw(empty).nodes == ()


# ---------------------------------------------------------------- graphs


@pytest.mark.parametrize(
    ("around", "more", "labels"),
    [
        ("XODAR", {}, ["carter", "issus", "xodar"]),
        ("Xodar", {"hops": 2}, ["carter", "issus", "phaidor", "xodar"]),
        ("Xodar", {"limit": 1}, ["xodar"]),
    ],
)
def test_a_graph_around_one_entity_grows_by_hops(open_filled, around, more, labels):
    store = open_filled("graph")
    assert sorted(list_labels(draw_graph(store, GRAPH, around=around, **more))) == labels
    with pytest.raises(UnknownName, match="'Bob' is not an entity"):
        draw_graph(store, GRAPH, around="Bob")


# ---------------------------------------------------------------- summaries


def test_a_tree_shows_its_top_first(open_filled):
    store = open_filled("tree")
    picture = draw_summaries(store, "tree", "tree", uses=Uses(shown=frozenset({"s1"})))
    assert list_labels(picture)[:3] == ["All", "Part 0", "Part 1"]
    assert {link.target for link in picture.links if link.source == "top"} == {"s0", "s1"}
    assert [node.use for node in picture.nodes][:3] == ["", "", "shown"]
    cut = draw_summaries(store, "tree", "tree", limit=4)
    assert [node.group for node in cut.nodes] == ["level 2", "level 1", "level 1", "passages"]
    assert (cut.shown, cut.total) == (4, 9)


# ---------------------------------------------------------------- communities


def test_levels_lead_down_to_entities_in_the_colour_of_their_root(open_filled):
    store = open_filled("communities")
    picture = draw_layer("communities", store)
    nodes = {node.id: node for node in picture.nodes}
    communities, entities = store.nodes(COMMUNITIES.layer), store.nodes(COMMUNITIES.graph.entities)
    assert len(nodes) == len(communities) + len(entities)
    parents = {link.target: link.source for link in picture.links}
    roots = [node.id for node in communities.values() if node.level == 0]
    assert {id for id in nodes if id not in parents} == {*roots}
    assert all(nodes[source].group == nodes[target].group for target, source in parents.items())
    numbers = {node.data["number"]: node.id for node in communities.values()}
    assert all(parents.get(node.id) == numbers.get(node.data["parent"]) for node in communities.values())
    few = draw_layer("communities", store, limit=len(communities) + 5)
    assert few.missing == (f"{len(entities) - 5} entities are not drawn: choose a community to read its report.",)


# ---------------------------------------------------------------- schemata


def test_clusters_stand_above_their_members_which_may_be_in_several(open_filled):
    store = open_filled("schemata")
    picture = draw_schemata(store, SCHEMATA)
    nodes = store.nodes(SCHEMATA.layer)
    ids = {key: node.id for key, node in nodes.items()} | {key: each.id for key, each in store.passages().items()}
    assert {(link.source, link.target) for link in picture.links} == {
        (ids[key], ids[child])
        for key, children in read_sources(store, nodes, SCHEMATA.layer).items()
        for child in children
    }
    parents = Counter(link.target for link in picture.links)
    assert max(parents.values()) > 1, "clusters overlap"
    assert all(node.facts["clusters it is in"] == parents[node.id] for node in picture.nodes)
    assert [node.level for node in picture.nodes] == sorted((node.level for node in picture.nodes), reverse=True)
    assert picture.missing == ("In no cluster: 1 of 92 passages.",)
    assert picture.total == len(nodes) + 91
