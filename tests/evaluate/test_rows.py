"""What a row keeps of an answer."""

from __future__ import annotations

import json

from tomewise.evaluate.rows import read_answer_fields
from tomewise.types import Answer, Event


def test_events_of_a_loop_from_outside_may_have_any_shape():
    pieces = [{"node": "p", "text": "Rain."}, {"node": ["p"], "text": "Snow."}, "Hail."]
    details = {"evidence": pieces, "value": {1}}, {"evidence": "a text", (1, 2): 3}
    kept = read_answer_fields(Answer(text="Ada", events=tuple(Event(name="odd", detail=detail) for detail in details)))
    events = json.loads(json.dumps(kept["events"]))
    assert [event["detail"] for event in events] == [
        {"evidence": [{"node": "p"}, {"node": ["p"], "text": "Snow."}, "Hail."], "value": "{1}"},
        {"evidence": "a text"},
    ]
    assert kept["texts"] == {"p": "Rain."}
