from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.language.extractive.steering import (
    decompose,
    encode,
    filter_facts,
    find_keywords,
    fuse,
    look_up,
    probe,
    step,
    think,
)
from tomewise.language.roles import (
    DecomposeIn,
    EncodeIn,
    FilterIn,
    FuseIn,
    KeywordsIn,
    KeywordsOut,
    LookUpIn,
    ProbeIn,
    Shown,
    StepIn,
    ThinkIn,
)
from tomewise.types import Embedder

QUESTION = "Who stopped the repeater of Everard Lisle?"


def test_facts_are_kept_by_number_from_one_best_first(embedder: Embedder):
    facts = ["roses grow in June", "Mrs. Moy stopped the repeater of Everard Lisle", "Everard Lisle owned a repeater"]
    assert filter_facts(FilterIn(question=QUESTION, facts=facts), embedder).keep == [2, 3]


def test_at_most_four_facts_are_kept(embedder: Embedder):
    assert filter_facts(FilterIn(question=QUESTION, facts=[QUESTION] * 9), embedder).keep == [1, 2, 3, 4]


def test_a_pair_is_asked_for_one_by_one():
    found = decompose(DecomposeIn(question="Were Alice Munro and Harper Lee born in the same year?")).subqueries
    assert found == ["Were Alice Munro born in the same year?", "Were Harper Lee born in the same year?"]


def test_what_leads_from_one_thing_to_the_next_stays_whole():
    question = "What is the native language of the person who broke the salt law?"
    assert decompose(DecomposeIn(question=question)).subqueries == []
    probes = probe(ProbeIn(question=question, past_probes=[question], limit=3)).probes
    assert "Who broke the salt law?" in probes


def test_one_lookup_is_not_split():
    assert decompose(DecomposeIn(question="When was Sker built?")).subqueries == []
    assert decompose(DecomposeIn(question="")).subqueries == []


def test_probes_follow_names_that_the_cues_brought_up():
    found = probe(ProbeIn(question=QUESTION, cues=["Mrs. Moy wound the clock every night."]))
    assert any("Mrs. Moy" in idea for idea in found.probes)
    assert len(found.probes) == 3


@given(st.lists(st.sampled_from(["Mrs. Moy came.", "Sker is wet.", ""]), max_size=3), st.integers(0, 5))
def test_no_probe_comes_twice(cues: list[str], limit: int):
    past: list[str] = []
    for _ in range(6):
        found = probe(ProbeIn(question=QUESTION, past_probes=past, cues=cues, limit=limit)).probes
        assert len(found) <= limit
        assert not set(found) & {*past, QUESTION}
        past += found


def test_a_cue_is_what_the_evidence_says_to_the_question(embedder: Embedder):
    text = "The day was bright. Mrs. Moy stopped the repeater with flour paste. Roses grow in June."
    given_ = EncodeIn(
        question=QUESTION, probe="repeater flour", layer="passages", evidence=[Shown(label="E1", text=text)]
    )
    assert encode(given_, embedder).cue == "Mrs. Moy stopped the repeater with flour paste."


def test_a_cue_names_the_evidence_it_is_taken_from(embedder: Embedder):
    texts = ["Roses grow in June.", "Mrs. Moy stopped the repeater with flour paste.", "Snow fell."]
    shown = [Shown(label=f"E{number}", text=text) for number, text in enumerate(texts, 1)]
    given_ = EncodeIn(question=QUESTION, probe="repeater flour", layer="passages", evidence=shown)
    assert encode(given_, embedder).labels == ["E2"]
    nothing = given_.model_copy(update={"evidence": shown[:1], "probe": "flour"})
    assert encode(nothing, embedder).labels == []


def test_a_cue_is_quoted_from_evidence_that_is_only_loosely_close(embedder: Embedder):
    text = "A stranger asked the way. Snow fell on the long road to the mill."
    given_ = EncodeIn(
        question="Who stopped the watch that the owner of Tide House, a printer and a widower, wound every night?",
        probe="the winding of the watch at night by a stranger in the printing office",
        layer="passages",
        evidence=[Shown(label="E1", text=text)],
    )
    assert encode(given_, embedder).cue == "A stranger asked the way."


def test_a_cue_repeats_nothing_that_is_known(embedder: Embedder):
    known = "Mrs. Moy stopped the repeater with flour paste."
    text = f"{known} The repeater belonged to Everard Lisle."
    given_ = EncodeIn(question=QUESTION, probe="repeater", layer="passages", evidence=[Shown(label="E1", text=text)])
    assert known in encode(given_, embedder).cue
    again = given_.model_copy(update={"known": [f"The day was bright. {known}"]})
    assert encode(again, embedder).cue == "The repeater belonged to Everard Lisle."
    both = given_.model_copy(update={"known": [known, "The repeater belonged to Everard Lisle."]})
    assert encode(both, embedder).cue == ""


