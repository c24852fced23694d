"""The roles that judge answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

from tomewise.language.labels import Label
from tomewise.language.roles.fields import Records, Shown, Text, describe, read_word
from tomewise.types import Role


class JudgeIn(BaseModel):
    question: str
    reference: str
    prediction: str


class VerdictOut(BaseModel):
    correct: bool
    explanation: Text = ""


LEVEL_BAND = {"very low": (0, 20), "low": (20, 40), "medium": (40, 60), "high": (60, 80), "very high": (80, 100)}
Level = Annotated[Literal["very low", "low", "medium", "high", "very high"], read_word(*LEVEL_BAND)]


class LevelIn(JudgeIn):
    quality: Literal["comprehensiveness", "diversity"]


class LevelOut(BaseModel):
    level: Level
    score: float = Field(ge=0, le=100, description="must lie in the band of its level")
    explanation: Text = ""

    @model_validator(mode="after")
    def _check_band(self) -> LevelOut:
        # A score outside its band is repaired like any other reply that does not fit.
        low, high = LEVEL_BAND[self.level]
        if not low <= self.score <= high:
            raise ValueError(f"the score {self.score:g} lies outside of {low} to {high}, the band of {self.level!r}")
        return self


class StatementsOut(BaseModel):
    """Statements in the groups of GraphRAG-Bench: in both texts, only in the prediction, only in the reference."""

    supported: list[str] = []
    unsupported: list[str] = []
    missing: list[str] = []


class VerifyIn(BaseModel):
    """Statements, numbered from 1, and what may state them."""

    statements: list[str]
    evidence: list[Shown]


class StatementVerdict(BaseModel):
    number: int
    reasoning: Text = ""
    label: Label = Field(default="", description="label of the evidence that says so")
    verdict: Annotated[
        Literal["stated", "contradicted", "not stated"], read_word("stated", "contradicted", "not stated")
    ]


class VerifyOut(BaseModel):
    verdicts: Records[StatementVerdict] = describe("one verdict for each statement, in their order", [])


JUDGE_CORRECT = Role("judge_correct", JudgeIn, VerdictOut, output_tokens=256)
JUDGE_ENTAILED = Role("judge_entailed", JudgeIn, VerdictOut, output_tokens=256)
JUDGE_LEVEL = Role("judge_level", LevelIn, LevelOut, output_tokens=256)
VERIFY = Role("verify", VerifyIn, VerifyOut, output_tokens=1024, tags=("statement",))
JUDGE_STATEMENTS = Role("judge_statements", JudgeIn, StatementsOut, output_tokens=1024)
