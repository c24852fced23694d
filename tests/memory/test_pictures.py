"""Pictures of layers: the graph, the tree, the episodes."""

from __future__ import annotations

from contextlib import closing

import pytest
from tests import stories
from tests.recall.relation_tomes import NAMES, build_store

from tomewise.errors import UnknownName
from tomewise.memory.building import build
from tomewise.memory.episodes import EpisodesLayer
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.memory.graph.graph_picture import draw_graph
from tomewise.memory.summary_picture import draw_line, draw_tree
from tomewise.pictures import Uses
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel
from tomewise.types import Node

TEXTS = (
    "Xodar ~ Carter ~ Carter defeated Xodar",
    "Issus ~ Xodar ~ Issus degraded Xodar",
    "Issus ~ Phaidor ~ Phaidor serves Issus",
    "Zat Arras ~ Zodanga ~ Zat Arras rules Zodanga",
    "Issus ~ Issus ~ Issus fears Issus",
)


@pytest.fixture
async def store(tmp_path):
    made = await build_store(tmp_path, *TEXTS)
    yield made
    made.close()


def list_names(picture) -> list[str]:
    return [node.label for node in picture.nodes]


async def test_the_most_connected_entities_come_first(store):
    picture = draw_graph(store, NAMES, limit=2)
    assert sorted(list_names(picture)) == ["issus", "xodar"]
    assert (picture.shown, picture.total) == (2, 6)
    whole = draw_graph(store, NAMES)
    assert len(whole.nodes) == 6
    ends = {frozenset({link.source, link.target}) for link in whole.links}
    names = {node.id: node.label for node in whole.nodes}
    pairs = {frozenset(names[end] for end in pair) for pair in ends}
    assert frozenset({"zat arras", "zodanga"}) in pairs
    assert frozenset({"xodar", "phaidor"}) not in pairs


async def test_a_graph_around_one_entity_grows_by_hops(store):
    assert sorted(list_names(draw_graph(store, NAMES, around="XODAR"))) == ["carter", "issus", "xodar"]
    assert sorted(list_names(draw_graph(store, NAMES, around="Xodar", hops=2))) == [
        "carter",
        "issus",
        "phaidor",
        "xodar",
    ]
    assert list_names(draw_graph(store, NAMES, around="Xodar", limit=1)) == ["xodar"]
    with pytest.raises(UnknownName, match="'Bob' is not an entity"):
        draw_graph(store, NAMES, around="Bob")


async def test_facts_and_passages_stand_with_their_entities(store):
    passage = next(passage for passage in store.passages().values() if "defeated" in passage.text)
    picture = draw_graph(store, NAMES, around="Carter", uses=Uses(cited=frozenset({passage.id})))
    carter = next(node for node in picture.nodes if node.label == "carter")
    assert carter.use == "cited"
    assert carter.passages == (passage.id,)
    assert [note.passages for note in carter.notes] == [(passage.id,)]
    assert "defeated" in carter.notes[0].title


async def test_an_empty_graph_is_an_empty_picture(tmp_path):
    with closing(SqlStore.open(tmp_path / "b.tome")) as empty:
        assert draw_graph(empty, NAMES).nodes == ()


@pytest.mark.parametrize(
    "names",
    [GraphNames("passages", "triples"), GraphNames("gists", "relations"), GraphNames("passages", "triples", 2)],
)
def test_the_names_of_a_graph_are_read_from_its_layer(names):
    assert GraphNames.read(names.layer) == names


def test_other_layers_are_no_graphs():
    with pytest.raises(UnknownName, match="not the name of a graph"):
        GraphNames.read("graph:passages")


@pytest.fixture
def stories_store(tmp_path):
    with closing(SqlStore.open(tmp_path / "c.tome")) as made:
        stories.put_texts(made, HashEmbedder(32), "d", *(f"Scene {number}." for number in range(6)))
        yield made


async def test_episodes_stand_in_their_order(stories_store):
    model = ScriptedModel({"narrate": lambda given: {"summary": " ".join(given.texts)}})
    layer = EpisodesLayer(stories_store, model, HashEmbedder(32), levels=2)
    await build([layer], stories_store, lambda _: None)
    picture = draw_line(stories_store, layer.name)
    first = [node for node in picture.nodes if node.level == 0]
    assert [node.label for node in first] == ["Scene 0. Scene 1. Scene 2.", "Scene 3. Scene 4. Scene 5."]
    assert [len(node.passages) for node in first] == [3, 3]
    above = [node for node in picture.nodes if node.level == 1]
    assert {(link.source, link.target) for link in picture.links} == {(above[0].id, node.id) for node in first}
    assert draw_line(stories_store, layer.name, limit=1).shown == 1


def test_a_tree_shows_its_top_first(stories_store):
    passages = list(stories_store.passages().values())
    leaves = [
        Node(
            id=f"s{number}",
            layer="tree",
            text=f"Part {number}",
            level=1,
            position=number,
            sources=tuple(each.id for each in passages[3 * number : 3 * number + 3]),
        )
        for number in range(2)
    ]
    top = Node(id="top", layer="tree", text="All", level=2, sources=("s0", "s1"))
    with stories_store.write() as change:
        change.put_nodes(leaves)
        change.put_nodes([top])
    picture = draw_tree(stories_store, "tree", uses=Uses(shown=frozenset({"s1"})))
    assert list_names(picture)[:3] == ["All", "Part 0", "Part 1"]
    assert len(picture.nodes) == picture.total == 9
    assert {link.target for link in picture.links if link.source == "top"} == {"s0", "s1"}
    assert [node.use for node in picture.nodes][:3] == ["", "", "shown"]
    cut = draw_tree(stories_store, "tree", limit=4)
    assert [node.group for node in cut.nodes] == ["level 2", "level 1", "level 1", "passages"]
    assert (cut.shown, cut.total) == (4, 9)
