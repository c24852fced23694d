"""The role that answers."""

from __future__ import annotations

import re

from pydantic import BaseModel, Field

from tomewise.language.roles.fields import Shown, Text
from tomewise.types import Role, Support

FAILURE = "*"  # the failure signal: an answering role replies with it when the evidence is not sufficient
_EMPHASIS = re.compile(r"(\*{1,3})\w(?:[^*]*[^*\s])?\1")  # "*Dracula*" is a title and "**nine**" is bold


class AnswerIn(BaseModel):
    question: str
    options: list[str] = []
    instructions: str = ""
    evidence: list[Shown] = []
    notes: list[str] = []
    may_decline: bool = False


class Quote(BaseModel):
    label: Text = Field(description="label of the evidence quoted, such as E1")
    quote: Text = Field(description="a short passage copied word for word from that evidence")


class AnswerOut(BaseModel):
    """The reasoning comes first, since a model writes its fields in order: it shall think before it answers."""

    reasoning: Text = Field(default="", description="which clues are joined and what follows, in at most 3 sentences")
    answer: Text = Field(description="the answer alone, as short as the question allows")
    choice: str | None = Field(default=None, description="letter of the chosen option, for a question with options")
    quotes: list[Quote] = Field(default=[], description="the words of passages that the answer rests on")
    supported: Support = Field(default="full", description="how far the evidence holds the answer")
    missing: Text = Field(default="", description="what the evidence lacks, unless it supports the answer in full")

    @property
    def refused(self) -> bool:
        """Whether the answer begins with the failure signal, as in "* (not stated)". Emphasis is not a signal."""
        text = self.answer.lstrip(" \"'`([")
        return text.startswith(FAILURE) and not _EMPHASIS.match(text)

    @property
    def failed(self) -> bool:
        """Whether the answer is the failure signal of ComoRAG (section 2.3) or empty."""
        return self.refused or self.answer.strip(" .*\"'`") == ""


ANSWER = Role("answer", AnswerIn, AnswerOut, output_tokens=768)
