"""Assembled systems are kept, but not without end: a server is asked for any settings."""

from __future__ import annotations

from tomewise.tome.tome import Tome
from tomewise.types import Document


def test_the_latest_sixteen_systems_are_kept(tome: Tome):
    tome.add(Document(id="d", text="Ada Marsh put out the light."))
    for limit in range(1, 20):
        tome.ask("Who put out the light?", system="naive", settings={"limit": limit})
    tome.ask("Who put out the light?", system="naive", settings={"limit": 4})  # used again, so it stays
    tome.ask("Who put out the light?", system="naive", settings={"limit": 99})
    kept = [key[2] for key in tome._workshop.questions.systems._systems]
    assert len(kept) == 16
    assert any("4)" in settings for settings in kept)
    assert not any("5)" in settings for settings in kept if "15" not in settings)
