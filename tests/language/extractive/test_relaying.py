"""The extractive model reads a text in order: its plan, its facts, its joins, its note."""

from __future__ import annotations

from tomewise.embedding.hash import HashEmbedder
from tomewise.language.extractive import relaying
from tomewise.language.roles import CarryIn, Entry, InferIn, NotesIn, PlanReadingIn, RefineIn, Shown

QUESTION = "Who was the man that Pip met in the garden?"
GARDEN = "In the garden of Satis House, Pip met a pale young gentleman."
RIVER = "Joe mended the gate by the river."


def test_a_plan_has_the_parts_of_the_question_and_asks_about_its_names():
    plan = relaying.plan_reading(PlanReadingIn(question=QUESTION))
    assert plan.questions
    assert "What does the text say of Pip?" in plan.nets
    assert relaying.plan_reading(PlanReadingIn(question=QUESTION, nets=0)).nets == []


def test_facts_are_sentences_of_the_passages_in_their_order():
    evidence = [
        Shown(label="E1", text=GARDEN),
        Shown(label="E2", text="Pip saw the man in the garden again."),
        Shown(label="E3", text=RIVER),
    ]
    facts = relaying.extract_notes(NotesIn(question=QUESTION, evidence=evidence), HashEmbedder()).facts
    assert [(fact.label, fact.quote) for fact in facts] == [("E1", GARDEN), ("E2", evidence[1].text)]
    asked = NotesIn(question=QUESTION, questions=["Who mended the gate by the river?"], evidence=evidence)
    assert RIVER in [fact.quote for fact in relaying.extract_notes(asked, HashEmbedder()).facts]


def test_facts_that_share_a_name_are_joined_once():
    facts = [
        Entry(label="F1", text="Herbert Pocket fought in the garden."),
        Entry(label="F2", text=RIVER),
        Entry(label="F3", text="Pip met Herbert Pocket again in London."),
    ]
    given = InferIn(question=QUESTION, facts=facts)
    (drawn,) = relaying.infer_notes(given).inferences
    assert drawn.rests_on == ["F1", "F3"]
    known = InferIn(question=QUESTION, facts=facts, inferences=[Entry(label="I1", text=drawn.inference)])
    assert relaying.infer_notes(known).inferences == []


def test_a_question_whose_words_stand_in_one_fact_is_settled():
    asked = ["Who mended the gate by the river?", "Who was the man?"]
    given = RefineIn(question=QUESTION, questions=asked, facts=[Entry(label="F1", text=RIVER)])
    refined = relaying.refine_questions(given)
    assert refined.answered == [1]
    full = RefineIn(question=QUESTION, questions=asked[1:], facts=[Entry(label="F1", text=GARDEN)], limit=1)
    assert relaying.refine_questions(full).new == []
    free = RefineIn(question=QUESTION, questions=asked[1:], facts=[Entry(label="F1", text=GARDEN)])
    assert relaying.refine_questions(free).new == ["Who or what is Satis House?"]


def test_a_note_keeps_what_is_near_to_the_question_and_has_room():
    evidence = [Shown(label="E1", text=RIVER), Shown(label="E2", text="Pip left the garden.")]
    note = relaying.carry_note(CarryIn(question=QUESTION, note=GARDEN, evidence=evidence)).note
    assert note == f"{GARDEN} Pip left the garden."
    short = relaying.carry_note(CarryIn(question=QUESTION, note=GARDEN, evidence=evidence, words=5)).note
    assert short == "Pip left the garden."
