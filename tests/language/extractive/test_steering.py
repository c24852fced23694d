"""What the extractive model plays while a loop searches, reads and remembers."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.language.extractive.conftest import show

from tomewise.embedding.hash import HashEmbedder
from tomewise.language.extractive import relaying, steering
from tomewise.language.extractive.hypergraph_plays import evolve, merge_points, plan
from tomewise.language.extractive.rephrasing import rephrase
from tomewise.language.roles import (
    CarryIn,
    DecomposeIn,
    EncodeIn,
    Entry,
    EvolveIn,
    FilterIn,
    FuseIn,
    InferIn,
    KeywordsIn,
    KeywordsOut,
    LookUpIn,
    MergePointsIn,
    NotesIn,
    PlanIn,
    PlanReadingIn,
    PointShown,
    ProbeIn,
    RefineIn,
    RephraseIn,
    Shown,
    StepIn,
    ThinkIn,
    TurnShown,
)

EMBEDDER = HashEmbedder()
QUESTION = "Who stopped the repeater of Everard Lisle?"
LAW = "What is the native language of the person who broke the salt law?"
STOPPED = "Mrs. Moy stopped the repeater with flour paste."


def probe(question=QUESTION, **fields):
    return steering.probe(ProbeIn(question=question, **fields)).probes


def encode(evidence, probe="repeater flour", question=QUESTION, **fields):
    given_ = EncodeIn(question=question, probe=probe, layer="passages", evidence=evidence, **fields)
    return steering.encode(given_, EMBEDDER)


def filter_facts(facts):
    return steering.filter_facts(FilterIn(question=QUESTION, facts=facts), EMBEDDER).keep


def fuse(cues):
    return steering.fuse(FuseIn(question=QUESTION, cues=cues)).cue


def decompose(question):
    return steering.decompose(DecomposeIn(question=question)).subqueries


def step(question, **fields):
    return steering.step(StepIn(question=question, **fields))


def think(evidence, *thoughts):
    return steering.think(ThinkIn(question=QUESTION, evidence=evidence, thoughts=list(thoughts)), EMBEDDER)


def test_facts_are_kept_by_number_from_one_best_first_and_at_most_four():
    facts = ["roses grow in June", "Mrs. Moy stopped the repeater of Everard Lisle", "Everard Lisle owned a repeater"]
    assert filter_facts(facts) == [2, 3]
    assert filter_facts([QUESTION] * 9) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "Were Alice Munro and Harper Lee born in the same year?",
            ["Were Alice Munro born in the same year?", "Were Harper Lee born in the same year?"],
        ),
        (LAW, []),  # what leads from one thing to the next stays whole
        ("When was Sker built?", []),
        ("", []),
    ],
)
def test_a_pair_is_asked_for_one_by_one_and_nothing_else_is_split(question, parts):
    assert decompose(question) == parts


def test_probes_follow_the_parts_of_a_question_and_names_that_the_cues_brought_up():
    assert "Who broke the salt law?" in probe(LAW, past_probes=[LAW], limit=3)
    found = probe(cues=["Mrs. Moy wound the clock every night."])
    assert any("Mrs. Moy" in idea for idea in found)
    assert len(found) == 3


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["Mrs. Moy came.", "Sker is wet.", ""]), max_size=3), st.integers(0, 5))
def test_no_probe_comes_twice(cues, limit):
    past = []
    for _ in range(6):
        found = probe(past_probes=past, cues=cues, limit=limit)
        assert len(found) <= limit
        assert not set(found) & {*past, QUESTION}
        past += found


def test_probes_ask_for_what_the_last_attempt_lacked_which_need_not_name_anything():
    found = probe(missing="The evidence does not say who had flour in the kitchen.")
    assert found[0] == "Everard Lisle flour kitchen"
    assert probe(missing="There is no evidence for an answer.") == probe()


@pytest.mark.parametrize(
    ("texts", "cue", "labels"),
    [
        ([f"The day was bright. {STOPPED} Roses grow in June."], STOPPED, ["E1"]),
        (["Roses grow in June.", STOPPED, "Snow fell."], STOPPED, ["E2"]),
        (["Roses grow in June."], "", []),
    ],
)
def test_a_cue_is_what_the_evidence_says_to_the_question_and_names_it(texts, cue, labels):
    encoded = encode(show(*texts))
    assert (encoded.cue, encoded.labels) == (cue, labels)


def test_a_cue_is_quoted_from_evidence_that_is_only_loosely_close():
    encoded = encode(
        show("A stranger asked the way. Snow fell on the long road to the mill."),
        question="Who stopped the watch that the owner of Tide House, a printer and a widower, wound every night?",
        probe="the winding of the watch at night by a stranger in the printing office",
    )
    assert encoded.cue == "A stranger asked the way."


def test_a_cue_repeats_nothing_that_is_known():
    owner = "The repeater belonged to Everard Lisle."
    evidence = show(f"{STOPPED} {owner}")
    assert STOPPED in encode(evidence, "repeater").cue
    assert encode(evidence, "repeater", known=[f"The day was bright. {STOPPED}"]).cue == owner
    assert encode(evidence, "repeater", known=[STOPPED, owner]).cue == ""


def test_cues_and_facts_do_not_depend_on_the_order_shown():
    texts = [f"{name} stopped the repeater of Lisle." for name in ("Ann", "Bob", "Cy", "Di")]
    results = set()
    for order in permutations(texts):
        kept = tuple(order[number - 1] for number in filter_facts(list(order)))
        results.add((encode(show(*order), "").cue, fuse(list(order)), kept))
    assert len(results) == 1


def test_fused_cues_say_each_thing_once():
    fused = fuse(["Mrs. Moy stopped the repeater.", "Everard Lisle slept. Mrs. Moy stopped the repeater."])
    assert fused.count("Mrs. Moy stopped the repeater.") == 1
    assert "Everard Lisle slept." in fused


def test_a_thought_is_a_sentence_that_no_thought_holds_and_concludes_where_the_evidence_suffices():
    lines = ["Mrs. Moy wound the repeater of Everard Lisle.", "Everard Lisle lay in the store.", "Roses grow in June."]
    evidence = show(*lines)
    assert think(evidence).thought == lines[0]
    assert think(evidence, lines[0]).thought == lines[1]
    assert not think(show(lines[1])).concludes
    for end in (think(evidence, *lines), think([]), think(show("Mrs. Moy stopped the repeater of Everard Lisle."))):
        assert end.concludes


def test_steps_are_the_questions_inside_a_question():
    first = step(LAW)
    assert (first.subquestion, first.search, first.finished) == ("Who broke the salt law?", True, False)
    second = step(LAW, asked=[first.subquestion], findings=[f"{first.subquestion} Mohandas Gandhi"])
    assert second.subquestion == "What is the native language of the person? (Mohandas Gandhi)"
    assert step(LAW, asked=["a", "b"], findings=["a", "b"]).finished
    assert step("When did Everard Lisle's aunt die?").subquestion == "What is Everard Lisle's aunt?"
    assert step("When did the dog's owner die?").subquestion == "When did the dog's owner die?", "nobody is named"
    lone = "When was Sker built?"
    assert step(lone).subquestion == lone
    assert step(lone, asked=[lone], findings=[lone]).finished


@pytest.mark.parametrize(("fields", "labels"), [({}, ["E3", "E2"]), ({"limit": 1}, ["E3"]), ({"read": ["E3"]}, ["E2"])])
def test_pages_are_chosen_by_their_gists_and_none_is_read_twice(fields, labels):
    gists = ["Roses grow in June.", "Mrs. Moy stopped the repeater.", "Everard Lisle owned a repeater.", "It rained."]
    given_ = LookUpIn(question=QUESTION, evidence=show(*gists, kind="gist"), **fields)
    assert steering.look_up(given_, EMBEDDER).labels == labels


@pytest.mark.parametrize(
    ("question", "details", "themes"),
    [
        ("Who sold the boat to Ada Marsh in 1911?", ["Ada Marsh", "1911"], ["sold", "boat"]),
        ("How did the flood change the trade?", [], ["flood", "change", "trade"]),
        ("Who is Tom Hale?", ["Tom Hale"], []),
        ("", [], []),
    ],
)
def test_names_and_dates_are_details_and_other_words_are_themes(question, details, themes):
    assert steering.find_keywords(KeywordsIn(question=question)) == KeywordsOut(details=details, themes=themes)


TURNS = [
    TurnShown(question="Who kept the light on Gull Rock?", answer="Ada Marsh"),
    TurnShown(question="Who sold the Heron to Ida Poe?", answer="It was Tom Hale."),
]


@pytest.mark.parametrize(
    ("question", "alone"),
    [
        ("And who taught him to sail?", "Who taught Tom Hale to sail?"),
        ("Where did he live?", "Where did Tom Hale live?"),
        ("What was his trade?", "What was Tom Hale's trade?"),
        ("When did she buy it?", "When did Ida Poe buy it?"),
        ("What did Tom Hale ask her?", "What did Tom Hale ask Ida Poe?"),
        ("Why?", "Why: Who sold the Heron to Ida Poe?"),
        ("Where is Bruges?", "Where is Bruges?"),
        ("What did they find in the cellar?", "What did they find in the cellar?"),
        ("And?", "And: Who sold the Heron to Ida Poe?"),
    ],
)
def test_names_of_the_last_turns_take_the_place_of_pronouns(question, alone):
    assert rephrase(RephraseIn(question=question, turns=TURNS)).question == alone


def test_without_turns_only_the_opening_goes():
    assert rephrase(RephraseIn(question="And who is he?", turns=[])).question == "Who is he?"


# ---------------------------------------------------------------- a text read in order: plan, facts, joins, note

MAN = "Who was the man that Pip met in the garden?"
GARDEN = "In the garden of Satis House, Pip met a pale young gentleman."
RIVER = "Joe mended the gate by the river."
MENDED = "Who mended the gate by the river?"


def test_a_plan_has_the_parts_of_the_question_and_asks_about_its_names():
    plan = relaying.plan_reading(PlanReadingIn(question=MAN))
    assert plan.questions
    assert "What does the text say of Pip?" in plan.nets
    assert relaying.plan_reading(PlanReadingIn(question=MAN, nets=0)).nets == []


def test_facts_are_sentences_of_the_passages_in_their_order():
    again = "Pip saw the man in the garden again."

    def extract(**fields):
        given_ = NotesIn(question=MAN, evidence=show(GARDEN, again, RIVER), **fields)
        return [(fact.label, fact.quote) for fact in relaying.extract_notes(given_, EMBEDDER).facts]

    assert extract() == [("E1", GARDEN), ("E2", again)]
    assert ("E3", RIVER) in extract(questions=[MENDED])


def test_facts_that_share_a_name_are_joined_once():
    texts = ("Herbert Pocket fought in the garden.", RIVER, "Pip met Herbert Pocket again in London.")
    facts = [Entry(label=f"F{number}", text=text) for number, text in enumerate(texts, 1)]
    (drawn,) = relaying.infer_notes(InferIn(question=MAN, facts=facts)).inferences
    assert drawn.rests_on == ["F1", "F3"]
    known = InferIn(question=MAN, facts=facts, inferences=[Entry(label="I1", text=drawn.inference)])
    assert relaying.infer_notes(known).inferences == []


def test_a_question_whose_words_stand_in_one_fact_is_settled_and_a_new_one_takes_free_room():
    def refine(questions, fact, **fields):
        facts = [Entry(label="F1", text=fact)]
        return relaying.refine_questions(RefineIn(question=MAN, questions=questions, facts=facts, **fields))

    assert refine([MENDED, "Who was the man?"], RIVER).answered == [1]
    assert refine(["Who was the man?"], GARDEN, limit=1).new == []
    assert refine(["Who was the man?"], GARDEN).new == ["Who or what is Satis House?"]


def test_a_note_keeps_what_is_near_to_the_question_and_has_room():
    given_ = CarryIn(question=MAN, note=GARDEN, evidence=show(RIVER, "Pip left the garden."))
    assert relaying.carry_note(given_).note == f"{GARDEN} Pip left the garden."
    assert relaying.carry_note(given_.model_copy(update={"words": 5})).note == "Pip left the garden."


# ---------------------------------------------------------------- a memory of points

WHY = "Why did Mrs. Moy stop the repeater of Everard Lisle?"
MOY = PointShown(id="M1", description="Mrs. Moy stopped the repeater.", entities=["Mrs. Moy", "repeater"])
SLEPT = PointShown(id="M2", description="Everard Lisle slept.", entities=["Everard Lisle"])


def test_plans_look_around_what_is_known_and_beyond_it():
    found = plan(PlanIn(question=WHY, points=[MOY, SLEPT], searched=[WHY]))
    assert not found.sufficient
    assert [(concern.place, bool(concern.points)) for concern in found.concerns] == [
        ("local", True),
        ("global", False),
        ("local", True),
    ]
    assert len({concern.subqueries[0] for concern in found.concerns}) == 3
    assert {concern.place for concern in plan(PlanIn(question=WHY)).concerns} == {"global"}, "nothing is known"
    for place in ("local", "global"):
        assert {concern.place for concern in plan(PlanIn(question=WHY, points=[MOY], place=place)).concerns} == {place}


def test_the_memory_suffices_once_every_query_was_searched():
    searched = [WHY]
    for _ in range(20):
        found = plan(PlanIn(question=WHY, points=[MOY, SLEPT], searched=searched))
        if found.sufficient:
            break
        searched += [concern.subqueries[0] for concern in found.concerns]
    assert found.sufficient
    assert found.concerns == []


def change(text, *points, entities=("repeater",), **fields):
    titles = [Shown(label="", title=title, text="") for title in entities]
    evidence = show("Roses grow.", text)
    given_ = EvolveIn(question=WHY, subqueries=[WHY], points=points, entities=titles, evidence=evidence, **fields)
    return evolve(given_, EMBEDDER)


def test_sentences_become_points_over_the_names_in_them():
    text = "The day was bright. Mrs. Moy hated the repeater of Everard Lisle. Roses grow in June."
    (added,) = change(text, MOY, entities=("repeater", "flour paste")).insertions
    assert added.description == "Mrs. Moy hated the repeater of Everard Lisle."
    assert sorted(added.entities) == ["Everard Lisle", "Mrs. Moy", "repeater"]
    assert added.evidence == ["E2"]


def test_a_point_grows_by_a_sentence_on_its_entities_unless_it_may_not():
    text = "Mrs. Moy feared the repeater as it woke her at night."
    reply = change(text, SLEPT, MOY)
    (update,) = reply.updates
    assert (update.point, update.description) == ("M1", f"{MOY.description} {text}")
    assert (reply.insertions, update.entities) == ([], [])
    assert change(text, SLEPT, MOY, replaces_entities=True).updates[0].entities
    fixed = change(text, SLEPT, MOY, may_update=False)
    assert (len(fixed.updates), len(fixed.insertions)) == (0, 1)


def test_what_a_point_says_is_not_taken_in_again():
    reply = change(MOY.description, MOY, entities=())
    assert (reply.updates, reply.insertions) == ([], [])


def test_points_that_share_their_entities_are_merged_each_once():
    points = [PointShown(id=f"M{n}", description=f"She did {n}. It rang.", entities=MOY.entities) for n in range(1, 4)]
    (merge,) = merge_points(MergePointsIn(question=WHY, points=[*points, SLEPT])).merges
    assert merge.points == ["M1", "M2"]
    assert merge.description == "She did 1. It rang. She did 2."
