from __future__ import annotations

import io

from rich.console import Console

from tomewise.terminal.render import print_event
from tomewise.types import Event


def print_lines(event: Event) -> list[str]:
    out = io.StringIO()
    print_event(event, Console(file=out, width=500, highlight=False))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_step_shows_its_evidence_below():
    piece = {"node": "p-1", "layer": "passages", "score": 0.5, "title": "", "text": "The tide\nturned."}
    event = Event(name="retrieved", detail={"evidence": [piece], "found": 2, "cut": 1})
    assert print_lines(event) == ["0 retrieved found: 2, cut: 1", "    0.500 passages The tide turned."]


def test_a_loop_that_stops_shows_its_whole_pool():
    pool = [{"probe": f"probe {n}", "layer": "tree", "evidence": n, "cue": "c" * 99} for n in range(20)]
    lines = print_lines(Event(name="stopped", step=3, detail={"reason": "no new probe was thought of", "pool": pool}))
    assert lines[0] == "3 stopped reason: no new probe was thought of"
    assert lines[1:] == [
        f"    probe {n} tree, {n} piece{'' if n == 1 else 's'} of evidence {'c' * 99}" for n in range(20)
    ]


def test_an_attempt_shows_no_ids_and_no_empty_values():
    detail = {"answer": "nine", "choice": None, "failed": False, "shown": ["p-1", "p-2"], "cut": 0, "notes": ["[b]x"]}
    assert print_lines(Event(name="tried", step=1, detail=detail)) == [
        "1 tried answer: nine, shown: 2, cut: 0",
        "    note [b]x",
    ]


def test_a_declined_answer_an_empty_cue_and_an_empty_recall_are_shown_in_words():
    declined = {"answer": "*", "choice": None, "failed": True, "shown": [], "cut": 0, "notes": []}
    assert print_lines(Event(name="tried", detail=declined)) == ["0 tried answer: declined, shown: 0, cut: 0"]
    encoded = Event(name="encoded", detail={"probe": "who", "layer": "tree", "cue": ""})
    assert print_lines(encoded) == ["0 encoded probe: who, layer: tree, cue: nothing to note"]
    encoded = Event(name="encoded", detail={"probe": "who", "cue": "Ada", "support": ["p-1", "p-2"]})
    assert print_lines(encoded) == ["0 encoded probe: who, cue: Ada, support: 2"]
    recalled = Event(name="recalled", detail={"probe": "who", "layer": "tree", "evidence": []})
    assert print_lines(recalled) == ["0 recalled probe: who, layer: tree", "    nothing new"]


def test_of_many_pieces_the_best_are_shown_and_the_others_counted():
    pieces = [{"layer": "tree", "score": 0.5, "text": f"text {n}"} for n in range(9)]
    lines = print_lines(Event(name="recalled", detail={"probe": "who", "layer": "tree", "evidence": pieces}))
    assert len(lines) == 1 + 5 + 1
    assert lines[-1] == "    … and 4 more (`tome show --traces 1 --json` has all)"
