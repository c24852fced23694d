"""The picture of the schemata: levels, overlapping clusters, and what an answer used."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

import pytest
from tests.drawn import read_picture
from tests.memory.schemata.test_schemata_layer import (
    EMBEDDER,
    NAME,
    NAMES,
    TOPICS,
    build_layer,
    fill,
    make_model,
)

from tomewise.memory.schemata.schemata_names import SchemataNames, SchemataRules
from tomewise.memory.schemata.schemata_picture import draw_schemata
from tomewise.pictures import Uses
from tomewise.store.lookups import read_edges, read_sources
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import document_of, put_document
from tomewise.tome.drawings import draw_layer


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with closing(SqlStore.open(tmp_path_factory.mktemp("schemata") / "a.tome")) as made:
        fill(made, range(90))
        put_document(made, EMBEDDER, document_of("y", f"{TOPICS[1]} {TOPICS[2]}"))  # in two clusters
        build_layer(made, make_model())
        put_document(made, EMBEDDER, document_of("zz", "It came after the build."))
        yield made


def test_clusters_stand_above_their_members_which_may_be_in_several(store):
    picture = draw_schemata(store, NAMES)
    nodes, sources = store.nodes(NAME), read_sources(store, store.nodes(NAME), NAME)
    ids = {key: node.id for key, node in nodes.items()} | {key: each.id for key, each in store.passages().items()}
    assert {(link.source, link.target) for link in picture.links} == {
        (ids[key], ids[child]) for key, children in sources.items() for child in children
    }
    parents = Counter(link.target for link in picture.links)
    assert max(parents.values()) > 1, "clusters overlap"
    assert all(node.facts["clusters it is in"] == parents[node.id] for node in picture.nodes)
    levels = [node.level for node in picture.nodes]
    assert levels == sorted(levels, reverse=True)
    assert {node.group for node in picture.nodes} == {f"level {level}" for level in {*levels} - {0}} | {"passages"}
    assert picture.missing == ("In no cluster: 1 of 92 passages.",)
    assert picture.shown == picture.total == len(picture.nodes) == len(nodes) + 91
    assert read_picture(picture.as_json()) == picture


def test_what_an_answer_used_is_marked_up_to_the_top_and_comes_first(store):
    passages = [passage.id for passage in store.passages().values()]
    summary = next(iter(store.nodes(NAME).values())).id
    uses = Uses(shown=frozenset({summary, passages[1]}), cited=frozenset({passages[0]}))
    picture = draw_schemata(store, NAMES, uses=uses)
    marks = {node.id: node.use for node in picture.nodes}
    above = {passages[0]}
    for _ in range(10):
        above |= {link.source for link in picture.links if link.target in above}
    assert {name for name, use in marks.items() if use == "cited"} == above
    assert {name for name, use in marks.items() if use == "shown"} == {summary, passages[1]} - above
    few = draw_schemata(store, NAMES, limit=len(above) + 3, uses=uses)
    assert above <= {node.id for node in few.nodes}
    assert (few.shown, few.total) == (len(above) + 3, picture.total)


def test_without_room_for_all_passages_the_clusters_are_drawn_with_what_the_answer_used(store):
    nodes, passage = store.nodes(NAME), next(iter(store.passages().values())).id
    picture = draw_schemata(store, NAMES, limit=60, uses=Uses(cited=frozenset({passage})))
    drawn = {node.id for node in picture.nodes}
    assert drawn == {passage, *(node.id for node in nodes.values())}
    assert picture.missing[0] == "90 passages are not drawn: choose a cluster to read those in it."
    assert {each for node in picture.nodes for each in node.passages} > {passage}, "each cluster lists its passages"


def test_a_layer_with_settings_in_its_name_is_drawn(tmp_path):
    with closing(SqlStore.open(tmp_path / "d.tome")) as store:
        fill(store, range(20))
        build_layer(store, make_model(), SchemataRules(k=4))
        picture = draw_layer("schemata:k=4", store, limit=5)
        assert (picture.title, picture.shown) == ("Schemata", 5)


def test_without_schemata_the_links_are_drawn(tmp_path):
    with closing(SqlStore.open(tmp_path / "b.tome")) as store:
        fill(store, range(12))
        rules = SchemataRules(levels=0)
        build_layer(store, make_model(), rules)
        names = SchemataNames.from_rules(rules)
        passage = next(iter(store.passages().values())).id
        picture = draw_schemata(store, names, uses=Uses(cited=frozenset({passage})))
        assert (picture.kind, picture.total) == ("graph", 12)
        assert len(picture.links) == len(read_edges(store, names.links(0)).rows) > 0
        assert {node.id for node in picture.nodes if node.use} == {passage}
        assert sum(float(node.facts["links"]) for node in picture.nodes) == 2 * len(picture.links)
        few = draw_schemata(store, names, limit=3, uses=Uses(cited=frozenset({passage})))
        assert (few.shown, few.total) == (3, 12)
        assert passage in {node.id for node in few.nodes}


def test_a_tome_of_one_passage_is_an_empty_picture(tmp_path):
    with closing(SqlStore.open(tmp_path / "c.tome")) as store:
        fill(store, range(1))
        build_layer(store, make_model())
        assert draw_schemata(store, NAMES).nodes == ()
