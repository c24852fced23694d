from __future__ import annotations

from tomewise.language.extractive.hypergraph_plays import evolve, merge_points, plan
from tomewise.language.roles import EvolveIn, MergePointsIn, PlanIn, PointShown, Shown
from tomewise.types import Embedder

QUESTION = "Why did Mrs. Moy stop the repeater of Everard Lisle?"
STOPPED = PointShown(id="M1", description="Mrs. Moy stopped the repeater.", entities=["Mrs. Moy", "repeater"])
SLEPT = PointShown(id="M2", description="Everard Lisle slept.", entities=["Everard Lisle"])


def test_plans_look_around_what_is_known_and_beyond_it():
    found = plan(PlanIn(question=QUESTION, points=[STOPPED, SLEPT], searched=[QUESTION]))
    assert not found.sufficient
    assert [concern.place for concern in found.concerns] == ["local", "global", "local"]
    assert all(concern.points for concern in found.concerns if concern.place == "local")
    assert [concern.points for concern in found.concerns if concern.place == "global"] == [[]]
    assert len({concern.subqueries[0] for concern in found.concerns}) == 3
    assert {concern.place for concern in plan(PlanIn(question=QUESTION)).concerns} == {"global"}, "nothing is known"


def test_the_place_may_be_given():
    for place in ("local", "global"):
        found = plan(PlanIn(question=QUESTION, points=[STOPPED], place=place))
        assert {concern.place for concern in found.concerns} == {place}


def test_the_memory_suffices_once_every_query_was_searched():
    searched = [QUESTION]
    for _ in range(20):
        found = plan(PlanIn(question=QUESTION, points=[STOPPED, SLEPT], searched=searched))
        if found.sufficient:
            break
        searched += [concern.subqueries[0] for concern in found.concerns]
    assert found.sufficient
    assert found.concerns == []


def test_sentences_become_points_over_the_names_in_them(embedder: Embedder):
    text = "The day was bright. Mrs. Moy hated the repeater of Everard Lisle. Roses grow in June."
    entities = [Shown(label="", title=title, text="") for title in ("repeater", "flour paste")]
    given = EvolveIn(
        question=QUESTION,
        subqueries=[QUESTION],
        points=[STOPPED],
        entities=entities,
        evidence=[Shown(label="E1", text="Roses grow."), Shown(label="E2", text=text)],
    )
    (added,) = evolve(given, embedder).insertions
    assert added.description == "Mrs. Moy hated the repeater of Everard Lisle."
    assert sorted(added.entities) == ["Everard Lisle", "Mrs. Moy", "repeater"]
    assert added.evidence == ["E2"]


def test_a_point_grows_by_a_sentence_on_its_entities_unless_it_may_not(embedder: Embedder):
    given = EvolveIn(
        question=QUESTION,
        subqueries=[QUESTION],
        points=[SLEPT, STOPPED],
        entities=[Shown(label="", title="repeater", text="")],
        evidence=[Shown(label="E1", text="Mrs. Moy feared the repeater as it woke her at night.")],
    )
    reply = evolve(given, embedder)
    (update,) = reply.updates
    assert update.point == "M1"
    assert update.description == f"{STOPPED.description} {given.evidence[0].text}"
    assert (reply.insertions, update.entities) == ([], [])
    assert evolve(given.model_copy(update={"replaces_entities": True}), embedder).updates[0].entities
    fixed = evolve(given.model_copy(update={"may_update": False}), embedder)
    assert (len(fixed.updates), len(fixed.insertions)) == (0, 1)


def test_what_a_point_says_is_not_taken_in_again(embedder: Embedder):
    given = EvolveIn(
        question=QUESTION, subqueries=[], points=[STOPPED], evidence=[Shown(label="E1", text=STOPPED.description)]
    )
    reply = evolve(given, embedder)
    assert (reply.updates, reply.insertions) == ([], [])


def test_points_that_share_their_entities_are_merged_each_once():
    names = ["Mrs. Moy", "repeater"]
    points = [PointShown(id=f"M{n}", description=f"She did {n}. It rang.", entities=names) for n in range(1, 4)]
    (merge,) = merge_points(MergePointsIn(question=QUESTION, points=[*points, SLEPT])).merges
    assert merge.points == ["M1", "M2"]
    assert merge.description == "She did 1. It rang. She did 2."
