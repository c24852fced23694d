"""The plainest loop: retrieve once, then answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

from tomewise.language.fences import letter
from tomewise.language.roles import ANSWER, AnswerIn, AnswerOut
from tomewise.loops.citing import Citer
from tomewise.loops.showing import Count, fitting, shown, within
from tomewise.types import Answer, Event, Evidence, LanguageModel, Question, Retriever

_LED = re.compile(r"\s*(?:[Oo]ption\s+)?[(\[]?([A-Za-z])(?:[)\].:]|$)")  # "B) the clerk", "option B"


class Once:
    """Retrieve, show what fits into the budget best first, answer, or decline unless a guess is asked for.

    `limit` pieces of evidence are asked for; `budget` is in tokens, None for as much as the model's window holds.
    Options reach the answering role alone.
    """

    def __init__(
        self, retriever: Retriever, model: LanguageModel, citer: Citer, count: Count, *, limit: int, budget: int | None
    ) -> None:
        self._retriever = retriever
        self._model = model
        self._citer = citer
        self._count = count
        self._limit = limit
        self._budget = budget

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """Two steps: `retrieved`, then the answer."""
        found = await self._retriever.retrieve(question.text, self._limit)
        given = partial(answering, question, may_decline=not question.force)
        evidence = await asyncio.to_thread(self._shown, found, given)
        yield Event(name="retrieved", detail=retrieved(evidence, found))
        reply = await self._model.ask(ANSWER, given(evidence))
        yield await asyncio.to_thread(
            answer_from, reply, question, evidence, self._citer, may_decline=not question.force
        )

    def _shown(self, found: Sequence[Evidence], given: Callable[[Sequence[Evidence]], AnswerIn]) -> list[Evidence]:
        best = found if self._budget is None else fitting(found, self._budget, self._count)
        return within(best, self._model, ANSWER, given)


def answering(
    question: Question, evidence: Sequence[Evidence], *, notes: Sequence[str] = (), may_decline: bool = False
) -> AnswerIn:
    """What the answering role is given."""
    return AnswerIn(
        question=question.text,
        options=list(question.options),
        instructions=question.instructions,
        evidence=shown(evidence),
        notes=list(notes),
        may_decline=may_decline,
    )


def answer_from(
    reply: AnswerOut, question: Question, evidence: Sequence[Evidence], citer: Citer, *, may_decline: bool
) -> Answer:
    """An answer from what the answering role said, its quotations verified.

    While declining is allowed, a reply is taken as declined that says so beside a letter, or that no evidence
    supports it: then it is a guess that nobody asked for.
    """
    refused = may_decline and (reply.refused or reply.supported == "none")
    choice = None if refused else chosen(reply, question)
    resolved = choice is not None or not (question.options or refused or reply.failed)
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
    )


def chosen(reply: AnswerOut, question: Question) -> str | None:
    """The letter of the chosen option: as stated, else the option that the answer spells out."""
    letters = [letter(index) for index in range(len(question.options))]
    folded = [_bare(option) for option in question.options]
    for said in (reply.choice or "", reply.answer):
        bare = _bare(said)
        if bare.upper() in letters:
            return bare.upper()
        if bare in folded:
            return letters[folded.index(bare)]
        led = _LED.match(said)
        if led and led[1].upper() in letters:
            return led[1].upper()
    return None


def _bare(said: str) -> str:
    return said.strip(" .():[]\"'\n").casefold()


def retrieved(evidence: Sequence[Evidence], found: Sequence[Evidence]) -> dict[str, object]:
    """What an event says of retrieved evidence: what is shown to the model, and how much was cut for want of room."""
    return {"evidence": told(evidence), "found": len(found), "cut": len(found) - len(evidence)}


def told(evidence: Sequence[Evidence]) -> list[dict[str, object]]:
    """Evidence as an event holds it."""
    return [
        {"node": piece.node, "layer": piece.layer, "score": piece.score, "title": piece.title, "text": piece.text}
        for piece in evidence
    ]
