"""The roles of loops that go step by step: a thought at a time, or a smaller question at a time."""

from __future__ import annotations

from pydantic import BaseModel, Field

from tomewise.language.roles.fields import Shown, Text
from tomewise.types import Role


class ThinkIn(BaseModel):
    """`thoughts` are the sentences of reasoning so far, in order."""

    question: str
    evidence: list[Shown] = []
    thoughts: list[str] = []


class ThinkOut(BaseModel):
    """The thought comes first: a model decides whether it concludes only after it has written it."""

    thought: Text = Field(min_length=1, description="the next sentence of the reasoning, one alone")
    concludes: bool = Field(default=False, description="whether this thought gives the answer to the question")


class StepIn(BaseModel):
    """`asked` are the smaller questions so far, `findings` each of them with its answer, in the same order."""

    question: str
    asked: list[str] = []
    findings: list[str] = []


class StepOut(BaseModel):
    """The reasoning comes first, then what to do next."""

    reasoning: Text = Field(default="", description="what is known and what is needed next, in at most 2 sentences")
    finished: bool = Field(default=False, description="whether the findings suffice to answer the question")
    subquestion: Text = Field(default="", description="the next smaller question; empty if finished")
    search: bool = Field(default=True, description="whether the texts are searched for it")
    answer: Text = Field(default="", description="the answer from general knowledge; empty where a search is needed")


THINK = Role("think", ThinkIn, ThinkOut, output_tokens=200)
STEP = Role("step", StepIn, StepOut, output_tokens=300)
