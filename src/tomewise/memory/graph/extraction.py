"""What one text says, as the graph takes it in: entities, facts, and what had to be left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tomewise.memory.graph.entities import normalise_name

LONGEST_NAME = 200  # characters, normalised; the longest of 52,306 parts of published triples but one has 135
LONGEST_TEXT = 2000  # characters of a description


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement that ties `head` to `tail`, both normalised names. Equal facts of several passages are one.

    `text` is what is embedded and shown. `data` is what a style keeps beside it, plain JSON; it takes part in
    whether two facts are equal by way of `key`.
    """

    head: str
    tail: str
    text: str
    key: tuple[str, ...]
    data: Mapping[str, Any] = field(hash=False, compare=False)


@dataclass(frozen=True, slots=True)
class Mention:
    """What one text says of an entity. `entity` is the normalised name, `name` as the text wrote it."""

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
    dirt: Mapping[str, int] = field(default_factory=dict)  # what was left out or mended, counted by kind


class Sieve:
    """Turns what a model wrote into names, and counts by kind what it could not use as it was."""

    def __init__(self) -> None:
        self.dirt: Counter[str] = Counter()

    def read_names(self, given: object) -> list[str]:
        """The usable names in `given`, normalised: one for a string or number, several for a list of such."""
        return [name for text in self.read_texts(given) if (name := self.name(text))]

    def name(self, text: str) -> str:
        """A normalised name, or an empty string where the text is none."""
        name = normalise_name(text[: 8 * LONGEST_NAME])
        if not name:
            self.dirt["empty names"] += 1
        elif len(name) > LONGEST_NAME:
            self.dirt[f"names over {LONGEST_NAME} characters"] += 1
            return ""
        return name

    def read_texts(self, given: object) -> Iterator[str]:
        """The strings in what should be one string."""
        if isinstance(given, str):
            yield given
        elif isinstance(given, int | float) and not isinstance(given, bool):
            self.dirt["numbers in place of strings"] += 1
            yield f"{given:g}" if isinstance(given, float) else str(given)
        elif isinstance(given, list | tuple):
            self.dirt["lists in place of strings"] += 1
            yield from (str(item) for item in given if isinstance(item, str | int) and not isinstance(item, bool))
        elif isinstance(given, dict):
            self.dirt["objects in place of strings"] += 1
            stated = (given.get(field) for field in ("name", "entity", "text"))
            yield from [text for text in stated if isinstance(text, str)][:1]
        else:
            self.dirt["values that are no text"] += 1


def drop_repeats(items: Iterable[str]) -> tuple[str, ...]:
    """Each item once, in order."""
    return tuple(dict.fromkeys(items))


def make_storable(text: str) -> str:
    """The text on one line without what no database takes (half surrogate pairs, NUL), cut to `LONGEST_TEXT`."""
    plain = text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
    return " ".join(plain.split())[:LONGEST_TEXT]
