"""Judges: metrics that ask a model. Each scores one answer from 0 to 1; every report names the judging model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import nan
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from tomewise.errors import ModelError, TomewiseError, UnknownName, UsageError, suggest
from tomewise.evaluate.items import Item, Judgement
from tomewise.language.roles import (
    JUDGE_CORRECT,
    JUDGE_ENTAILED,
    JUDGE_LEVEL,
    JUDGE_STATEMENTS,
    JudgeIn,
    LevelIn,
    StatementsOut,
    VerdictOut,
)
from tomewise.plugins import find_plugin, list_names, refuse_hidden, register
from tomewise.types import Embedder, LanguageModel, Role

if TYPE_CHECKING:
    from tomewise.evaluate.rows import Row


Ask: TypeAlias = Callable[[LanguageModel, Embedder, Item, str], Awaitable[Judgement]]


@dataclass(frozen=True, slots=True)
class Judge:
    """A named way of judging an answer against its references."""

    name: str
    """The name in tables."""
    ask: Ask
    """An asynchronous function of model, embedder, item and answer that returns a `Judgement`."""

    of_answer: ClassVar = True  # as those of a `Metric`
    of_ranking: ClassVar = False
    overall: ClassVar = None

    def applies(self, item: Item) -> bool:
        """Whether the item has a reference to judge by."""
        return bool(item.answers)

    def score_row(self, row: Row) -> float | None:
        """The score of a row: NaN where its item has no reference, None where it was not judged."""
        if not self.applies(row.item):
            return nan
        if row.error:
            return 0.0
        return row.judgements[self.name].score if self.name in row.judgements else None

    async def judge(self, model: LanguageModel, embedder: Embedder, item: Item, answer: str) -> Judgement:
        """The judgement of `model`. An empty answer scores 0 without a call; a failed call becomes the `error`.

        Raises UsageError if `ask` raises another error, or returns something else.
        """
        if not answer.strip():
            return Judgement(score=0.0, detail={"explanation": "nothing was answered"})
        try:
            judgement = await self.ask(model, embedder, item, answer)
        except ModelError as error:
            return Judgement(score=0.0, error=f"{type(error).__name__}: {error}")
        except TomewiseError:
            raise
        except Exception as error:  # a judge from outside may raise anything
            reason = f"{type(error).__name__}: {error}"
            raise UsageError(f"the judge {self.name!r} failed on {item.id!r} ({reason}): mend it") from error
        if not isinstance(judgement, Judgement):
            raise UsageError(f"the judge {self.name!r} returned {judgement!r}: return Judgement(score=...)")
        return judgement


async def _judge_by_references(
    role: Role[JudgeIn, VerdictOut], model: LanguageModel, embedder: Embedder, item: Item, answer: str
) -> Judgement:
    """Ask about each reference in order until the model finds the answer correct by one of them."""
    explanations: list[str] = []
    for reference in item.answers:
        verdict = await model.ask(role, JudgeIn(question=item.question.text, reference=reference, prediction=answer))
        explanations.append(verdict.explanation)
        if verdict.correct:
            return Judgement(score=1.0, detail={"reference": reference, "explanation": verdict.explanation})
    return Judgement(score=0.0, detail={"explanation": " / ".join(explanations)})


async def _judge_quality(
    quality: Literal["comprehensiveness", "diversity"],
    model: LanguageModel,
    embedder: Embedder,
    item: Item,
    answer: str,
) -> Judgement:
    """Ask for one of five levels and a score from 0 to 100 in the band of that level (HGMem, evaluation)."""
    level_input = LevelIn(question=item.question.text, reference=item.answers[0], prediction=answer, quality=quality)
    grade = await model.ask(JUDGE_LEVEL, level_input)
    return Judgement(score=grade.score / 100, detail={"level": grade.level, "explanation": grade.explanation})


async def _judge_statements(model: LanguageModel, embedder: Embedder, item: Item, answer: str) -> Judgement:
    """0.75 times the F1 of statements plus 0.25 times the cosine of the whole, from 0 to 1 (GraphRAG-Bench, ACC)."""
    reference = item.answers[0]
    statements = await model.ask(
        JUDGE_STATEMENTS, JudgeIn(question=item.question.text, reference=reference, prediction=answer)
    )
    answer_row, reference_row = embedder.embed([answer, reference])
    likeness = (min(1.0, max(-1.0, float(answer_row @ reference_row))) + 1) / 2
    f1 = statement_f1(statements)
    counts = {name: len(getattr(statements, name)) for name in ("supported", "unsupported", "missing")}
    return Judgement(score=0.75 * f1 + 0.25 * likeness, detail={**counts, "f1": f1, "likeness": likeness})


def statement_f1(statements: StatementsOut) -> float:
    """F1 of statements: true positives are in both texts, false ones in one alone. Without any statement it is 0."""
    true, wrong = len(statements.supported), len(statements.unsupported) + len(statements.missing)
    return true / (true + wrong / 2) if true else 0.0


JUDGES: Mapping[str, Judge] = {
    judge.name: judge
    for judge in (
        # CAM: is the answer correct, in whatever words?
        Judge("acc-l", partial(_judge_by_references, JUDGE_CORRECT)),
        # HGMem on NarrativeQA: does the answer entail the reference?
        Judge("entailed", partial(_judge_by_references, JUDGE_ENTAILED)),
        Judge("comprehensiveness", partial(_judge_quality, "comprehensiveness")),
        Judge("diversity", partial(_judge_quality, "diversity")),
        Judge("statements", _judge_statements),
    )
}
"""Every judge by name. `acc-l` and `entailed` try all references, the others read the first alone."""


def find_judge(name: str) -> Judge:
    """The judge of that name. Raises UnknownName with the nearest."""
    if name in JUDGES:
        refuse_hidden("judges", name)
    judge = JUDGES.get(name) or find_plugin("judges", name)
    if judge is None:
        names = list_judges()
        raise UnknownName(f"unknown judge {name!r}: {suggest(name, names)}The judges are {', '.join(names)}")
    if not isinstance(judge, Judge):
        raise UsageError(f"the plugin {name!r} is not a Judge: it is {judge!r}")
    return replace(judge, name=name)


def list_judges() -> tuple[str, ...]:
    """The name of every judge: Tomewise's own, then those of plugins."""
    return tuple(dict.fromkeys([*JUDGES, *list_names("judges")]))


def remember_judge(judge: Judge) -> None:
    """Let the tables of this process find a judge by its name.

    Raises UsageError for another judge that has the name of one of Tomewise's.
    """
    if judge.name not in JUDGES:
        register("judges", judge.name, judge)
    elif judge != JUDGES[judge.name]:
        raise UsageError(f"a judge named {judge.name!r} exists already: give yours another name")
