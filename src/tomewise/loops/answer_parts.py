"""Show the answer while the model writes it: each new part of its text is an event `answer_part`.

Whoever runs a loop says who gets the parts (`Run.on_part`). A loop asks the answering role through `ask_answer`, with
`final=False` if the reply does not answer the question of the user. The loop itself waits for the whole reply and sees
no parts. No trace stores them, since the answer holds the whole text.

An answer that was shown is never declined later. While declining is allowed, the first part is held back until the
reply states that evidence supports the answer, and each part while the answer may still become the failure signal.
In the end all parts together are the text of the answer, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tomewise.events import make_event
from tomewise.language.reply import SEAM, join_reply, read_beginning
from tomewise.language.roles import ANSWER, AnswerIn, AnswerOut
from tomewise.language.roles.answer_roles import REACHES, may_become_failure, read_reach
from tomewise.loops.statements import read_marks
from tomewise.run import change_run, current_run
from tomewise.types import Event, LanguageModel

_LONGEST = 100_000  # characters of a reply that are read while it is written; no answer is so long
_GROWTH = 64  # the text is read again after it has grown by this fraction, so that all readings together stay linear
_OPEN_MARK = re.compile(r"\[(?:E[\d,;\sE]*)?\Z")  # it may become a mark such as `[E3]`


def answer_whole() -> AbstractContextManager[None]:
    """Show no parts of answers inside this context; then no server is asked to stream."""
    return change_run(whole_answers=True)


def hold_back(*words: str) -> AbstractContextManager[None]:
    """Show no part of an answer whose reply says one of these of its support or its reach, since a loop then goes on.

    Nor of one that does not state its support before it, or its reach where that matters.
    """
    return change_run(held_back=current_run().held_back.union(words))


async def ask_answer(model: LanguageModel, answer_input: AnswerIn, *, final: bool = True) -> AnswerOut:
    """The reply of the answering role. If it is `final` and somebody listens, its parts are shown on the way.

    A question with options has no parts, because the text of the option is its answer, not what the model writes.
    """
    run = current_run()
    if run.on_part is None or run.whole_answers or not final or answer_input.options:
        return await model.ask(ANSWER, answer_input)
    parts = _AnswerParts(run.on_part, answer_input, run.held_back)
    try:
        with change_run(listener=(ANSWER.name, parts)):
            reply = await model.ask(ANSWER, answer_input)
    except Exception:
        parts.settle("")
        raise
    parts.settle(
        "" if reply.is_declined(answer_input.may_decline) else read_marks(reply.answer, len(answer_input.evidence)).text
    )
    return reply


class _AnswerParts:
    """Listens to the replies of the answering role, and emits each new part of the answer."""

    def __init__(self, emit: Callable[[Event], None], given: AnswerIn, held_back: frozenset[str]) -> None:
        self._emit = emit
        self._unwanted = held_back | ({"none"} if given.may_decline else set())
        self._labels = len(given.evidence)
        self._shown = ""
        self.begin()

    def begin(self, begun: str = "") -> None:
        """Replace the text that an earlier reply showed by nothing, or keep what `begun` showed, which goes on."""
        self._begun = begun
        self._pieces = list[str]()
        self._length = self._read = 0  # characters
        if not begun:
            self._show("")

    def hear(self, text: str) -> None:
        """Show the new part of the answer, if there is one and it may be shown."""
        self._pieces.append(text)
        self._length += len(text)
        if self._length > _LONGEST or self._length - self._read <= self._read // _GROWTH:
            return
        self._read = self._length
        written = "".join(self._pieces)
        if self._begun:  # its first words show how it goes on
            written = join_reply(self._begun, written) if len(written) > SEAM else ""
        fields = read_beginning(AnswerOut, written)
        answer = fields.get("answer")
        if isinstance(answer, str) and self._may_show(fields, answer):
            shown = read_marks(_OPEN_MARK.sub("", answer), self._labels).text.strip()
            if not self._shown.startswith(shown):  # the beginning of a reply that goes on has been shown
                self._show(shown)

    def settle(self, answer: str) -> None:
        """If anything was shown, replace it by the final answer; `answer` is empty if it was declined."""
        if self._shown:
            self._show(answer)

    def _may_show(self, fields: dict[str, Any], answer: str) -> bool:
        if may_become_failure(answer):
            return False
        supported = fields.get("supported")
        if self._unwanted and supported not in ("full", "partly", "none"):
            return False
        if not self._unwanted.isdisjoint(REACHES) and "reach" not in fields:
            return False
        return self._unwanted.isdisjoint([supported, read_reach(fields.get("reach"))])

    def _show(self, answer: str) -> None:
        """Emit the part that turns the text shown so far into `answer`."""
        if answer != self._shown:
            replace = not answer.startswith(self._shown)
            new = answer if replace else answer[len(self._shown) :]
            self._shown = answer
            self._emit(make_event("answer_part", text=new, replace=replace))
