from __future__ import annotations

import io
from collections.abc import Iterable

import pytest
from rich.console import Console

from tomewise.events import make_event
from tomewise.store.records import Found
from tomewise.terminal.render import print_answer, print_event
from tomewise.types import Answer, Event, Statement


class NoTexts:
    """Knows no passage."""

    def find(self, ids: Iterable[str]) -> dict[str, Found]:
        return {}


def print_lines(shown: Event | Answer) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=500, highlight=False)
    if isinstance(shown, Answer):
        print_answer(shown, console)
    else:
        print_event(shown, console, NoTexts())
    return [line.rstrip() for line in out.getvalue().splitlines()]


PIECE = {"id": "p-1", "layer": "passages", "score": 0.5, "title": "", "text": "The tide\nturned."}
POOL = [{"probe": f"probe {n}", "layer": "tree", "evidence": n, "cue": "c" * 99} for n in range(20)]
MANY = [{"layer": "tree", "score": 0.5, "text": f"text {n}"} for n in range(9)]
OTHERS = "… and 4 more (`tome log` keeps them; `--json` shows them)"
ODD = [{"score": "0.5", "layer": 1, "place": "here", "text": 2}, {"score": None, "layer": None, "text": None}]


@pytest.mark.parametrize(
    ("summary", "detail", "below"),
    [
        ("[b]cut: 1", {"evidence": [PIECE], "found": 2, "cut": 1}, ["0.500 passage The tide turned."]),
        ("reason: enough", {"pool": POOL}, [f"probe {n}, tree, evidence: {n}, {'c' * 99}" for n in range(20)]),
        ("answer: nine", {"shown": ["p-1", "p-2"], "notes": ["[b]x"]}, ["note [b]x"]),
        ("many", {"evidence": MANY}, [*(f"0.500 summary text {n}" for n in range(5)), OTHERS]),
        ("odd", {"evidence": ["a text", {"text": "only a text"}], "notes": 3, "pool": "words"}, ["0.000  only a text"]),
        ("odd", {"evidence": ODD}, ["0.000 1 2", "0.000"]),
    ],
    ids=["evidence", "working memory", "notes", "many pieces", "of a loop from outside", "of odd values"],
)
def test_an_event_shows_its_summary_and_what_it_found_below(summary, detail, below):
    lines = print_lines(Event(name="of any loop", step=3, summary=summary, detail=detail))
    assert lines == [f"3 of any loop {summary}", *(f"    {line}" for line in below)]


def test_sentences_whose_quotes_a_trace_has_lost_are_printed():
    answer = Answer(text="", only_quotes=True, statements=(Statement(text="It rained.", support="quoted"),))
    with (out := Console(width=200)).capture() as printed:
        print_answer(answer, out)
    assert "1 “It rained.”" in printed.get()


def test_what_was_chosen_is_said_below_the_answer():
    first = {"chosen": "hybrid", "because": "one shot comes first", "build_would_help": []}
    second = {"chosen": "hybrid+probe", "because": "declined", "build_would_help": ["comorag", "raptor+probe"]}
    events = (*(make_event("chosen", passed_over={}, **each) for each in (first, second)),)
    assert print_lines(Answer(text="Ada", events=events, system="auto"))[2:4] == [
        "chosen: hybrid (one shot comes first), then hybrid+probe (declined)",
        "a build would help: tome build --system comorag",
    ]
