"""The metadata of a document: further fields that its source states, in rows and in the front matter of Markdown."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import yaml

from tomewise.reading.lengths import list_values
from tomewise.types import Metadata, Scalar

UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # NUL and half surrogate pairs, which no text file can hold
_LONGEST = 1 << 16  # characters of front matter; a longer block is text
_DEEPEST = 20  # levels of nested YAML
_MOST = 1 << 63  # a number of more bits is not one that a store can compare
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,30}(?:[eE][-+]?[0-9]{1,2})?")
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$", re.DOTALL | re.MULTILINE)


def select_plain(fields: Mapping[Any, Any]) -> dict[str, Scalar | list[Scalar]]:
    """The fields that can be metadata: strings, numbers of 64 bits, booleans, lists of these; dates become strings."""
    plain: dict[str, Scalar | list[Scalar]] = {}
    for name, value in fields.items():
        values: list[Any] = list(map(_convert_scalar, list_values(value)))
        if isinstance(name, str) and None not in values:
            plain[name] = values if isinstance(value, list | tuple) else values[0]
    return plain


def find_unstorable(metadata: Metadata) -> str | None:
    """The first field that holds NUL or half of a surrogate pair, which a text file could not hold."""
    for name, value in metadata.items():
        if any(isinstance(text, str) and UNSTORABLE.search(text) for text in [name, *list_values(value)]):
            return name
    return None


def read_front_matter(text: str) -> tuple[dict[str, Scalar | list[Scalar]], int]:
    """The plain fields of the YAML between two lines `---` at the beginning of a text, and where that block ends.

    Without such a block there are no fields, and it ends at 0.

    A block that is not YAML, or whose YAML is not a mapping, is text: a document may begin with a horizontal rule. So
    is one with aliases, with tags, or nested deeper than 20: a few lines with them unfold to gigabytes. A value is a
    number only if it is written in decimal digits, so `0755`, `1:30` and `0xff` are strings, and so are dates.
    """
    block = _FRONT_MATTER.match(text[:_LONGEST])
    if block is None:
        return {}, 0
    try:
        root = yaml.compose(block[1], Loader=_PlainLoader)
    except (yaml.YAMLError, ValueError):  # ValueError: an escape such as `"\U00110000"`
        return {}, 0
    if not isinstance(root, yaml.MappingNode):
        return {}, 0
    pairs = [(name.value, _read_node(value)) for name, value in root.value if isinstance(name, yaml.ScalarNode)]
    return (select_plain(dict(pairs)), block.end()) if len(pairs) == len(root.value) else ({}, 0)


class _PlainLoader(yaml.BaseLoader):  # type: ignore[misc]  # PyYAML has no types
    """Composes nodes of YAML, and nothing from them. Raises YAMLError for what can unfold to more than its text."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None) is not None or self._depth >= _DEEPEST:
            raise yaml.YAMLError("an alias, a tag, or too many levels")
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _read_node(node: yaml.Node) -> object:
    """The value of a scalar or a list of scalars; None for anything else."""
    if isinstance(node, yaml.SequenceNode):
        return [_read_node(item) if isinstance(item, yaml.ScalarNode) else None for item in node.value]
    if not isinstance(node, yaml.ScalarNode):
        return None
    return read_plain(node.value) if node.style is None else node.value


def read_plain(word: str) -> Scalar | None:
    """The value of a word without quotation marks."""
    if word.lower() in ("", "~", "null"):
        return None
    if word.lower() in _TRUTHS:
        return _TRUTHS[word.lower()]
    if _INTEGER.fullmatch(word):
        return int(word)
    return float(word) if _DECIMAL.fullmatch(word) else word


def _convert_scalar(value: object) -> Scalar | None:
    if isinstance(value, date):  # a datetime is a date too
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not -_MOST <= value < _MOST:
        return None
    return value if isinstance(value, str | int | float) else None
