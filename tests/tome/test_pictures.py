"""Pictures of stored traces say what was cut, and the texts that a picture holds are bounded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tomewise.errors import UsageError
from tomewise.pictures import Group, Picture, PictureNode
from tomewise.tome.drawings import fill_texts
from tomewise.tome.traces import Traces
from tomewise.types import Document, Event


def test_a_trace_that_was_cut_says_what_is_missing_or_that_it_cannot_be_drawn(tome, monkeypatch):
    tome.add(Document(id="d", text="Ada rowed to the island. The keeper lit the lamp."))
    tome.ask("Who rowed?", system="hybrid+probe")
    trace = tome.traces[1]
    cut = ("texts of evidence", "texts of events after 200 characters")
    monkeypatch.setattr(Traces, "__getitem__", lambda *_: replace(trace, cut=cut))
    drawn = tome.traces.draw(1)
    left_out = "The stored trace was cut to stay small; it left out: texts of events after 200 characters."
    assert drawn.missing == (left_out,)
    events = tuple(Event(name=event.name, step=event.step) for event in trace.answer.events)
    bare = replace(trace, answer=replace(trace.answer, events=events), cut=("details of events",))
    monkeypatch.setattr(Traces, "__getitem__", lambda *_: bare)
    with pytest.raises(UsageError, match=r"hold no pool.*the trace was cut \(details of events\)"):
        tome.traces.draw(1)


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
