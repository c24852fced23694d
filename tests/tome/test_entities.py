"""`Tome.entity`: what the graphs hold on a name."""

from __future__ import annotations

import pytest

from tomewise.errors import NotBuilt, UnknownName
from tomewise.types import Document

TEXT = "Ada Marsh kept the light. Ada Marsh wrote a letter to Doctor Finch."


def test_an_entity_has_its_facts_and_passages(tome):
    tome.add(Document(id="log", text=TEXT), Document(id="other", text="Nobody wrote anything."))
    with pytest.raises(NotBuilt, match="no graph is built"):
        tome.entity("Ada Marsh")
    tome.build("associative")
    found = tome.entity("Ada Marsh")
    assert [passage.document for passage in found.passages] == ["log"]
    assert {graph for _, graph in found.facts} == {"passages-triples"}
    assert found.gists == {}
    tome.remove("log")
    with pytest.raises((UnknownName, NotBuilt)):
        tome.entity("Ada Marsh")


def test_gists_stand_beside_their_passages(tome):
    tome.add(Document(id="log", text=TEXT))
    tome.build("cogitorag")
    found = tome.entity("ada marsh")
    (passage,) = found.passages
    gists = tome.store.nodes("gists")
    assert found.gists == {passage.id: next(iter(gists.values())).text}


@pytest.mark.parametrize(
    ("name", "part"), [("Finch", "'doctor finch'"), ("Ada Mash", "'ada marsh'"), ("", "no entity ''")]
)
def test_a_name_that_is_not_there_is_answered_with_the_nearest(tome, name, part):
    tome.add(Document(id="log", text=TEXT))
    tome.build("associative")
    with pytest.raises(UnknownName, match=part):
        tome.entity(name)
