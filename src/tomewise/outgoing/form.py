"""The form that all models of what goes out share: how they read our nouns, name documents, and write places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import Annotated, Any, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
)
from typing_extensions import TypedDict

Naming: TypeAlias = Callable[[str], str]  # from the id of a document to the name that is shown


class Outgoing(BaseModel):
    """What all models share. Unknown keys are ignored, so a model reads what a later version wrote."""

    model_config = ConfigDict(from_attributes=True, defer_build=True, ser_json_inf_nan="constants")

    @classmethod
    def of(cls, thing: object, naming: Naming | None = None, **more: Any) -> Self:
        """The model of a noun (a dataclass or plain data), with further fields; `naming` names its documents."""
        return cls.model_validate({**read_fields(thing), **more}, context={"naming": naming})

    def write(self) -> dict[str, Any]:
        """The object as plain JSON data."""
        return self.model_dump(mode="json")


def read_fields(thing: Any) -> dict[str, Any]:
    """The fields of a dataclass or a model, as they are; plain data as a dictionary of its own."""
    if not is_dataclass(thing):
        return dict(thing)
    return {field.name: getattr(thing, field.name) for field in fields(thing)}


def _name_document(document: str, info: ValidationInfo) -> str:
    naming = _find_naming(info)
    return naming(document) if naming else document


def _name_source(source: str, info: ValidationInfo) -> str:
    return PurePath(source).name if _find_naming(info) else source


def _find_naming(info: ValidationInfo) -> Naming | None:
    naming: Naming | None = (info.context or {}).get("naming")
    return naming


def _write_place(place: Any) -> Any:
    """A place as `place.as_plain_data` writes it: the fields that are set."""
    return {name: value for name, value in read_fields(place).items() if value not in (None, "", ())}


def sort_set(values: Any) -> Any:
    """A set as a sorted list, anything else as it is."""
    return sorted(values) if isinstance(values, frozenset) else values


class PlaceFields(TypedDict, total=False):
    """Where a text stands in its document: what the source says of it."""

    chapter: list[str]
    page: int
    last_page: int
    slide: int
    row: int
    last_row: int
    cell: int
    time: str
    speaker: str


DocumentName: TypeAlias = Annotated[str, AfterValidator(_name_document)]
Place: TypeAlias = Annotated[PlaceFields, BeforeValidator(_write_place)]
Sorted: TypeAlias = Annotated[list[str], BeforeValidator(sort_set)]
SourceName: TypeAlias = Annotated[
    str, AfterValidator(_name_source), Field(description="Where it came from; with a naming, only the file's name.")
]
