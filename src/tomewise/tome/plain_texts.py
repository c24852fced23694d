"""One walk over the texts of plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def map_texts(value: Any, change: Callable[[str, str], str], key: str = "") -> Any:
    """Plain data with each text changed, except for keys. `change` gets a text, and the key that it is under."""
    if isinstance(value, str):
        return change(value, key)
    if isinstance(value, Mapping):
        return {name: map_texts(item, change, name) for name, item in value.items()}
    return [map_texts(item, change, key) for item in value] if isinstance(value, list | tuple) else value
