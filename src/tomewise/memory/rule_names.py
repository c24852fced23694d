"""The names of layers that have settings: each setting that is not the usual one is part of the name."""

from __future__ import annotations

from dataclasses import fields
from typing import TypeVar

R = TypeVar("R")


def name_layer(name: str, rules: R, usual: R) -> str:
    """The name of a layer with these rules, such as `schemata:k=4`; a text stands there without the name of its field.

    Both are instances of one dataclass, with numbers and texts in their fields.
    """
    values = {field.name: getattr(rules, field.name) for field in fields(rules)}  # type: ignore[arg-type]
    changed = {field: value for field, value in values.items() if value != getattr(usual, field)}
    parts = [value if isinstance(value, str) else f"{field}={value:g}" for field, value in changed.items()]
    return ":".join([name, *([",".join(parts)] if parts else [])])
