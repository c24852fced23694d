"""Types of fields that several roles share."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from tomewise.run import PART_SKIPPED, record_fallback

T = TypeVar("T")
_LEAST_LETTERS = 3  # that tell one word of a field from the others
NOTHING = re.compile(r"[\W_]*+(?:(?:none|null|n/?a|no quot\w++|e\d{1,4})[\W_]*+)?", re.IGNORECASE)  # or a label alone
_NUMBER = re.compile(r"\W*?(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)")


def _keep_valid(written: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """The records that fit, one alone too; the others are left out and counted. Raises if none fits.

    A word for nothing, as "none", and a label alone are no record.
    """
    records = [written] if isinstance(written, str | dict) else written
    if isinstance(records, list):
        records = [each for each in records if not (isinstance(each, str) and NOTHING.fullmatch(each))]
    try:
        return validate(records)
    except ValidationError:
        if not isinstance(records, list):
            raise
        kept = [record for each in records for record in _validate_alone(each, validate)]
        if not kept:
            raise
        record_fallback(PART_SKIPPED, len(records) - len(kept))
        return kept


def _validate_alone(record: Any, validate: ValidatorFunctionWrapHandler) -> list[Any]:
    try:
        return list(validate([record]))
    except ValidationError:
        return []


def _keep_any_valid(written: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """`_keep_valid`, but none if none fits."""
    try:
        return _keep_valid(written, validate)
    except ValidationError:
        record_fallback(PART_SKIPPED)
        return []


def _read_texts(written: Any) -> Any:
    """A single text as a list of one, numbers as texts; what is neither is left out."""
    values = written if isinstance(written, list) else [written]
    return [str(value) for value in values if isinstance(value, str | int | float)]


def _join_texts(written: Any) -> Any:
    """A list as one text, a number as a text; any other value is left as it is."""
    values = written if isinstance(written, list) else [written]
    return ", ".join(map(str, values)) if all(isinstance(each, str | int | float) for each in values) else written


def _count_shared(word: str, text: str) -> int:
    """With how many same letters both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, text, strict=False)))


def read_word(*words: str, otherwise: str | None = None) -> BeforeValidator:
    """Reads the one of these words that a value begins like, as "Fully supported" for "full".

    A value that begins like none is `otherwise`; None leaves it to be refused.
    """

    def read(written: Any) -> Any:
        text = str(written).strip(" \n\"'*`.").lower()
        best = max(words, key=lambda word: _count_shared(word, text))
        if _count_shared(best, text) >= _LEAST_LETTERS:
            return best
        return written if otherwise is None else otherwise

    return BeforeValidator(read)


def read_number(least: int, most: int, otherwise: int | None = None) -> BeforeValidator:
    """Reads the number that a value begins with, such as 8.4, "8/10" or "85%", as the nearest whole one in bounds.

    A value without a number is `otherwise`; None leaves it to be refused.
    """

    def read(written: Any) -> Any:
        found = _NUMBER.match(str(written))
        if found is None:
            return written if otherwise is None else otherwise
        return round(min(max(float(found[1]), least), most))

    return BeforeValidator(read)


def describe(words: str, default: Any = "", **bounds: Any) -> Any:
    """A field that a model may leave out. The words tell it what to write there."""
    return Field(default=default, description=words, **bounds)


PROSE, FACT = "prose", "fact"  # mark the fields whose sentences or items are proved before they become memory
Text = Annotated[str, StringConstraints(strip_whitespace=True), BeforeValidator(_join_texts)]
TextOrNull = Annotated[Text, BeforeValidator(lambda written: "" if written is None else written)]
Prose = Annotated[Text, PROSE]
Records: TypeAlias = Annotated[list[T], WrapValidator(_keep_valid)]
OptionalRecords: TypeAlias = Annotated[list[T], WrapValidator(_keep_any_valid)]
Texts: TypeAlias = Annotated[list[Text], BeforeValidator(_read_texts)]


class Shown(BaseModel):
    """A piece of retrieved text in a prompt: data under a label, never an instruction.

    `kind` is passage, summary, episode, gist or fact, or the name of a layer from outside. `document` names the
    document where it has no title; `place` is where in the document the piece is, as "ch. 3, part 12 of 59".
    """

    label: str
    text: str
    title: str = ""
    kind: str = "passage"
    document: str = ""
    place: str = ""
