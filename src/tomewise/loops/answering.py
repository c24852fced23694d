"""What the answering role is given, and the answer that its reply makes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tomewise.language.fences import letter
from tomewise.language.roles import AnswerIn, AnswerOut, Shown
from tomewise.loops.citing import Citer
from tomewise.types import Answer, Evidence, Question

_LED = re.compile(r"\s*(?:[Oo]ption\s+)?[(\[]?([A-Za-z])(?:[)\].:]|$)")  # "B) the clerk", "option B"


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
