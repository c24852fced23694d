"""Judges: metrics that ask a model. Each scores one answer between 0 and 1; who judged stands in every report."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

from tomewise.errors import ModelError, UnknownName
from tomewise.evaluate.items import Item
from tomewise.language.roles import (
    JUDGE_CORRECT,
    JUDGE_ENTAILED,
    JUDGE_LEVEL,
    JUDGE_STATEMENTS,
    JudgeIn,
    LevelIn,
    StatementsIn,
    StatementsOut,
    VerdictOut,
)
from tomewise.names import suggest
from tomewise.types import Embedder, LanguageModel, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a judge found: a score, and what it said. `error` says why it could not judge; the score is then 0."""

    score: float
    detail: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None


Ask: TypeAlias = Callable[[LanguageModel, Embedder, Item, str], Awaitable[Judgement]]


@dataclass(frozen=True, slots=True)
class Judge:
    """A named way of judging an answer against its references."""

    name: str
    ask: Ask

    def applies(self, item: Item) -> bool:
        """Whether the item has a reference to judge by."""
        return bool(item.answers)

    async def judge(self, model: LanguageModel, embedder: Embedder, item: Item, answer: str) -> Judgement:
        """The judgement of `model`; an empty answer is wrong unasked, and a judge that fails says so."""
        if not answer.strip():
            return Judgement(score=0.0, detail={"explanation": "nothing was answered"})
        try:
            return await self.ask(model, embedder, item, answer)
        except ModelError as error:
            return Judgement(score=0.0, error=f"{type(error).__name__}: {error}")


async def _verdict(
    role: Role[JudgeIn, VerdictOut], model: LanguageModel, embedder: Embedder, item: Item, answer: str
) -> Judgement:
    """Right when one reference says so; they are tried in their order until one does."""
    said: list[str] = []
    for reference in item.answers:
        given = JudgeIn(question=item.question.text, reference=reference, prediction=answer)
        verdict = await model.ask(role, given)
        said.append(verdict.explanation)
        if verdict.correct:
            return Judgement(score=1.0, detail={"reference": reference, "explanation": verdict.explanation})
    return Judgement(score=0.0, detail={"explanation": " / ".join(said)})


async def _graded(
    quality: Literal["comprehensiveness", "diversity"],
    model: LanguageModel,
    embedder: Embedder,
    item: Item,
    answer: str,
) -> Judgement:
    """One of five levels, and a score in the level's band, here over 100 (HGMem, evaluation)."""
    given = LevelIn(question=item.question.text, reference=item.answers[0], prediction=answer, quality=quality)
    graded = await model.ask(JUDGE_LEVEL, given)
    return Judgement(score=graded.score / 100, detail={"level": graded.level, "explanation": graded.explanation})


async def _statements(model: LanguageModel, embedder: Embedder, item: Item, answer: str) -> Judgement:
    """0.75 of the F1 of statements and 0.25 of the likeness of the whole (GraphRAG-Bench, ACC)."""
    reference = item.answers[0]
    given = StatementsIn(question=item.question.text, reference=reference, prediction=answer)
    found = await model.ask(JUDGE_STATEMENTS, given)
    one, other = embedder.embed([answer, reference])
    likeness = (min(1.0, max(-1.0, float(one @ other))) + 1) / 2
    f1 = statement_f1(found)
    counts = {"supported": len(found.supported), "unsupported": len(found.unsupported), "missing": len(found.missing)}
    return Judgement(score=0.75 * f1 + 0.25 * likeness, detail={**counts, "f1": f1, "likeness": likeness})


def statement_f1(found: StatementsOut) -> float:
    """F1 of statements: those in both are true positives, those on one side alone false ones. None at all gives 0."""
    true, wrong = len(found.supported), len(found.unsupported) + len(found.missing)
    return true / (true + wrong / 2) if true else 0.0


JUDGES: Mapping[str, Judge] = {
    judge.name: judge
    for judge in (
        Judge("acc-l", partial(_verdict, JUDGE_CORRECT)),  # CAM: is the answer right, in whatever words
        Judge("entailed", partial(_verdict, JUDGE_ENTAILED)),  # HGMem on NarrativeQA: does it entail the reference
        Judge("comprehensiveness", partial(_graded, "comprehensiveness")),
        Judge("diversity", partial(_graded, "diversity")),
        Judge("statements", _statements),
    )
}
"""Every judge by name. The graded ones and `statements` read the first reference; the others try them all."""


def judge_named(name: str) -> Judge:
    """The judge of that name. Raises UnknownName with the nearest."""
    if name not in JUDGES:
        raise UnknownName(f"there is no judge {name!r}: {suggest(name, JUDGES)}The judges are {', '.join(JUDGES)}")
    return JUDGES[name]
