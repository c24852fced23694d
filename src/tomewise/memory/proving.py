"""Prove what a model writes into memory against the texts that its prompt showed, as an answer is proved.

A role takes part whose input has `grounds`, the texts that a reply may take its words from, and whose output marks
fields as `Prose` or as facts (`roles.fields`). An invention is a name, number or date that the grounds have in no
spelling. The sentences with one are asked for once more, in one call for a reply (the role `restate`); those that still
have one leave. A fact with a number or a date that the grounds lack, such as a triple, leaves at once; its names stay,
since a model gives "he" his name. What the words of the grounds do not support, or contradict, is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

from pydantic import BaseModel

from tomewise.concurrency import gather_calls, run_in_thread
from tomewise.errors import BadReply, ModelError
from tomewise.language.memory_faults import list_strings
from tomewise.language.roles import RESTATE, RestateIn
from tomewise.language.roles.fields import FACT, PROSE
from tomewise.language.together import ask_together, catch_failure
from tomewise.language.wrapped import find_abilities, find_name
from tomewise.run import ASKED_AGAIN, LEFT_OUT, UNSUPPORTED, current_run
from tomewise.text.quotable import ITEM_NUMBER, find_sentences
from tomewise.text.support import Grounds
from tomewise.types import In, LanguageModel, Out, Role

_Record = TypeVar("_Record", bound=BaseModel)


async def ask_proved(model: LanguageModel, role: Role[In, Out], given: In) -> Out:
    """The output of a role, proved. Raises `BadReply` where no text of it is left, and other errors of the model."""
    return await _prove(model, role, given, await model.ask(role, given))


async def ask_proved_together(
    model: LanguageModel, role: Role[In, Out], inputs: Sequence[In], together: int
) -> list[Out | ModelError]:
    """`ask_together`, with every output proved."""
    replies = await ask_together(model, role, inputs, together)
    pairs = zip(inputs, replies, strict=True)
    return await gather_calls(catch_failure(_prove(model, role, *pair)) for pair in pairs)


async def _prove(model: LanguageModel, role: Role[In, Out], given: In, written: Out | ModelError) -> Out:
    if isinstance(written, ModelError):
        raise written
    texts = [*filter(None, getattr(given, "grounds", ()))]
    if not texts or find_abilities(model, role).measure_reply:  # a model without cost repeats the words of the texts
        return written
    proof = _Proof(await run_in_thread(Grounds, texts))
    proved: Out | None = await run_in_thread(proof.rewrite, written)
    if asked := [*proof.inventions]:
        names = [*chain.from_iterable(proof.inventions.values())]
        again = await catch_failure(model.ask(RESTATE, RestateIn(texts=texts, sentences=asked, names=names)))
        if not isinstance(again, ModelError):
            proof = _Proof(proof.grounds, dict(zip(asked, again.sentences, strict=False)))
            proved = await run_in_thread(proof.rewrite, written)
    flags = [*((ASKED_AGAIN, sentence) for sentence in asked), *proof.flags]
    for each in current_run().meters:
        each.flags += [(find_name(model, role), *flag) for flag in flags]
    if proved is None:
        raise BadReply(f"the reply for {role.name!r} cannot be remembered: all of it names what its texts do not have")
    return proved


@dataclass
class _Proof:
    """What the texts of a prompt say of a reply.

    `restated` are other words for some sentences, used once; `inventions` are, by sentence, what the texts do not have.
    """

    grounds: Grounds
    restated: dict[str, str] = field(default_factory=dict)
    inventions: dict[str, list[str]] = field(default_factory=dict)
    flags: list[tuple[str, str]] = field(default_factory=list)

    def rewrite(self, record: _Record) -> _Record | None:
        """A reply, or a record of it, without inventions; None where its text or a name of it is an invention."""
        changes: dict[str, Any] = {}
        has_lost = False
        for name, stated in type(record).model_fields.items():
            value = getattr(record, name)
            if PROSE in stated.metadata:
                changes[name] = self._rewrite_prose(value)
                has_lost = bool(value) and not changes[name]  # a heading, which comes first, may leave alone
            elif FACT in stated.metadata and isinstance(value, str):
                if not self._stands(value):
                    return None
            elif FACT in stated.metadata:
                changes[name] = [*filter(self._stands, value)]
            elif isinstance(value, list) and value and isinstance(value[0], BaseModel):
                changes[name] = [*filter(None, map(self.rewrite, value))]
        return None if has_lost else record.model_copy(update=changes)

    def _rewrite_prose(self, text: str) -> str:
        kept, at = "", 0
        for start, end in find_sentences(text, with_headings=True):
            sentence = text[start:end]
            inventions = self.grounds.find_missing(ITEM_NUMBER.sub("", sentence))
            if not inventions:
                self._judge(sentence)
            elif sentence in self.restated:
                sentence = self._rewrite_prose(self.restated.pop(sentence))
            else:
                self.inventions[sentence] = inventions
                self.flags.append((LEFT_OUT, sentence))
                sentence = ""
            kept += text[at:start] + sentence
            kept = kept if sentence else kept.rstrip(" ")
            at = end
        return (kept + text[at:]).strip()

    def _stands(self, fact: object) -> bool:
        """Whether the texts have the numbers and dates of a fact. A model may give "he" his name, which they lack."""
        statement = " ".join(list_strings(fact))
        if self.grounds.find_missing(statement, names=False):
            self.flags.append((LEFT_OUT, statement))
            return False
        if not isinstance(fact, str):  # most names are too short to be judged by their words
            self._judge(statement)
        return True

    def _judge(self, statement: str) -> None:
        if self.grounds.judge(statement).support in ("none", "contradicted"):
            self.flags.append((UNSUPPORTED, statement))