def test_cues_and_facts_do_not_depend_on_the_order_shown(embedder: Embedder):
    texts = [f"{name} stopped the repeater of Lisle." for name in ("Ann", "Bob", "Cy", "Di", "Ed")]
    cues, fused, kept = set(), set(), set()
    for order in permutations(texts):
        shown = [Shown(label=f"E{number}", text=text) for number, text in enumerate(order, 1)]
        cues.add(encode(EncodeIn(question=QUESTION, probe="", layer="passages", evidence=shown), embedder).cue)
        fused.add(fuse(FuseIn(question=QUESTION, cues=list(order))).cue)
        numbers = filter_facts(FilterIn(question=QUESTION, facts=list(order)), embedder).keep
        kept.add(tuple(order[number - 1] for number in numbers))
    assert (len(cues), len(fused), len(kept)) == (1, 1, 1)


def test_probes_ask_for_what_the_last_attempt_lacked(embedder: Embedder):
    found = probe(ProbeIn(question=QUESTION, missing="The evidence does not say who had flour in the kitchen."))
    assert found.probes[0] == "Everard Lisle flour kitchen"
    # What was missing need not name anything.
    plain = probe(ProbeIn(question=QUESTION))
    assert probe(ProbeIn(question=QUESTION, missing="There is no evidence for an answer.")) == plain


def test_no_cue_comes_from_evidence_about_something_else(embedder: Embedder):
    given_ = EncodeIn(question=QUESTION, probe="flour", layer="tree", evidence=[Shown(label="E1", text="Roses grow.")])
    assert encode(given_, embedder).cue == ""


def test_fused_cues_say_each_thing_once():
    cues = ["Mrs. Moy stopped the repeater.", "Everard Lisle slept. Mrs. Moy stopped the repeater."]
    fused = fuse(FuseIn(question=QUESTION, cues=cues)).cue
    assert fused.count("Mrs. Moy stopped the repeater.") == 1
    assert "Everard Lisle slept." in fused


def test_a_thought_is_a_sentence_that_no_thought_holds(embedder: Embedder):
    lines = ["Mrs. Moy wound the repeater of Everard Lisle.", "Everard Lisle lay in the store.", "Roses grow in June."]
    evidence = [Shown(label=f"E{number}", text=line) for number, line in enumerate(lines, start=1)]
    first = think(ThinkIn(question=QUESTION, evidence=evidence), embedder)
    assert first.thought == lines[0]
    second = think(ThinkIn(question=QUESTION, evidence=evidence, thoughts=[first.thought]), embedder)
    assert second.thought == lines[1]
    end = think(ThinkIn(question=QUESTION, evidence=evidence, thoughts=lines), embedder)
    assert end.concludes
    assert think(ThinkIn(question=QUESTION), embedder).concludes


def test_a_thought_concludes_where_the_evidence_suffices(embedder: Embedder):
    text = "Mrs. Moy stopped the repeater of Everard Lisle."
    given_ = ThinkIn(question=QUESTION, evidence=[Shown(label="E1", text=text)])
    assert think(given_, embedder).concludes


def test_steps_are_the_questions_inside_a_question():
    question = "What is the native language of the person who broke the salt law?"
    first = step(StepIn(question=question))
    assert (first.subquestion, first.search, first.finished) == ("Who broke the salt law?", True, False)
    given_ = StepIn(question=question, asked=[first.subquestion], findings=[f"{first.subquestion} Mohandas Gandhi"])
    second = step(given_)
    assert second.subquestion == "What is the native language of the person? (Mohandas Gandhi)"
    assert step(StepIn(question=question, asked=["a", "b"], findings=["a", "b"])).finished


def test_a_question_without_parts_is_one_step():
    question = "When was Sker built?"
    assert step(StepIn(question=question)).subquestion == question
    assert step(StepIn(question=question, asked=[question], findings=[question])).finished


def test_pages_are_chosen_by_their_gists_and_none_is_read_twice(embedder: Embedder):
    gists = ["Roses grow in June.", "Mrs. Moy stopped the repeater.", "Everard Lisle owned a repeater.", "It rained."]
    evidence = [Shown(label=f"E{number}", text=gist, kind="gist") for number, gist in enumerate(gists, start=1)]
    assert look_up(LookUpIn(question=QUESTION, evidence=evidence), embedder).labels == ["E3", "E2"]
    assert look_up(LookUpIn(question=QUESTION, evidence=evidence, limit=1), embedder).labels == ["E3"]
    assert look_up(LookUpIn(question=QUESTION, evidence=evidence, read=["E3"]), embedder).labels == ["E2"]


@pytest.mark.parametrize(
    ("question", "details", "themes"),
    [
        ("Who sold the boat to Ada Marsh in 1911?", ["Ada Marsh", "1911"], ["sold", "boat"]),
        ("How did the flood change the trade?", [], ["flood", "change", "trade"]),
        ("Who is Tom Hale?", ["Tom Hale"], []),
        ("", [], []),
    ],
)
def test_names_and_dates_are_details_and_other_words_are_themes(question: str, details: list[str], themes: list[str]):
    assert find_keywords(KeywordsIn(question=question)) == KeywordsOut(details=details, themes=themes)
