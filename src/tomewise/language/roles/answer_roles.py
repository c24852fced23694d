"""The roles that answer a question, and that rephrase a follow-up question of a session."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, Field, ValidationInfo, WithJsonSchema, model_validator

from tomewise.language.labels import Label
from tomewise.language.memory_faults import find_excuse
from tomewise.language.roles.fields import OptionalRecords, Shown, Text, describe
from tomewise.types import Claim, Role

_CLAIMS: tuple[Claim, ...] = get_args(Claim)
FAILURE = "*"  # the failure signal: an answering role replies with it when the evidence is not sufficient
_OPENING = " \n\"'`(["  # signs that may precede the signal
# A line that begins as a field of the reply does, as in YAML, up to the next such line.
_FIELD = r"^[^\w\n]*+(?:final )?{}[^\w:\n]*+:"
_STATED = re.compile(
    rf"{_FIELD.format('answer')}(.*?)(?={_FIELD.format('(?:answer|quotes|reasoning|supported|choice|missing)')}|\Z)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_UNKNOWN = re.compile(
    r"(?:i (?:do not|don't) know|(?:it is )?(?:not (?:stated|mentioned|given|known)|unknown)|none|null|n/?a"
    r"|the (?:evidence|text|passages?) (?:do|does) not (?:say|state|mention|hold)\b[^\n]{0,200})\W*",
    re.IGNORECASE,
)
_NO_QUOTE = frozenset({"", "none", "null", "n/a", "*", "-"})
_DENIES = re.compile(r"un|no|lack|absen|without|insuff")
_JSON = re.compile(r"^\s*(?:\{|\[\s*(?:[\"{\[]|-?\d+\s*,))|[\"”]\s*:")
_EMPHASIS = re.compile(r"(\*{1,3})\w(?:[^*]*[^*\s])?\1")  # "*Dracula*" is a title and "**nine**" is bold


class AnswerIn(BaseModel):
    question: str
    options: list[str] = []
    instructions: str = ""
    evidence: list[Shown] = []
    notes: list[str] = []
    may_decline: bool = False


class Quotable(BaseModel):
    """A passage from which sentences may be quoted. `headings` says from which offset on which headings are above."""

    label: str
    text: str
    title: str = ""
    document: str = ""
    headings: list[tuple[int, tuple[str, ...]]] = []


class QuoteIn(AnswerIn):
    """What a model sees that only quotes: the best passages, best first, and rewrites of the question.

    Each rewrite has a number that is taken off what is like it.
    """

    passages: list[Quotable]
    rewrites: list[tuple[str, float]] = []


class Quote(BaseModel):
    label: Label = Field(description="label of the evidence quoted")
    quote: Text = Field(description="a short passage copied word for word from that evidence")

    @model_validator(mode="before")
    @classmethod
    def _accept_other_forms(cls, value: Any) -> Any:
        """A quotation may come alone, or beside its label; without one it is looked for in all evidence."""
        if isinstance(value, dict) and not {"label", "quote"} & value.keys() and len(value) == 1:
            value = next(iter(value.items()))
        if isinstance(value, list | tuple) and len(value) == 2:
            value = {"label": value[0], "quote": value[1]}
        if isinstance(value, str):
            value = {"quote": value}
        if not isinstance(value, dict):
            return value
        quote = value.get("quote", value.get("text"))
        quote = " … ".join(map(str, quote)) if isinstance(quote, list) else quote
        if isinstance(quote, str) and quote.strip().lower() in _NO_QUOTE:
            raise ValueError("nothing is quoted")
        return {"label": "", **value, "quote": quote}


def _read_claim(written: Any) -> Any:
    """The claim that a text begins with, as in "Fully supported"; of several the weakest, none if it denies them."""
    words = re.findall(r"\w+", written.lower()) if isinstance(written, str) else []
    found = [claim for claim in _CLAIMS if any(word.startswith(claim[:4]) for word in words)]
    if not found or not words[0].startswith(tuple(claim[:4] for claim in _CLAIMS)):
        return ""
    return "" if any(_DENIES.match(word) and word != "none" for word in words) else found[-1]


class AnswerOut(BaseModel):
    """A model writes its fields in order: first the words that it found, then what follows from them, then the answer.

    `supported` comes before the answer, so that an answer which counts as declined is never shown while it is written.
    Where `supported` is missing or means nothing it is empty, which claims as little as "none".
    """

    quotes: OptionalRecords[Quote] = describe("the words of passages that the answer rests on", [])
    reasoning: Text = describe("which clues are joined and what follows, in at most 3 sentences")
    supported: Annotated[
        Claim | Literal[""],
        BeforeValidator(_read_claim),
        WithJsonSchema({"type": "string", "enum": list(_CLAIMS)}),
    ] = describe("how far the evidence holds the answer")
    answer: Annotated[Text, BeforeValidator(lambda written: "" if written is None else written)] = Field(
        description="the answer alone, as short as the question allows"
    )
    choice: Text | None = describe("letter of the chosen option, for a question with options", None)
    missing: Text = describe("what the evidence lacks, unless it supports the answer in full")

    @model_validator(mode="after")
    def _claim_nothing_if_cut(self, info: ValidationInfo) -> AnswerOut:
        """An answer with which the text of the reply ends may have gone on."""
        if info.context and self.answer and info.context.endswith(self.answer):
            self.supported = ""
        return self

    @property
    def claim(self) -> Claim:
        """How far the reply claims that the evidence holds its answer: "none" where it says nothing of it."""
        return self.supported or "none"

    @property
    def is_guess(self) -> bool:
        """Whether the reply says itself that no evidence supports its answer."""
        return self.supported == "none"

    @property
    def refused(self) -> bool:
        """Whether the answer begins with the failure signal, as in "* (not stated)"."""
        return signals_failure(self.answer)

    def is_declined(self, may_decline: bool) -> bool:
        """Whether this declines: it is the failure signal of ComoRAG (section 2.3), or empty.

        While that is allowed, so does a guess.
        """
        failed = signals_failure(self.answer) or self.answer.strip(" .*\"'`") == ""
        return failed or (may_decline and self.is_guess)


def signals_failure(answer: str) -> bool:
    """Whether an answer begins with the failure signal. Emphasis is not a signal."""
    text = answer.lstrip(_OPENING)
    return text.startswith(FAILURE) and not _EMPHASIS.match(text)


def may_become_failure(beginning: str) -> bool:
    """Whether an answer that begins so may turn out to be the failure signal, or empty."""
    return not beginning.strip(f"{_OPENING}.*") or signals_failure(beginning)


class TurnShown(BaseModel):
    """An earlier question in a prompt, with its answer; the answer is empty if the question was declined."""

    question: str
    answer: str = ""


class RephraseIn(BaseModel):
    """`turns` are the last ones of the session, oldest first."""

    question: str
    turns: list[TurnShown]


class RephraseOut(BaseModel):
    question: Text = describe("the new question, so that it can be understood alone")


def read_prose(text: str) -> AnswerOut | None:
    """An answer that came as prose, which claims nothing: not that evidence supports it, nor that it is a guess.

    Of lines such as "Answer: ...", as in YAML, the last one is the answer. None for an excuse, and for broken JSON.
    """
    stated = [found[1] for found in _STATED.finditer(text)]
    written = stated[-1] if stated else text
    answer = written.strip(" \n`\"'*")
    if (stated and not answer) or _UNKNOWN.fullmatch(answer):
        return AnswerOut(answer=FAILURE, missing=answer)
    if not answer or _JSON.search(written) or find_excuse(answer):
        return None
    return AnswerOut(answer=answer)


ANSWER = Role("answer", AnswerIn, AnswerOut, output_tokens=768, read_prose=read_prose)
REPHRASE = Role("rephrase", RephraseIn, RephraseOut, output_tokens=300, tags=("earlier",))
