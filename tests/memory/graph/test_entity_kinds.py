"""The kinds of entities, and which of them a picture of a graph shows first."""

from __future__ import annotations

from tomewise.memory.graph.entity_kinds import find_kinds
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.store.records import BUILDS
from tomewise.tome.tome import Tome
from tomewise.types import Document

TEXTS = [
    "Ada Marsh kept the light of Hull in 1911. Ada Marsh met Tom Reed.",
    "Ada Marsh wrote to Tom Reed on Tuesday. Ada Marsh left Hull.",
    "Ada Marsh came back. Finch saw Ada Marsh.",
]


def fill(tome: Tome, system: str) -> GraphNames:
    tome.add(*(Document(id=f"d{number}", text=text) for number, text in enumerate(TEXTS)))
    tome.build(system)
    return GraphNames.read(next(layer for layer in tome.store.notes(BUILDS) if layer.startswith("graph:")))


def list_kinds(tome: Tome, names: GraphNames) -> dict[str, str]:
    entities = {key: node.text for key, node in tome.store.nodes(names.entities).items()}
    return {entities[key]: kind for key, kind in find_kinds(entities, names, tome.store).items()}


def test_a_graph_of_relations_states_the_kinds(tome):
    names = fill(tome, "hgmem")
    kinds = list_kinds(tome, names)
    stated = {node.data["entity"]: node.data["type"] for node in tome.store.nodes(names.mentions).values()}
    assert {name for name, kind in stated.items() if kind == "geo"} == {
        name for name, kind in kinds.items() if kind == "place" and stated.get(name)
    }
    assert kinds["ada marsh"] == stated["ada marsh"]


def test_in_a_graph_of_triples_names_show_the_kinds(tome):
    kinds = list_kinds(tome, fill(tome, "hipporag2"))
    assert (kinds["ada marsh"], kinds["tom reed"]) == ("person", "person")
    assert {kinds[name] for name in kinds if name in ("1911", "tuesday")} == {"number or date"}


def test_the_most_telling_come_first_and_each_is_in_the_group_of_its_kind(tome):
    names = fill(tome, "hipporag2")
    picture = tome.draw_layer(names.layer, limit=3)
    assert picture.nodes[0].label == "ada marsh"
    assert len(picture.nodes) == picture.shown == 3
    assert {node.group for node in picture.nodes} == {group.id for group in picture.groups}
    assert picture.nodes[0].group == "person"
    centred = tome.draw_layer(names.layer, around="ada marsh")
    assert [node.label for node in centred.nodes if node.group == "centre"] == ["ada marsh"]


def test_an_entity_has_its_kind_and_neighbours_the_nearest_first(tome):
    fill(tome, "hipporag2")
    found = tome.entity("Ada Marsh")
    assert found.kind == "person"
    counts = dict(found.neighbours)
    assert "tom reed" in counts
    assert "ada marsh" not in counts
    assert list(counts.values()) == sorted(counts.values(), reverse=True)
    assert sum(counts.values()) <= len(found.facts)
