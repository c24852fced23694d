"""What a model extracts from one text: entities, facts, and counts of unusable parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tomewise.memory.graph.entity_names import normalise_name

LONGEST_NAME = 200  # normalised characters; all but one of 52,306 parts of published triples have 135 or fewer
LONGEST_TEXT = 2000  # characters of a description


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement that links `head` to `tail`, both normalised names. Equal facts of several passages are one fact.

    `text` is what is embedded and shown. `data` is plain JSON with the further fields of a style. Two
    facts are equal when their `key` is equal.
    """

    head: str
    tail: str
    text: str
    key: tuple[str, ...]
    data: Mapping[str, Any] = field(hash=False, compare=False)


@dataclass(frozen=True, slots=True)
class Mention:
    """What one text says about an entity. `entity` is the normalised name, `name` the spelling in the text."""

    entity: str
    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """The content of one text: each entity, fact and mention once, in the order of the reply."""

    entities: tuple[str, ...]
    facts: tuple[Fact, ...]
    mentions: tuple[Mention, ...] = ()
    faults: Mapping[str, int] = field(default_factory=dict)  # parts that were left out or repaired, counted by kind


class ReplyCleaner:
    """Reads names and texts from the values of a reply, and counts by kind the values that are unusable or repaired."""

    def __init__(self) -> None:
        self.faults: Counter[str] = Counter()

    def read_names(self, value: object) -> list[str]:
        """Read the usable names in `value`, normalised: one from a string or number, several from a list of these."""
        return [name for text in self.read_texts(value) if (name := self.read_name(text))]

    def read_name(self, text: str) -> str:
        """Normalise a name; the result is an empty string where the text is not a usable name."""
        name = normalise_name(text[: 8 * LONGEST_NAME])
        if not name:
            self.faults["empty names"] += 1
        elif len(name) > LONGEST_NAME:
            self.faults[f"names over {LONGEST_NAME} characters"] += 1
            return ""
        return name

    def read_texts(self, value: object) -> Iterator[str]:
        """Yield the strings in a value that should be one string."""
        if isinstance(value, str):
            yield value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self.faults["numbers in place of strings"] += 1
            yield f"{value:g}" if isinstance(value, float) else str(value)
        elif isinstance(value, list | tuple):
            self.faults["lists in place of strings"] += 1
            yield from (str(item) for item in value if isinstance(item, str | int) and not isinstance(item, bool))
        elif isinstance(value, dict):
            self.faults["objects in place of strings"] += 1
            name_fields = (value.get(field) for field in ("name", "entity", "text"))
            yield from [text for text in name_fields if isinstance(text, str)][:1]
        else:
            self.faults["values that are no text"] += 1


def drop_repeats(items: Iterable[str]) -> tuple[str, ...]:
    """Keep each item once, in order."""
    return tuple(dict.fromkeys(items))


def make_storable(text: str) -> str:
    """Put the text on one line, replace what databases reject (half surrogate pairs, NUL), cut it to `LONGEST_TEXT`."""
    plain = text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
    return " ".join(plain.split())[:LONGEST_TEXT]
