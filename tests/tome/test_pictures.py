"""The texts that a picture holds are bounded."""

from __future__ import annotations

from tomewise.pictures import Group, Picture, PictureNode
from tomewise.tome.drawings import fill_texts
from tomewise.types import Document


def test_the_texts_of_a_picture_are_bounded(tome):
    tome.add(Document(id="d", text="Ada rowed to the island. " * 400))
    passages = tuple(passage.id for passage in tome.store.passages().values())
    node = PictureNode(id="n", label="n", group="g", passages=passages)
    picture = Picture(kind="graph", title="T", nodes=(node,), groups=(Group(id="g", label="G"),))
    whole = fill_texts(picture, tome.store)
    assert len(whole.passages) == len(passages) > 2
    assert whole.missing == ()
    cut = fill_texts(picture, tome.store, longest=100, room=250)
    assert [len(passage.text) for passage in cut.passages] == [100, 100]
    assert cut.missing == (f"The texts of {len(passages) - 2:,} of {len(passages):,} pieces of evidence are not here.",)
