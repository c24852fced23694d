"""Inputs of the roles, made from their fields: texts of a test stand wherever the text of somebody else may stand."""

from collections.abc import Sequence
from types import UnionType
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from tomewise.types import Column

OURS = {
    "layer": "tree",
    "read": ["E7"],
    "instructions": "One word.",
    "form": "short",
}  # from this program, and from who asks


def fill(kind: type[BaseModel], texts: Sequence[str], *, bare: bool = False) -> BaseModel:
    """An input of which every text is all of `texts`, and every list has one item for each of them.

    A bare one has the required fields alone.
    """
    fields = {name: field for name, field in kind.model_fields.items() if not bare or field.is_required()}
    values = {name: OURS.get(name) or _make_value(field.annotation, texts) for name, field in fields.items()}
    flags = {name: not field.default for name, field in fields.items() if field.annotation is bool}
    letters = {name: values[name][:26] for name in ("options",) if name in values}
    return kind(**{**values, **flags, **letters})


def _make_value(annotation: Any, texts: Sequence[str]) -> Any:
    if annotation is str:
        return " ".join(texts)
    if annotation in (int, bool):
        return annotation(2)
    if get_origin(annotation) is list:
        (item,) = get_args(annotation)
        return list(texts) if item is str else [_make_item(item, texts, text) for text in texts]
    first = get_args(annotation)[0]
    return _make_value(first, texts) if get_origin(annotation) is UnionType else first


def _make_item(kind: type[BaseModel] | type[Column], texts: Sequence[str], text: str) -> BaseModel | Column:
    """A row of a list: one of the texts, and all of them as its longest text."""
    if not issubclass(kind, BaseModel):
        return kind(name=text, about=text)
    values = {name: _make_value(field.annotation, [text]) for name, field in kind.model_fields.items()}
    longest = {name: " ".join(texts) for name in ("text", "description", "answer") if name in values}
    return kind(**{**values, **longest})
