"""What the extractive model plays while a loop searches, reads and remembers: an example of each play."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.language.extractive.conftest import show

from tomewise.embedding.hash import HashEmbedder
from tomewise.language import roles
from tomewise.language.extractive.plays import EMBEDDING_PLAYS, PLAYS

EMBEDDER = HashEmbedder()
QUESTION = "Who stopped the repeater of Everard Lisle?"
LAW = "What is the native language of the person who broke the salt law?"
STOPPED = "Mrs. Moy stopped the repeater with flour paste."


def probe(question=QUESTION, **fields):
    return PLAYS["probe"](roles.ProbeIn(question=question, **fields)).probes


def encode(evidence, probe="repeater flour", **fields):
    given_ = roles.EncodeIn(question=QUESTION, probe=probe, layer="passages", evidence=evidence, **fields)
    return EMBEDDING_PLAYS["encode"](given_, EMBEDDER)


def filter_facts(facts):
    return EMBEDDING_PLAYS["filter_facts"](roles.FilterIn(question=QUESTION, facts=facts), EMBEDDER).keep


def fuse(cues):
    return PLAYS["fuse"](roles.FuseIn(question=QUESTION, cues=cues)).cue


def step(question, **fields):
    return PLAYS["step"](roles.StepIn(question=question, **fields))


def test_facts_are_kept_by_number_from_one_best_first_and_at_most_four():
    facts = ["roses grow in June", "Mrs. Moy stopped the repeater of Everard Lisle", "Everard Lisle owned a repeater"]
    assert filter_facts(facts) == [2, 3]
    assert (
        len(filter_facts([f"{name} stopped the repeater of Lisle" for name in ("Ann", "Bob", "Cy", "Di", "Ed")])) == 4
    )


def test_a_pair_is_asked_for_one_by_one_and_nothing_else_is_split():
    pair, *others = (
        PLAYS["decompose"](roles.DecomposeIn(question=question)).subqueries
        for question in ("Were Alice Munro and Harper Lee born in the same year?", LAW, "When was Sker built?", "")
    )
    assert pair == ["Were Alice Munro born in the same year?", "Were Harper Lee born in the same year?"]
    assert others == [[], [], []]


def test_probes_follow_the_parts_of_a_question_what_was_missing_and_names_that_the_cues_brought_up():
    assert "Who broke the salt law?" in probe(LAW, past_probes=[LAW], limit=3)
    assert any("Mrs. Moy" in idea for idea in probe(cues=["Mrs. Moy wound the clock every night."]))
    missing = "The evidence does not say who had flour in the kitchen."
    assert probe(missing=missing)[0] == "Everard Lisle flour kitchen"


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["Mrs. Moy came.", "Sker is wet.", ""]), max_size=3), st.integers(0, 5))
def test_no_probe_comes_twice(cues, limit):
    past = []
    for _ in range(6):
        found = probe(past_probes=past, cues=cues, limit=limit)
        assert len(found) <= limit
        assert not set(found) & {*past, QUESTION}
        past += found


def test_a_cue_is_what_the_evidence_says_to_the_question_and_repeats_nothing_that_is_known():
    found = encode(show("Roses grow in June.", f"The day was bright. {STOPPED}", "Snow fell."))
    assert (found.cue, found.labels) == (STOPPED, ["E2"])
    assert encode(show("Roses grow in June.")).cue == ""
    owner = "The repeater belonged to Everard Lisle."
    assert encode(show(f"{STOPPED} {owner}"), "repeater", known=[STOPPED]).cue == owner
    assert fuse([STOPPED, f"Everard Lisle slept. {STOPPED}"]).count(STOPPED) == 1


def test_steps_are_the_questions_inside_a_question():
    first = step(LAW)
    assert (first.subquestion, first.search, first.finished) == ("Who broke the salt law?", True, False)
    second = step(LAW, asked=[first.subquestion], findings=[f"{first.subquestion} Mohandas Gandhi"])
    assert second.subquestion == "What is the native language of the person? (Mohandas Gandhi)"
    assert step(LAW, asked=["a", "b"], findings=["a", "b"]).finished


@pytest.mark.parametrize(("fields", "labels"), [({}, ["E3", "E2"]), ({"limit": 1}, ["E3"]), ({"read": ["E3"]}, ["E2"])])
def test_pages_are_chosen_by_their_gists_and_none_is_read_twice(fields, labels):
    gists = ["Roses grow in June.", "Mrs. Moy stopped the repeater.", "Everard Lisle owned a repeater.", "It rained."]
    given_ = roles.LookUpIn(question=QUESTION, evidence=show(*gists, kind="gist"), **fields)
    assert EMBEDDING_PLAYS["look_up"](given_, EMBEDDER).labels == labels


def test_names_and_dates_are_details_and_other_words_are_themes():
    found = PLAYS["keywords"](roles.KeywordsIn(question="Who sold the boat to Ada Marsh in 1911?"))
    assert found == roles.KeywordsOut(details=["Ada Marsh", "1911"], themes=["sold", "boat"])


# ---------------------------------------------------------------- a text read in order: plan, facts, joins, note

MAN = "Who was the man that Pip met in the garden?"
GARDEN = "In the garden of Satis House, Pip met a pale young gentleman."
RIVER = "Joe mended the gate by the river."
MENDED = "Who mended the gate by the river?"


def test_facts_are_sentences_of_the_passages_in_their_order_also_to_the_questions_of_the_plan():
    assert "What does the text say of Pip?" in PLAYS["plan_reading"](roles.PlanReadingIn(question=MAN)).nets
    evidence = show(GARDEN, RIVER)
    for questions, labels in (([], ["E1"]), ([MENDED], ["E1", "E2"])):
        given_ = roles.NotesIn(question=MAN, evidence=evidence, questions=questions)
        assert [fact.label for fact in EMBEDDING_PLAYS["extract_notes"](given_, EMBEDDER).facts] == labels
        known = [roles.Entry(label="F1", text=GARDEN)]
        marked = roles.MarkIn(**given_.model_dump(), known=known)
        assert [fact.label for fact in EMBEDDING_PLAYS["mark_facts"](marked, EMBEDDER).facts] == labels[1:]


def test_facts_that_share_a_name_are_joined_once():
    texts = ("Herbert Pocket fought in the garden.", RIVER, "Pip met Herbert Pocket again in London.")
    facts = [roles.Entry(label=f"F{number}", text=text) for number, text in enumerate(texts, 1)]
    (drawn,) = PLAYS["infer_notes"](roles.InferIn(question=MAN, facts=facts)).inferences
    assert drawn.rests_on == [1, 3]
    known = roles.InferIn(question=MAN, facts=facts, inferences=[roles.Entry(label="I1", text=drawn.inference)])
    assert PLAYS["infer_notes"](known).inferences == []


def test_a_question_whose_words_stand_in_one_fact_is_settled_and_a_note_keeps_what_is_near_to_its_question():
    facts = [roles.Entry(label="F1", text=RIVER)]
    refined = roles.RefineIn(question=MAN, questions=[MENDED, "Who was the man?"], facts=facts)
    assert PLAYS["refine_questions"](refined).answered == PLAYS["update_ledger"](refined).answered == [1]
    given_ = roles.CarryIn(question=MAN, note=GARDEN, evidence=show(RIVER, "Pip left the garden."))
    assert PLAYS["carry_note"](given_).note == f"{GARDEN} Pip left the garden."
    assert PLAYS["carry_note"](given_.model_copy(update={"words": 5})).note == "Pip left the garden."


# ---------------------------------------------------------------- a memory of points

WHY = "Why did Mrs. Moy stop the repeater of Everard Lisle?"
MOY = roles.PointShown(id="M1", description="Mrs. Moy stopped the repeater.", entities=["Mrs. Moy", "repeater"])
SLEPT = roles.PointShown(id="M2", description="Everard Lisle slept.", entities=["Everard Lisle"])


def test_plans_look_around_what_is_known_and_beyond_it_until_every_query_was_searched():
    searched = [WHY]
    found = PLAYS["plan"](roles.PlanIn(question=WHY, points=[MOY, SLEPT], searched=searched))
    places = [(concern.place, bool(concern.points)) for concern in found.concerns]
    assert places == [("local", True), ("global", False), ("local", True)]
    for _ in range(20):
        searched += [concern.subqueries[0] for concern in found.concerns]
        found = PLAYS["plan"](roles.PlanIn(question=WHY, points=[MOY, SLEPT], searched=searched))
    assert (found.sufficient, found.concerns) == (True, [])


def test_a_sentence_that_no_point_says_becomes_a_point_over_the_names_in_it():
    text = "Mrs. Moy feared the repeater as it woke her at night."
    repeater = roles.Shown(label="E9", kind="entity", title="repeater", text="repeater")
    evidence = [*show("Roses grow.", f"{MOY.description} {text}"), repeater]
    given_ = roles.EvolveIn(question=WHY, subqueries=[WHY], points=[MOY], evidence=evidence)
    (point,) = EMBEDDING_PLAYS["evolve"](given_, EMBEDDER).insertions
    assert (point.description, point.entities, point.evidence) == (text, ["repeater", "Mrs. Moy"], ["E2"])


def test_points_that_share_their_entities_are_merged_each_once():
    points = [roles.PointShown(id=f"M{n}", description=f"She did {n}.", entities=MOY.entities) for n in range(1, 4)]
    (merge,) = PLAYS["merge_points"](roles.MergePointsIn(question=WHY, points=[*points, SLEPT])).merges
    assert merge.points == ["M1", "M2"]
    assert merge.description == "She did 1. She did 2."
