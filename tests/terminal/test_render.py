from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console

from tomewise.events import Chosen
from tomewise.store.records import Found
from tomewise.terminal.render import cut_notes, describe_choices, print_answer, print_event
from tomewise.types import Answer, Event


class NoTexts:
    """Knows no passage."""

    def find(self, ids: Iterable[str]) -> dict[str, Found]:
        return {}


def print_lines(event: Event) -> list[str]:
    out = io.StringIO()
    print_event(event, Console(file=out, width=500, highlight=False), NoTexts())
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_an_event_shows_its_summary_and_its_evidence_below():
    piece = {"node": "p-1", "layer": "passages", "score": 0.5, "title": "", "text": "The tide\nturned."}
    event = Event(name="of any loop", summary="found: 2, [b]cut: 1", detail={"evidence": [piece], "found": 2, "cut": 1})
    assert print_lines(event) == ["0 of any loop found: 2, [b]cut: 1", "    0.500 passage The tide turned."]


def test_a_working_memory_is_shown_whole():
    pool = [{"probe": f"probe {n}", "layer": "tree", "evidence": n, "cue": "c" * 99} for n in range(20)]
    lines = print_lines(Event(name="stopped", step=3, summary="reason: enough", detail={"pool": pool}))
    assert lines[0] == "3 stopped reason: enough"
    assert lines[1:] == [f"    probe {n}, tree, evidence: {n}, {'c' * 99}" for n in range(20)]


def test_notes_are_shown_and_other_detail_is_not():
    detail = {"shown": ["p-1", "p-2"], "notes": ["[b]x"]}
    event = Event(name="tried", step=1, summary="answer: nine", detail=detail)
    assert print_lines(event) == ["1 tried answer: nine", "    note [b]x"]


def test_of_many_pieces_the_best_are_shown_and_the_others_counted():
    pieces = [{"layer": "tree", "score": 0.5, "text": f"text {n}"} for n in range(9)]
    lines = print_lines(Event(name="recalled", detail={"evidence": pieces}))
    assert len(lines) == 1 + 5 + 1
    assert lines[-1] == "    … and 4 more (`tome log` keeps them; `--json` shows them)"


def test_any_event_can_say_what_was_cut():
    events = (Event(name="of any loop", detail={"found": 3, "cut": 1}), Event(name="tried", detail={"cut": 1}))
    assert cut_notes(Answer(text="x", events=events)) == [
        "1 of 3 passages did not fit and were not read for this answer."
    ]


def test_a_part_that_could_not_be_read_is_named_beside_the_answer():
    out = io.StringIO()
    answer = Answer(text="Ada", missing="not read: story.md, part 2 of 3")
    print_answer(answer, (), Console(file=out, width=500, highlight=False))
    assert "missing: not read: story.md, part 2 of 3" in out.getvalue()


def make_choice(chosen, because, passed_over=None, builds=()):
    return Chosen(chosen=chosen, because=because, passed_over=passed_over or {}, build_would_help=builds)


def test_what_was_chosen_is_said_below_the_answer():
    events = (
        make_choice("hybrid", "one shot comes first"),
        make_choice("hybrid+probe", "declined", {"comorag": "needs tree"}, ["comorag", "raptor+probe"]),
    )
    out = io.StringIO()
    print_answer(Answer(text="Ada", events=events, system="auto"), (), Console(file=out, width=500, highlight=False))
    assert out.getvalue().splitlines()[1:3] == [
        "chosen: hybrid (one shot comes first), then hybrid+probe (declined)",
        "a build would let it choose comorag, raptor+probe: tome build --system comorag",
    ]


def test_where_nothing_could_be_chosen_the_reasons_are_said():
    events = (
        make_choice("none", "the question asks for the whole text ('how often')", {"cosmir": "states no upper limit"}),
        make_choice("hybrid", "one shot comes first"),
        make_choice("none", "declined", {"comorag": "may take 33 calls, 4 are left"}),
    )
    assert describe_choices(Answer(text="", events=events))[1:] == [
        "passed over: cosmir (states no upper limit); comorag (may take 33 calls, 4 are left)"
    ]
    assert describe_choices(Answer(text="x", events=(Event(name="chosen", detail={"notes": []}),))) == []


def test_an_answer_that_was_forced_and_not_given_is_not_called_forced():
    def show(answer):
        out = io.StringIO()
        print_answer(answer, (), Console(file=out, width=500, highlight=False))
        return out.getvalue()

    declined = show(Answer(text="", resolved=False, forced=True, supported="none", missing="who it was"))
    assert "not answered: who it was" in declined
    assert "forced to answer" not in declined
    assert "asked for a guess too, and gave none" in declined
    assert "forced to answer" in show(Answer(text="Ada", forced=True))


def test_an_event_of_a_loop_from_outside_may_have_any_shape():
    detail = {"evidence": ["a text", {"text": "only a text"}], "notes": 3, "pool": "words"}
    assert print_lines(Event(name="odd", detail=detail)) == ["0 odd", "    0.000  only a text"]
    pieces = [{"score": "0.5", "layer": 1, "place": "here", "text": 2}, {"score": None, "layer": None, "text": None}]
    assert print_lines(Event(name="odd", detail={"evidence": pieces})) == ["0 odd", "    0.000 1 2", "    0.000"]
