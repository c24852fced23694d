"""Show the answer while the model writes it: each new part of its text is an event `answer_part`.

Whoever runs a loop says where the parts go (`Run.on_part`). A loop asks the answering role through `ask_answer`, and
says `final=False` if the reply does not answer the question of the user. The events pass by the loop, which waits
for the reply meanwhile; they are stored nowhere, since the answer holds the whole text.

What is shown is never declined later. While declining is allowed, the first part waits until the reply has stated that
evidence supports the answer; and any part waits while the answer may still become the failure signal. In the end all
parts together are the text of the answer, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

from pydantic_core import from_json

from tomewise.events import AnswerPart
from tomewise.language.reply import find_opening
from tomewise.language.roles import ANSWER, AnswerIn, AnswerOut
from tomewise.language.roles.answer_roles import may_become_failure
from tomewise.run import change_run, current_run
from tomewise.types import Event, LanguageModel

Emit: TypeAlias = Callable[[Event], None]


def answer_whole() -> AbstractContextManager[None]:
    """Let answers inside come whole, for callers who show no parts: then nothing is asked of a server to stream."""
    return change_run(whole_answers=True)


def show_only_full() -> AbstractContextManager[None]:
    """Show only parts of answers that the evidence supports in full, since after any other the search goes on."""
    return change_run(only_full=True)


async def ask_answer(model: LanguageModel, given: AnswerIn, *, final: bool = True) -> AnswerOut:
    """The reply of the answering role. If it is `final` and somebody listens, its parts are shown on the way.

    A question with options is answered in a word, and by the option and not by what the model writes, so it has none.
    """
    run = current_run()
    if run.on_part is None or run.whole_answers or not final or given.options:
        return await model.ask(ANSWER, given)
    parts = _AnswerParts(run.on_part, given.may_decline, only_full=run.only_full)
    try:
        with change_run(listener=(ANSWER.name, parts)):
            reply = await model.ask(ANSWER, given)
    except Exception:
        parts.settle("")
        raise
    parts.settle("" if reply.is_declined(given.may_decline) else reply.answer)
    return reply


class _AnswerParts:
    """Listens to the answering role, and emits what is new of the answer."""

    def __init__(self, emit: Emit, may_decline: bool, *, only_full: bool) -> None:
        self._emit = emit
        self._unwanted = {"none"} if may_decline else set[str]()
        if only_full:
            self._unwanted |= {"none", "partly"}
        self._shown = ""
        self._reply = PartialReply(AnswerOut.model_fields)

    def begin(self) -> None:
        """Take back what an earlier reply showed."""
        self._reply = PartialReply(AnswerOut.model_fields)
        self._show("")

    def hear(self, text: str) -> None:
        """Show what is new."""
        self._reply.add(text)
        fields = self._reply.read()
        answer = fields.get("answer")
        if isinstance(answer, str) and self._may_show(fields, answer):
            self._show(answer.strip())

    def settle(self, answer: str) -> None:
        """Correct what was shown, if anything was, to the answer that counts; empty if it was declined."""
        if self._shown:
            self._show(answer)

    def _may_show(self, fields: dict[str, Any], answer: str) -> bool:
        if may_become_failure(answer):
            return False
        supported = fields.get("supported")
        return not self._unwanted or (supported in ("full", "partly", "none") and supported not in self._unwanted)

    def _show(self, answer: str) -> None:
        """Emit the way from what is shown to `answer`."""
        if answer == self._shown:
            return
        replace = not answer.startswith(self._shown)
        new = answer if replace else answer[len(self._shown) :]
        self._shown = answer
        self._emit(AnswerPart(text=new, replace=replace))


_LONGEST = 100_000  # characters of a reply that are read while it is written; no answer is so long
_GROWTH = 64  # the text is read again after it has grown by this fraction, so that all readings together stay linear
_CONTROLS = dict.fromkeys(range(32), " ")  # models leave line breaks inside of strings, which JSON forbids


class PartialReply:
    """Collects the pieces of a reply. `read` gives the fields of its JSON object, the last of which may be cut."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)
        self._pieces: list[str] = []
        self._length = 0
        self._read_length = 0

    def add(self, piece: str) -> None:
        """The next piece of the text."""
        if self._length <= _LONGEST:
            self._pieces.append(piece)
            self._length += len(piece)

    def read(self) -> dict[str, Any]:
        """The fields so far. Empty before JSON begins, if the text is not JSON, and if too little is new."""
        if self._length > _LONGEST or self._length - self._read_length <= self._read_length // _GROWTH:
            return {}
        self._read_length = self._length
        text = "".join(self._pieces)
        self._pieces = [text]
        opening = find_opening(text)
        return {} if opening is None else self._find_fields(_parse(text[opening:]))

    def _find_fields(self, value: Any) -> dict[str, Any]:
        """The fields, also one level down, as in a reply that is whole."""
        values = [value, *value.values()] if isinstance(value, dict) else []
        return next((each for each in values if isinstance(each, dict) and self._names & each.keys()), {})


def _parse(text: str) -> Any:
    for wording in (text, text.translate(_CONTROLS)):
        try:
            return from_json(wording, allow_partial="trailing-strings")
        except ValueError:
            continue
    return None
