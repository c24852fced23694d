"""Events: each class prints what it holds, and comes back from what a trace stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tomewise.outgoing import answer_models

from tomewise.events import CLASSES, Piece, Stopped, TypedEvent, list_facts, read_common, restore_event, shorten
from tomewise.types import Event, Place, Rewrite

PLAIN = st.one_of(st.text(), st.integers(), st.booleans(), st.lists(st.text(), max_size=2))
ALL = [made for classes in CLASSES.values() for made in classes]


def find_strategy(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type; what a field says nothing about is plain data."""
    if hint is Any:
        return PLAIN
    if get_origin(hint) is Sequence:
        return st.lists(find_strategy(get_args(hint)[0]), max_size=3)
    if get_origin(hint) is Mapping:
        return st.dictionaries(st.text(), find_strategy(get_args(hint)[1]), max_size=3)
    if hint is float:
        return st.floats(allow_nan=False)
    if is_dataclass(hint) and hint is not Place:
        hints = get_type_hints(hint)
        made = {each.name: find_strategy(hints[each.name]) for each in fields(hint) if each.init}
        return st.builds(hint, **made)
    if type(None) in get_args(hint):
        return st.none() | st.one_of(*map(find_strategy, set(get_args(hint)) - {type(None)}))
    return st.from_type(hint)


def store(event: Event) -> Event:
    """The event as a trace gives it back before it has a class."""
    stored = {"name": event.name, "step": event.step, "summary": event.summary}
    return Event(**json.loads(json.dumps({**stored, "detail": answer_models.write_plain(event.detail)})))


@pytest.mark.parametrize("made", ALL, ids=lambda made: made.__name__)
@settings(max_examples=12)
@given(data=st.data())
def test_every_class_comes_back_from_what_it_prints(made: type[TypedEvent], data: st.DataObject) -> None:
    event = data.draw(find_strategy(made))
    restored = restore_event(store(event))
    assert type(restored) is made
    assert restored == event
    assert answer_models.Event.of(restored).write() == answer_models.Event.of(event).write()


def test_a_detail_that_does_not_fit_leaves_a_plain_event():
    for detail in ({}, {"reason": 3}, {"pool": []}, {"reason": None, "more": 1}):
        event = Event(name="stopped", step=2, summary="reason: x", detail=detail)
        assert restore_event(event) is event


def test_a_detail_that_was_shortened_or_comes_from_another_version_is_printed_as_it_was_stored():
    stored = Event(name="stopped", summary="reason: a longer one", detail={"reason": "a…", "later": [1]})
    restored = restore_event(stored)
    assert isinstance(restored, Stopped)
    assert restored.reason == "a…"
    assert answer_models.Event.of(restored).write() == answer_models.Event.of(stored).write()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KNOWN = ("evidence", "notes", "pool", "found", "cut")
ODD_PIECES = st.lists(
    st.dictionaries(st.sampled_from(["id", "score", "place", "text", "layer", "title", "rewrite"]), JSON), max_size=3
)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(KNOWN), JSON | ODD_PIECES))
def test_the_fields_that_any_event_may_have_are_read_whatever_they_hold(detail: dict[str, Any]) -> None:
    common = read_common(Event(name="odd", detail=detail))
    assert all(isinstance(piece, Piece) for piece in common.evidence)
    assert all(isinstance(note, str) for note in common.notes)
    assert all(isinstance(row, dict) for row in common.pool)
    assert all(isinstance(count, int | None) for count in (common.found, common.cut))


def test_odd_values_of_a_piece_are_left_out():
    odd = {"id": 4, "score": 10**400, "place": {"chapter": 5}, "rewrite": "no", "text": None, "more": 1}
    good = {"id": "n", "score": 1, "place": {"page": 3}, "rewrite": {"text": "again"}, "text": "Ada"}
    first, second = read_common(Event(name="odd", detail={"evidence": [odd, "text", good]})).evidence
    assert first == Piece(id="")
    assert second == Piece(id="n", score=1.0, place=Place(page=3), rewrite=Rewrite(text="again"), text="Ada")


def test_a_summary_names_values_on_one_line_and_leaves_out_the_empty_ones_and_the_ends_of_long_ones():
    facts = list_facts(probe="who\nrang", layer="tree", cue="", choice=None, cut=0)
    assert facts == "probe: who rang, layer: tree, cut: 0"
    assert shorten("a" * 9, 5) == "aaaa…"
    assert len(list_facts(cue="a" * 999)) == len("cue: ") + 300
