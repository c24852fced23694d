"""The picture of communities: levels, colours, findings with their passages, and what an answer used."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.loops.community_tomes import build_tome, write_groups

from tomewise.memory.communities.communities_picture import draw_communities
from tomewise.memory.communities.community_names import CommunityNames
from tomewise.pictures import Uses
from tomewise.store.sql.sql_store import SqlStore
from tomewise.tome.drawings import draw_layer

NAMES = CommunityNames()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    opened = await build_tome(tmp_path, write_groups(30, 4))
    assert max(node.level for node in opened.nodes(NAMES.reports).values()) > 0
    yield opened
    opened.close()


def test_levels_lead_down_to_entities_in_the_colour_of_their_root(store: SqlStore) -> None:
    picture = draw_layer("communities", store)
    nodes = {node.id: node for node in picture.nodes}
    communities, entities = store.nodes(NAMES.layer), store.nodes(NAMES.graph.entities)
    assert len(nodes) == picture.shown == picture.total == len(communities) + len(entities)
    parents = {link.target: link.source for link in picture.links}
    roots = [node.id for node in communities.values() if node.level == 0]
    assert {id for id in nodes if id not in parents} == {*roots}
    for target, source in parents.items():
        assert nodes[source].level > nodes[target].level
        assert nodes[source].group == nodes[target].group
    assert len({nodes[root].group for root in roots}) == min(6, len(roots)) == len(picture.groups)
    numbers = {node.data["number"]: node.id for node in communities.values()}
    for node in communities.values():
        assert parents.get(node.id) == numbers.get(node.data["parent"])


def test_findings_lead_to_the_passages_that_state_them(store: SqlStore) -> None:
    picture = draw_communities(store, NAMES)
    notes = [note for node in picture.nodes for note in node.notes]
    assert notes
    passages = {passage.id: passage.text for passage in store.passages().values()}
    for note in notes:
        words = [word for word in note.text.split() if word.startswith("place")]
        assert note.passages
        assert all(any(word in passages[each] for each in note.passages) for word in words)


def test_what_an_answer_used_is_marked(store: SqlStore) -> None:
    report = min(store.nodes(NAMES.reports).values(), key=lambda node: node.id)
    shown = draw_communities(store, NAMES, uses=Uses(shown=frozenset([report.id])))
    (node,) = [node for node in shown.nodes if node.use]
    assert (node.use, node.text) == ("shown", report.text)
    passage = node.passages[0]
    cited = draw_communities(store, NAMES, uses=Uses(cited=frozenset([passage])))
    assert {node.use for node in cited.nodes if passage in node.passages} == {"cited"}


def test_what_has_no_room_is_counted(store: SqlStore) -> None:
    communities = len(store.nodes(NAMES.layer))
    entities = len(store.nodes(NAMES.graph.entities))
    few = draw_communities(store, NAMES, limit=communities + 5)
    assert len(few.nodes) == communities + 5
    assert few.missing == (f"{entities - 5} entities are not drawn: choose a community to read its report.",)
