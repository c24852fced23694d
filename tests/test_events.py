from __future__ import annotations

from tomewise.events import list_facts, shorten
from tomewise.types import Evidence, Rewrite


def test_a_summary_names_values_on_one_line_and_leaves_out_the_empty_ones():
    assert (
        list_facts(probe="who\nrang", layer="tree", cue="", choice=None, cut=0)
        == "probe: who rang, layer: tree, cut: 0"
    )


def test_long_values_are_cut():
    assert shorten("a" * 9, 5) == "aaaa…"
    assert len(list_facts(cue="a" * 999)) == len("cue: ") + 300


def test_evidence_says_which_rewritten_question_brought_it():
    plain = Evidence(node="p", layer="passages", text="Oslo", score=1.0, sources=("p",))
    rewrite = Rewrite(text="population of norway", name="norway", source="s")
    brought = Evidence(node="q", layer="passages", text="Norway", score=0.5, sources=("q",), rewrite=rewrite)
    first, second = as_event_detail([plain, brought])
    assert "rewrite" not in first
    assert second["rewrite"] == {"text": "population of norway", "name": "norway", "source": "s"}
