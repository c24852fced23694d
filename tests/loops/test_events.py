from __future__ import annotations

from tomewise.loops.events import list_facts, shorten


def test_a_summary_names_values_on_one_line_and_leaves_out_the_empty_ones():
    assert (
        list_facts(probe="who\nrang", layer="tree", cue="", choice=None, cut=0)
        == "probe: who rang, layer: tree, cut: 0"
    )


def test_long_values_are_cut():
    assert shorten("a" * 9, 5) == "aaaa…"
    assert len(list_facts(cue="a" * 999)) == len("cue: ") + 300
