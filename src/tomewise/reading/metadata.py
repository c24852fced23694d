"""What a source says of a document: its metadata, such as author, date and language, and how long all may be.

Metadata is stored with every passage or shown with every answer, so a file must not decide how long it is.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any
from xml.etree.ElementTree import Element

import yaml

from tomewise.errors import count_noun
from tomewise.reading.decode import join_words
from tomewise.types import Document, Metadata, Place, Scalar
from tomewise.types.plain import list_values

# The greatest lengths of title, headings, speakers, times and metadata.
TITLE = 200  # characters, as all of these
HEADING = 100
SPEAKER = 120
TIME = 40
DEEPEST = 8  # headings above one another
VALUE = 1_000  # of metadata
METADATA = 4_000  # of all fields together, written as JSON
ID = 1_000  # a longer one is refused, because a part of an id names another document
PATH = 4_096  # of a file, as long as Linux allows

UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # NUL and half surrogate pairs, which no text file can hold
_LONGEST = 1 << 16  # characters of front matter; a longer block is text
_DEEPEST = 20  # levels of nested YAML
_MOST = 1 << 63  # a number of more bits is not one that a store can compare
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,30}(?:[eE][-+]?[0-9]{1,2})?")
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_DATE = re.compile(
    r"(?:D:)?(\d{4})(?:(-?)(\d\d)(?:\2(\d\d)(?:[T ]?(\d\d):?(\d\d)(?::?\d\d(?:[.,]\d+)?)?"
    r"(?: ?(?:UTC|GMT|Z(?:00'00'?)?|[+-]\d\d[:']?(?:\d\d'?)?))?)?)?)?",
    re.ASCII,
)
# What libraries write unasked, so that it says nothing of a document.
_NOBODY = frozenset({"python-docx", "steve canny", "openpyxl", "anonymous", "(anonymous)", "unknown", "unspecified"})
_NEVER = frozenset({"2013-12-23 23:15", "2013-01-27 09:14"})  # of the templates of python-docx and python-pptx
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
    """The value of a scalar, or a list of the values in it; None for anything else."""
    if isinstance(node, yaml.SequenceNode):
        return list(map(_read_node, node.value))
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


# ---------------------------------------------------------------- origin


def read_properties(properties: Element) -> tuple[str, Metadata]:
    """The title that Office, OpenDocument or EPUB state in the XML of their properties, and the origin.

    When a document was made counts before when it was changed, and who made it before who changed it.
    """

    def list_texts(*names: str) -> list[str]:
        found = (element for name in names for element in properties.iterfind(f".//{{*}}{name}"))
        return list(filter(None, (join_words("".join(element.itertext())) for element in found)))

    dates = list_texts("creation-date", "created", "date", "modified")
    title, date, language = (next(iter(texts), "") for texts in (list_texts("title"), dates, list_texts("language")))
    authors = list_texts("initial-creator") or list_texts("creator")
    return title, describe_origin(authors=authors, date=date, language=language)


def describe_origin(*, authors: Iterable[str] = (), date: str = "", language: str = "") -> Metadata:
    """The metadata `author` (a list if there are several), `date` and `language`, as far as they are stated."""
    names = list(dict.fromkeys(name for each in authors if (name := join_words(each)).lower() not in _NOBODY and name))
    fields = {
        "author": names[0] if len(names) == 1 else names,
        "date": write_date(date),
        "language": join_words(language).replace("_", "-"),
    }
    return {name: value for name, value in fields.items() if value}


def add_losses(metadata: Metadata, losses: Mapping[str, int]) -> Metadata:
    """The metadata with how many things of which kinds a reader saw and left out, as `left_out`."""
    nouns = ((count, kind, *kind.partition(" without ")) for kind, count in losses.items() if count)
    counted = [count_noun(count, kind, f"{noun}s{more}{what}") for count, kind, noun, more, what in nouns]
    counted += list_values(metadata.get("left_out", ()))
    others = {name: value for name, value in metadata.items() if name != "left_out"}
    return {"left_out": counted, **others} if counted else metadata


def write_date(words: str) -> str:
    """A date as `2024`, `2024-05`, `2024-05-01` or `2024-05-01 12:04`; as it is written if it has another form.

    A time of midnight is left out: most who write it know the day alone.
    """
    words = join_words(words)
    found = _DATE.fullmatch(words)
    if found is None:
        return words
    year, _, month, day, hour, minute = found.groups()
    try:
        datetime(int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), tzinfo=UTC)
    except ValueError:
        return words
    date = "-".join(filter(None, (year, month, day)))
    date += f" {hour}:{minute}" if hour and (hour, minute) != ("00", "00") else ""
    return "" if date in _NEVER else date


# ---------------------------------------------------------------- lengths


def cut_document(document: Document) -> Document:
    """The document with title, metadata and marks of at most these lengths; the text stays as it is."""
    metadata = cut_metadata(document.metadata) if document.metadata else document.metadata
    marks = tuple((start, cut_place(place)) for start, place in document.marks)
    return replace(document, title=_cut_text(document.title, TITLE), metadata=metadata, marks=marks)


def cut_place(place: Place) -> Place:
    """The place with headings, speaker and time of at most these lengths."""
    chapter = place.chapter
    if len(chapter) > DEEPEST or any(len(heading) > HEADING for heading in chapter):
        chapter = tuple(_cut_text(heading, HEADING) for heading in chapter[:DEEPEST])
    elif len(place.speaker) <= SPEAKER and len(place.time) <= TIME:
        return place
    return replace(place, chapter=chapter, speaker=_cut_text(place.speaker, SPEAKER), time=_cut_text(place.time, TIME))


def cut_metadata(fields: Metadata) -> dict[str, Scalar | list[Scalar]]:
    """The first fields that fit, in their order: long strings are cut, and a list keeps its first items."""
    cut_fields: dict[str, Scalar | list[Scalar]] = {}
    left = METADATA
    for name, value in fields.items():
        is_list = isinstance(value, list | tuple)
        items = [_cut_text(item, VALUE) if isinstance(item, str) else item for item in list_values(value)]
        left -= _measure_json(name)
        fitting: list[Scalar] = []
        for item in items:
            if _measure_json(item) > left:
                break
            left -= _measure_json(item)
            fitting.append(item)
        if left >= 0 and (is_list or fitting):
            cut_fields[name] = fitting if is_list else fitting[0]
    return cut_fields


def _measure_json(value: Scalar) -> int:
    return len(json.dumps(value)) + 4  # with the signs between two of them


def _cut_text(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest].rstrip()
