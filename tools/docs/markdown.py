"""Small pieces of Markdown that the generators of pages share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

REFERENCE = "#/components/schemas/"
_BOUNDS = {
    "minimum": "from {}",
    "maximum": "to {}",
    "exclusiveMinimum": "above {}",
    "minLength": "{} characters or more",
    "maxLength": "at most {} characters",
    "maxItems": "at most {}",
}


def write_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table, with an empty line behind it; no lines without rows."""
    lines = [_write_row(row) for row in rows]
    return [_write_row(heading), _write_row(["---"] * len(heading)), *lines, ""] if lines else []


def write_code(text: str) -> str:
    """A text as code, whatever marks it has."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def escape_html(text: str) -> str:
    """A text in which no tag begins outside of code."""
    parts = text.split("`")
    return "`".join(part if index % 2 else part.replace("<", "&lt;") for index, part in enumerate(parts))


def describe_schema(schema: Mapping[str, Any]) -> str:
    """The type of a value in words, from its JSON Schema; a named type links to its heading on the page."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(REFERENCE)
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return write_code(str(schema["const"]))
    if "enum" in schema:
        return ", ".join(write_code(str(value)) for value in schema["enum"])
    if several := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(describe_schema(each) for each in several))
    bounds = ", ".join(words.format(f"{schema[key]:,}") for key, words in _BOUNDS.items() if key in schema)
    return f"{_describe_kind(schema)}{f' ({bounds})' if bounds else ''}"


def _describe_kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "any value")
    if kind == "array":
        return f"list of {describe_schema(schema['items'])}" if schema.get("items") else "list"
    values = schema.get("additionalProperties")
    if kind == "object" and isinstance(values, Mapping) and values:
        return f"object with values: {describe_schema(values)}"
    return "text" if kind == "string" else str(kind)


def _write_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_escape_bars(' '.join(cell.split())) for cell in cells)} |"


def _escape_bars(cell: str) -> str:
    """A cell whose bars end no cell. Bars in code end none."""
    parts = cell.split("`")
    return "`".join(part if index % 2 else part.replace("|", "&#124;") for index, part in enumerate(parts))
