"""What an answering call was shown: whole passages, and words taken out of passages."""

from __future__ import annotations

from tests.stories import put_texts

from tomewise.evaluate.items import RankedPassage
from tomewise.evaluate.memories import Memory
from tomewise.loops.origins import EXTRACTS
from tomewise.types import Evidence


def test_an_extract_shows_its_words_and_not_its_passage(tome):
    put_texts(tome.store, tome.kit.embedder, "story", "It rained.", "Ada kept the light. It rained. She slept.")
    first, second = tome.store.passages().values()
    places = {
        passage.id: RankedPassage(id=passage.id, document=passage.document, start=passage.start, end=passage.end)
        for passage in (first, second)
    }
    evidence = [
        Evidence(node="x1", layer=EXTRACTS, text="Ada kept … She slept", score=1.0, sources=(second.id,)),
        Evidence(node=first.id, layer="passages", text=first.text, score=1.0, sources=(first.id,)),
        Evidence(node="s1", layer="tree", text="A summary.", score=1.0, sources=(first.id,)),
    ]
    shown = Memory(tome, {}, {}, places).find_shown(evidence)
    whole = tome.store.document("story").text
    assert [whole[place.start : place.end] for place in shown] == ["It rained.", "Ada kept", "She slept"]
