"""The metadata of a document: further fields that its source states, in rows and in the front matter of Markdown."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import yaml

from tomewise.types import Metadata, Scalar

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_LONGEST = 1 << 16  # characters of front matter; a longer block is text
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$", re.DOTALL | re.MULTILINE)


def select_plain(fields: Mapping[Any, Any]) -> dict[str, Scalar | list[Scalar]]:
    """The fields that can be metadata: strings, finite numbers, booleans, and lists of these. Dates become strings."""
    plain: dict[str, Scalar | list[Scalar]] = {}
    for name, value in fields.items():
        values = [_as_scalar(item) for item in (value if isinstance(value, list | tuple) else [value])]
        scalars = [item for item in values if item is not None]
        if isinstance(name, str) and len(scalars) == len(values):
            plain[name] = scalars if isinstance(value, list | tuple) else scalars[0]
    return plain


def find_unstorable(metadata: Metadata) -> str | None:
    """The first field that holds NUL or half of a surrogate pair, which a text file could not hold."""
    for name, value in metadata.items():
        texts = [name, *(value if isinstance(value, list | tuple) else [value])]
        if any(isinstance(text, str) and _UNSTORABLE.search(text) for text in texts):
            return name
    return None


def read_front_matter(text: str) -> dict[str, Scalar | list[Scalar]]:
    """The plain fields of the YAML between two lines `---` at the beginning of a text; empty without such a block.

    A block that is not YAML, or whose YAML is not a mapping, is text: a document may begin with a horizontal rule.
    """
    block = _FRONT_MATTER.match(text[:_LONGEST])
    if block is None:
        return {}
    try:
        fields = yaml.safe_load(block[1])
    except Exception:  # noqa: BLE001 - a tag such as `!!int x` lets the parser raise more than its own errors
        return {}
    return select_plain(fields) if isinstance(fields, dict) else {}


def _as_scalar(value: object) -> Scalar | None:
    if isinstance(value, date):  # a datetime is a date too
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float) else None
