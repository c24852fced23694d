"""The role that makes a follow-up question stand alone."""

from __future__ import annotations

from pydantic import BaseModel, Field

from tomewise.language.roles.fields import Text
from tomewise.types import Role


class TurnShown(BaseModel):
    """An earlier question in a prompt, with its answer; the answer is empty if the question was declined."""

    question: str
    answer: str = ""


class RephraseIn(BaseModel):
    """`turns` are the last ones of the session, oldest first."""

    question: str
    turns: list[TurnShown]


class RephraseOut(BaseModel):
    question: Text = Field(default="", description="the new question, so that it can be understood alone")


REPHRASE = Role("rephrase", RephraseIn, RephraseOut, output_tokens=300, tags=("earlier",))
