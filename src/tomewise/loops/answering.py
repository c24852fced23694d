"""The step that all loops share: what a role is shown, an answer from a reply, and the event for it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tomewise.events import Attempt
from tomewise.language.fences import letter
from tomewise.language.per_role import find_window
from tomewise.language.roles import ANSWER, AnswerIn, AnswerOut, Shown
from tomewise.loops.answer_parts import ask_answer
from tomewise.loops.citing import Citer
from tomewise.loops.context import Context
from tomewise.loops.evidence import Count, Shelf, fit_to_budget, fit_to_window
from tomewise.loops.repeats import drop_near_repeats
from tomewise.types import Answer, Evidence, In, LanguageModel, Out, Question, Role

Made = TypeVar("Made", bound=Attempt)
_LED = re.compile(r"\s*(?:[Oo]ption\s+)?[(\[]?([A-Za-z])(?:[)\].:]|$)")  # "B) the clerk", "option B"


@dataclass(frozen=True, slots=True)
class Fitted(Generic[In]):
    """The input of a role, the evidence in it, and all the evidence that might have been in it."""

    given: In
    evidence: list[Evidence]
    found: list[Evidence]


class Answering:
    """Fits evidence into what a role is shown, and asks the answering role.

    `budget` is in tokens, None for as much as the model's window holds, near-repeats included.
    """

    def __init__(self, model: LanguageModel, citer: Citer, shelf: Shelf, count: Count, *, budget: int | None) -> None:
        self._model = model
        self._citer = citer
        self._shelf = shelf
        self._count = count
        self._budget = budget

    def fit(
        self,
        role: Role[In, Out],
        found: Sequence[Evidence],
        make_input: Callable[[Sequence[Shown]], In],
        arrange: Callable[[Sequence[Evidence]], Sequence[Evidence]] = list,
    ) -> Fitted[In]:
        """The input with the first pieces of evidence that have room, in the order into which `arrange` puts them."""
        found, best = list(found), list(found)
        if self._budget is not None:
            found = drop_near_repeats(found)
            best = fit_to_budget(found, self._budget, self._count)

        def make(evidence: Sequence[Evidence]) -> In:
            return make_input(shown[: len(evidence)])

        shown = self._shelf.show(best)  # labels and order do not change the number of tokens
        fitting = fit_to_window(best, self._model, role, make)
        evidence = list(arrange(fitting))
        return Fitted(make_input(self._shelf.show(evidence)), evidence, found)

    async def prepare(
        self,
        question: Question,
        found: Sequence[Evidence],
        *,
        notes: Sequence[str] = (),
        arrange: Callable[[Sequence[Evidence]], Sequence[Evidence]] = list,
    ) -> Fitted[AnswerIn]:
        """What the answering role is given. It may decline unless the question asks for a guess."""

        def make_input(shown: Sequence[Shown]) -> AnswerIn:
            return make_answer_input(question, shown, notes=notes, may_decline=not question.force)

        return await asyncio.to_thread(self.fit, ANSWER, found, make_input, arrange)

    async def ask(self, question: Question, prepared: Fitted[AnswerIn], *, final: bool = True) -> Answer:
        """The answer from what was prepared; parts of a `final` one are shown on the way. Raises ModelError."""
        reply = await ask_answer(self._model, prepared.given, final=final)
        return await asyncio.to_thread(
            read_answer,
            reply,
            question,
            prepared.evidence,
            self._citer,
            may_decline=prepared.given.may_decline,
        )


def make_answer_input(
    question: Question, shown: Sequence[Shown], *, notes: Sequence[str] = (), may_decline: bool = False
) -> AnswerIn:
    """What the answering role is given."""
    return AnswerIn(
        question=question.text,
        options=list(question.options),
        instructions=question.instructions,
        evidence=list(shown),
        notes=list(notes),
        may_decline=may_decline,
    )


def read_answer(
    reply: AnswerOut, question: Question, evidence: Sequence[Evidence], citer: Citer, *, may_decline: bool
) -> Answer:
    """Make an answer from a reply of the answering role, and verify its quotations.

    While declining is allowed, a reply counts as declined if it declines beside a letter, or if no evidence supports
    it: then it is a guess that nobody asked for.
    """
    refused = may_decline and (reply.refused or reply.supported == "none")
    choice = None if refused else find_choice(reply, question)
    resolved = choice is not None or not (question.options or reply.is_declined(may_decline))
    if not resolved:
        return Answer(text="", evidence=tuple(evidence), resolved=False, supported="none", missing=reply.missing)
    cited = citer.cite(reply.quotes, evidence)
    return Answer(
        text=question.options[ord(choice) - ord("A")] if choice else reply.answer,
        choice=choice,
        citations=cited.citations,
        evidence=tuple(evidence),
        supported=reply.supported,
        missing=reply.missing if reply.supported == "partly" else "",
        dropped_quotes=cited.dropped,
        derived_quotes=cited.derived,
    )


def measure_room(model: LanguageModel, question: Question, count: Count) -> int:
    """The tokens that a model has room for beside the question, which some roles are given twice.

    A third is left for the prompts and the model's own way to count.
    """
    asked = model.reckon(ANSWER, make_answer_input(question, [])) + sum(count([question.text]))
    return max(0, find_window(model, ANSWER) - ANSWER.output_tokens - asked) * 2 // 3


def make_attempt(kind: type[Made], step: int, context: Context, reply: AnswerOut, answer: Answer, **more: Any) -> Made:
    """The event of what an attempt to answer was shown, and what came of it; `more` are fields of its class."""
    return kind(
        step=step,
        answer=reply.answer,
        choice=reply.choice,
        failed=not answer.resolved,
        missing=reply.missing,
        shown=[piece.node for piece in context.evidence],
        cut=context.cut,
        notes=context.notes,
        **more,
    )


def find_choice(reply: AnswerOut, question: Question) -> str | None:
    """The letter of the chosen option: as stated, else the option that the answer spells out."""
    letters = [letter(index) for index in range(len(question.options))]
    folded = [_bare(option) for option in question.options]
    for wording in (reply.choice or "", reply.answer):
        bare = _bare(wording)
        if bare.upper() in letters:
            return bare.upper()
        if bare in folded:
            return letters[folded.index(bare)]
        led = _LED.match(wording)
        if led and led[1].upper() in letters:
            return led[1].upper()
    return None


def _bare(wording: str) -> str:
    return wording.strip(" .():[]\"'\n").casefold()
