"""The roles of the loop whose working memory is a hypergraph (HGMem, sections 3.4 and 3.5)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tomewise.language.labels import Label, Labels
from tomewise.language.roles.fields import Shown, Text, Texts, describe, read_word
from tomewise.types import Role

Place = Annotated[Literal["local", "global"], read_word("local", "global", otherwise="global")]


class _Lenient(BaseModel):
    """Numbers count as texts, since models write 3 for "M3"; the loop records what it cannot use."""

    model_config = ConfigDict(coerce_numbers_to_str=True)


class PointShown(BaseModel):
    """A point of the working memory in a prompt. `parts` is how many points it was merged from."""

    id: str
    description: str
    entities: list[str] = []
    parts: int = 0


class PlanIn(BaseModel):
    """`place` is where the next searches may look, if that is decided already; `may_stop` whether there may be none."""

    question: str
    points: list[PointShown] = []
    searched: list[str] = []
    limit: int = 3
    place: Literal["either", "local", "global"] = "either"
    may_stop: bool = True


class ConcernOut(_Lenient):
    concern: Text = describe("what is still open, in one sentence")
    points: Labels = describe("for local: the id of the memory point that it is about", [])
    place: Place = describe("local: around one point; global: beyond all points", "global")
    subqueries: Texts = describe("exactly one search query", [])


class PlanOut(BaseModel):
    reasoning: Text = describe("what the points settle, and what the question still needs")
    sufficient: bool = Field(description="whether the points suffice to answer")
    concerns: list[ConcernOut] = describe("empty when the points suffice", [])


class EvolveIn(BaseModel):
    """`may_update` and `replaces_entities` say what an update may change: the description, and the entities too.

    A piece of evidence is a passage, a fact, or an entity: what passages say of it.
    """

    question: str
    subqueries: list[str]
    points: list[PointShown] = []
    evidence: list[Shown] = []
    may_update: bool = True
    replaces_entities: bool = False


class UpdateOut(_Lenient):
    point: Label = describe("id of the memory point")
    description: Text = describe("all that the point says from now on")
    entities: Texts = describe("the names that it joins, where they may change", [])
    evidence: Labels = describe("labels of the evidence that the change rests on", [])


class InsertionOut(_Lenient):
    description: Text = describe("what the new point says")
    entities: Texts = describe("names of the entities that it joins", [])
    evidence: Labels = describe("labels of the evidence that it rests on", [])


class EvolveOut(BaseModel):
    reasoning: Text = describe("what the evidence adds to the points")
    updates: list[UpdateOut] = describe("changes of points", [])
    insertions: list[InsertionOut] = describe("new points", [])


class MergePointsIn(BaseModel):
    question: str
    points: list[PointShown]


class MergeOut(_Lenient):
    points: Labels = describe("ids of two or more memory points", [])
    description: Text = describe("what the joined point says")


class MergePointsOut(BaseModel):
    reasoning: Text = describe("which points belong together, and what follows from them")
    merges: list[MergeOut] = describe("empty when nothing belongs together", [])


PLAN = Role("plan", PlanIn, PlanOut, output_tokens=2048, tags=("point",))
EVOLVE = Role("evolve", EvolveIn, EvolveOut, output_tokens=2048, tags=("point",))
MERGE_POINTS = Role("merge_points", MergePointsIn, MergePointsOut, output_tokens=2048, tags=("point",))
