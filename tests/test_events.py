"""Events: each of the table holds plain data and has a line for people; what an event from outside holds is read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tomewise.errors import UsageError
from tomewise.events import EVENTS, is_event, list_facts, make_event, read_common, report_retrieved, shorten
from tomewise.types import Event, Evidence, Place, Rewrite

PIECE = Evidence(id="p-1", layer="tree", text="Ada", score=0.5, sources=("p-1",), title="T", place=Place(page=3))
STEP = {"subquestion": "who?", "answer": "Ada", "reasoning": "r"}
TRIED = {"answer": "Ada", "choice": "A", "missing": "when", "shown": ["p"], "cut": 2, "notes": ["n"]}
PROBE = {"probe": "who\nrang", "layer": "veridical"}
CONCERN = {"concern": "c", "subquery": "s", "place": "local", "points": ["M1"]}
REASONS = {"passed_over": {"x": "needs y"}, "build_would_help": ["x", "z"]}
SIZES = {"points": 3, "vertices_per_point": 1.5}
EMPTY = {"text": "", "integer": 0, "number": 0.0, "boolean": False, "object": {}, "list of texts": []}
# An event, what of its fields is not empty, and its summary.
EXAMPLES: list[tuple[str, dict[str, Any], str]] = [
    ("retrieved", {"evidence": [PIECE], "found": 3, "cut": 2}, "found: 3, cut: 2"),
    ("looked up", {"pages": ["a"], "all_pages": 9, "reasoning": "r"}, "pages: 1, of: 9, reasoning: r"),
    ("searched", {"query": "q", "collected": 4}, "query: q, new: 0, collected: 4"),
    ("looked", {"tool": "find", "what": "w", "result": "2 places\nmore"}, "tool: find, what: w, result: 2 places"),
    ("noted", {"notes": ["n"], "kept": ["p"]}, "note: n, kept: 1"),
    ("noted", {"finished": True}, "note: nothing to note, kept: 0, finished: yes"),
    ("recalled", {**PROBE, "evidence": [PIECE]}, "probe: who rang, in: passages"),
    ("recalled", PROBE, "probe: who rang, in: passages, nothing new"),
    ("explored", {"subquery": "s", "evidence": [PIECE] * 3, "relations": 1}, "subquery: s, relations: 1, passages: 2"),
    ("explored", {"place": "local", "entities": ["A", "B"]}, "place: local, entities: A; B, relations: 0, passages: 0"),
    ("reports chosen", {"reports": ["a", "b"], "batches": 1}, "reports: 2, batches: 1"),
    ("reports chosen", {"reports": ["a"], "rated": 5}, "reports: 1, batches: 0, rated: 5"),
    ("points found", {"reports": ["a"], "notes": ["n", "m"]}, "reports: 1, points: 2"),
    ("followed up", {"query": "q", "score": 7, "follow_ups": ["f"]}, "query: q, score: 7, follow ups: 1"),
    ("stopped", {"reason": "enough", "pool": [{"cue": "c"}]}, "reason: enough"),
    ("skipped", {"reason": "bad"}, "reason: bad"),
    ("chosen", {"chosen": "x", "because": "b"}, "chosen: x, because: b"),
    ("chosen", {"chosen": "none", **REASONS}, "chosen: none, passed over: x (needs y), build would help: x, z"),
    ("thought", {"thought": "Ada rang."}, "thought: Ada rang."),
    ("decided", STEP, "decision: from memory, subquestion: who?, answer: Ada, reasoning: r"),
    ("decided", {**STEP, "search": True}, "decision: search, subquestion: who?, answer: Ada, reasoning: r"),
    ("decided", {"subquestion": "who?"}, "decision: search, subquestion: who?"),
    ("decided", {"finished": True}, "decision: finished"),
    ("found", {"answer": "Ada", "asked": "who?"}, "subquestion: who?, answer: Ada"),
    ("found", {"asked": "who?"}, "subquestion: who?, answer: not found"),
    ("tried", {**TRIED, "kept": "k"}, "answer: Ada, choice: A, missing: when, shown: 1, cut: 2, kept: k"),
    ("forced", {"failed": True, "choice": None}, "answer: declined, shown: 0, cut: 0"),
    (
        "answered from points",
        {**TRIED, **SIZES},
        "answer: Ada, choice: A, missing: when, shown: 1, cut: 2, points: 3, vertices per point: 1.5",
    ),
    (
        "answered",
        {"answer": "Ada", "missing": "m", "evidence": [PIECE]},
        "answer: Ada, missing: m, shown: 1, notes: 0, cut: 0",
    ),
    ("answered", {"failed": True}, "answer: declined, shown: 0, notes: 0, cut: 0"),
    ("answer_part", {"text": " Ada\nrang"}, "Ada rang"),
    ("probed", {"probes": ["a", "b"]}, "probes: a; b"),
    ("probed", {}, "probes: none"),
    ("encoded", PROBE, "probe: who rang, in: passages, cue: nothing to note"),
    ("encoded", {**PROBE, "cue": "c", "support": ["p"]}, "probe: who rang, in: passages, cue: c, rests on: 1"),
    ("fused", {}, "cue: nothing to note"),
    ("updated", {"units": 2}, "searches remembered: 2, passages summaries and episodes: 0"),
    ("planned", {"concerns": [CONCERN]}, "sufficient: no, subqueries: s (local)"),
    ("planned", {"sufficient": True}, "sufficient: yes, subqueries: none"),
    ("evolved", {"inserted": [{}], "notes": ["n", "m"]}, "inserted: 1, updated: 0, says: n m"),
    ("merged", {"merged": [{"point": "M3", "parts": "M1, M2"}], "notes": ["n"]}, "merged: M1, M2 into M3, says: n"),
    ("merged", {}, "merged: nothing"),
    ("divided", {"chunks": 2, "tokens": 300}, "chunks: 2, tokens: 300"),
    ("reading planned", {"questions": ["a", "b"], "nets": ["c"]}, "questions: a; b, nets: c"),
    ("reading planned", {}, "no questions"),
    ("extracted", {"chunk": "c", "notes": ["n"]}, "chunk: c, facts: 1"),
    ("extracted", {"chunk": "c", "not_found": 2}, "chunk: c, facts: 0, not found: 2"),
    ("read", {"chunk": "c", "notes": ["n"]}, "chunk: c, note: n"),
    ("unread", {"chunk": "c"}, "chunk: c"),
    ("ledger updated", {"pool": [{"kind": "fact"}, {"kind": "fact"}]}, "questions: 0, facts: 2, inferences: 0"),
    ("recovered", {"open": 2, "tokens": 300}, "open: 2, tokens: 300"),
    (
        "context lowered",
        {"context": 1200, "usual": 6000, "reads": 12.5},
        "1,200 tokens of evidence in place of 6,000: the model reads 12 a second (the setting `context` of the system "
        "says how many)",
    ),
    ("rephrased", {"asked": "why?", "question": "why?"}, "asked: why?, question: unchanged"),
    ("rephrased", {"asked": "why?", "question": "why so?"}, "asked: why?, question: why so?"),
    ("resumed", {"session": "s", "question": 2, "known": ["n"]}, "session: s, question: 2, known: 1"),
    ("session", {"notes": ["n"], "dropped": ["d", "e"]}, "notes taken: 1, passages taken: 0, dropped: d; e"),
    ("waiting", {"seconds": 1.6, "reason": "loading"}, "waiting up to 2 s: loading"),
    ("waiting", {"seconds": 1.6, "reason": "429", "next": 2, "tries": 5}, "try 2 of 5 in 2 s: 429"),
    ("waiting", {"seconds": 9, "reason": "429", "asked": 9, "tries": 5}, "try 0 of 5 in 9 s, as the server asks: 429"),
    ("asked again", {"change": "to go on", "reason": "cut"}, "asked again to go on: cut"),
    ("fallbacks", {"counts": {"reply skipped": 2}}, "reply skipped: 2"),
]


@pytest.mark.parametrize(("name", "given", "summary"), EXAMPLES, ids=[name for name, *_ in EXAMPLES])
def test_an_event_of_the_table_has_a_line_and_is_known_by_its_plain_data(name, given, summary):
    forms = {field: about.partition(":")[0] for field, about in EVENTS[name].fields.items()}
    needed = (field for field, form in forms.items() if field == "evidence" or not form.startswith("optional"))
    event = make_event(name, 3, **{**{field: EMPTY.get(forms[field], []) for field in needed}, **given})
    assert (event.name, event.step, event.summary) == (name, 3, summary)
    assert json.loads(json.dumps(event.detail)) == event.detail
    assert is_event(event, "else", name)
    for field in forms:
        assert not is_event(Event(name=name, detail={**event.detail, field: {1}}), name), "a field of another form"


def test_each_event_of_the_table_has_an_example():
    assert {name for name, *_ in EXAMPLES} == EVENTS.keys()


def test_evidence_is_plain_data():
    rewrite = {"text": "again", "name": "Ada", "source": "p-2"}
    asked = replace(PIECE, place=Place(), rewrite=Rewrite(**rewrite))
    event = report_retrieved([PIECE, asked], [PIECE] * 5, 2)
    plain = {"id": "p-1", "layer": "tree", "score": 0.5, "title": "T", "place": {"page": 3}, "text": "Ada"}
    again = {**plain, "place": {}, "rewrite": rewrite}
    assert event == make_event("retrieved", 2, evidence=[plain, again], found=5, cut=3)
    assert read_common(event).evidence == (replace(PIECE, sources=()), replace(asked, sources=()))


def test_what_the_table_does_not_have_is_refused():
    with pytest.raises(UsageError, match="no event 'rung' is in the table"):
        make_event("rung")
    with pytest.raises(UsageError, match="'stopped' has no field 'why': it has reason, pool"):
        make_event("stopped", why="x")
    with pytest.raises(UsageError, match="'found' needs the field 'asked'"):
        make_event("found", answer="Ada")


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
    assert all(isinstance(piece, Evidence) for piece in common.evidence)
    assert all(isinstance(note, str) for note in common.notes)
    assert all(isinstance(row, dict) for row in common.pool)


def test_odd_values_of_a_piece_are_left_out():
    odd = {"id": 4, "score": 10**400, "place": {"chapter": 5}, "rewrite": "no", "text": None, "more": 1}
    good = {"id": "n", "score": 1, "place": {"page": 3}, "rewrite": {"text": "again"}, "text": "Ada"}
    first, second = read_common(Event(name="odd", detail={"evidence": [odd, "text", good]})).evidence
    nothing = Evidence(id="", layer="", text="", score=0.0, sources=())
    assert first == nothing
    assert second == replace(nothing, id="n", score=1.0, place=Place(page=3), rewrite=Rewrite(text="again"), text="Ada")


def test_a_summary_names_values_on_one_line_and_leaves_out_the_empty_ones_and_the_ends_of_long_ones():
    facts = list_facts(probe="who\nrang", layer="tree", cue="", choice=None, cut=0, shown=[1, 2])
    assert facts == "probe: who rang, layer: tree, cut: 0, shown: 2"
    assert shorten("a" * 9, 5) == "aaaa…"
    assert len(list_facts(cue="a" * 999)) == len("cue: ") + 300
