"""Types of fields that several roles share."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BaseModel, StringConstraints, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from tomewise.fallbacks import PART_SKIPPED, record_fallback

T = TypeVar("T")
Text = Annotated[str, StringConstraints(strip_whitespace=True)]


def _keep_valid(written: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """The records that fit, one alone too; the others are left out and counted. Raises if none fits."""
    records = [written] if isinstance(written, str | dict) else written
    try:
        return validate(records)
    except ValidationError:
        if not isinstance(records, list):
            raise
        kept = [record for each in records for record in _validate_alone(each, validate)]
        if not kept:
            raise
        for _ in range(len(records) - len(kept)):
            record_fallback(PART_SKIPPED)
        return kept


def _validate_alone(record: Any, validate: ValidatorFunctionWrapHandler) -> list[Any]:
    try:
        return list(validate([record]))
    except ValidationError:
        return []


Records: TypeAlias = Annotated[list[T], WrapValidator(_keep_valid)]


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
