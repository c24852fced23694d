"""The roles that answer a question, and that rephrase a follow-up question of a session."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationInfo, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema

from tomewise.language.labels import Label, find_number, read_label
from tomewise.language.memory_faults import find_excuse
from tomewise.language.roles.fields import NOTHING, OptionalRecords, Shown, Text, TextOrNull, describe, read_word
from tomewise.types import Claim, Form, Reach, Role

_CLAIMS: tuple[Claim, ...] = get_args(Claim)
REACHES: tuple[Reach, ...] = get_args(Reach)
_ReadReach: TypeAlias = Annotated[Reach, read_word(*REACHES, otherwise="part")]
read_reach = TypeAdapter[Reach](_ReadReach).validate_python
FAILURE = "*"  # the failure signal: an answering role replies with it when the evidence is not sufficient
_OPENING = " \n\"'`(["  # signs that may precede the signal
# A line that begins as a field of the reply does, as in YAML, up to the next such line, without the sign of a block.
_FIELD = r"^[^\w\n]*+(?:final )?{}[^\w:\n]*+:"
_ANY_FIELD = _FIELD.format("(?:answer|quotes|reasoning|supported|reach|choice|missing|item)")
_STATED = re.compile(
    rf"{_FIELD.format('answer')}(?:[^\S\n]*+[|>][+-]?+(?=[^\S\n]*+$))?(.*?)(?={_ANY_FIELD}|\Z)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_EMPTY = re.compile(r"[\W_]*+(?:null[\W_]*+)?")
_JSON = re.compile(r"^\s*(?:\{|\[[^\]]*\]\W*\Z|\[\s*(?:[\"{\[]|-?\d+\s*,))|[\"”]\s*:")
_EMPHASIS = re.compile(r"(\*{1,3})\w(?:[^*]*[^*\s])?\1")  # "*Dracula*" is a title and "**nine**" is bold


class AnswerIn(BaseModel):
    question: str
    options: list[str] = []
    instructions: str = ""
    form: Form | None = None
    evidence: list[Shown] = []
    notes: list[str] = []
    may_decline: bool = False
    text_first: bool = False
    """Whether the evidence stands before all that differs from question to question, as a text read at once does."""


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
        pair = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else value
        if isinstance(pair, list | tuple) and len(pair) == 2 and find_number(read_label(pair[0]), "E") is not None:
            value = {"label": pair[0], "quote": pair[1]}
        elif not isinstance(value, dict):
            value = {"quote": value}
        quote = value.get("quote", value.get("text"))
        quote = " … ".join(map(str, quote)) if isinstance(quote, list) else quote
        if isinstance(quote, str) and NOTHING.fullmatch(quote):
            raise ValueError("nothing is quoted")
        return {"label": "", **value, "quote": quote}


def _list_pairs(written: Any) -> Any:
    """Quotations by their labels as pairs."""
    is_record = not isinstance(written, dict) or {"label", "quote", "text"} & written.keys()
    return written if is_record else [*written.items()]


def _read_claim(written: Any) -> Any:
    """The claim that a text begins with, of several the weakest; "full" only with no other words, as "supported"."""
    words = re.findall(r"\w+", written.lower()) if isinstance(written, str) else []
    found = [claim for claim in _CLAIMS if any(word.startswith(claim[:4]) for word in words)]
    if not found or not words[0].startswith(tuple(claim[:4] for claim in _CLAIMS)):
        return ""
    return "" if found == ["full"] and not all(word.startswith(("full", "supp")) for word in words) else found[-1]


class AnswerOut(BaseModel):
    """A model writes its fields in order: the words that it found, then what follows from them, then the answer.

    `reach` comes first, since it is of the question alone, and `supported` before the answer: an answer which counts as
    declined, or in whose place another will stand, is never shown while it is written. Where `supported` is missing or
    means nothing it is empty, which claims as little as "none"; such a `reach` is "part". No model sees `unfinished`.
    """

    reach: _ReadReach = describe("what the question asks about", "part")
    quotes: Annotated[OptionalRecords[Quote], BeforeValidator(_list_pairs)] = describe(
        "the words of passages that the answer rests on", []
    )
    reasoning: Text = describe("which clues are joined and what follows, in at most 3 sentences")
    supported: Annotated[
        Claim | Literal[""],
        BeforeValidator(_read_claim),
        WithJsonSchema({"type": "string", "enum": list(_CLAIMS)}),
    ] = describe("how far the evidence holds the answer")
    answer: TextOrNull = Field(description="the answer alone, as short as the question allows")
    choice: Text | None = describe("letter of the chosen option, for a question with options", None)
    missing: Text = describe("what the evidence lacks, unless it supports the answer in full")
    item: TextOrNull = describe("what is listed, or the word that is counted")
    unfinished: SkipJsonSchema[str] = ""

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

    Of lines such as "Answer: ...", as in YAML, the last one that says something is the answer; if none does, or the
    text is the failure signal alone, it declines. None for an excuse, and for broken JSON.
    """
    stated = [found[1] for found in _STATED.finditer(text)]
    answers = [each for each in stated or [text] if not _EMPTY.fullmatch(each)]
    if not answers:
        return AnswerOut(answer=FAILURE) if stated or FAILURE in text else None
    answer = answers[-1].strip(" \n`\"'*")
    return None if _JSON.search(answers[-1]) or find_excuse(answer) else AnswerOut(answer=answer)


ANSWER = Role("answer", AnswerIn, AnswerOut, output_tokens=2048, read_prose=read_prose, short_tokens=768, goes_on=True)
REPHRASE = Role("rephrase", RephraseIn, RephraseOut, output_tokens=300, tags=("earlier",))
