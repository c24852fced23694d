"""Relations extracted elsewhere from passages that were cut elsewhere, laid to the passages of a tome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tomewise.errors import ReadingError
from tomewise.language.roles import Relationship, RelationsOut, TypedEntity
from tomewise.memory.graph.entities import normalise_name
from tomewise.memory.graph.extraction import Extraction
from tomewise.memory.graph.relations import clean_relations
from tomewise.memory.imports.foreign_spans import TextPlaces, locate_texts

if TYPE_CHECKING:
    from tomewise.store.sqlite.store import SqliteStore

_SEPARATOR = "<SEP>"
_FIELDS: Mapping[str, tuple[tuple[str, type | tuple[type, ...]], ...]] = {
    "passage": (("index", int), ("text", str)),
    "entity": (("name", str), ("type", str), ("description", str), ("passages", list)),
    "relation": (("head", str), ("tail", str), ("description", str), ("passages", list)),
}


@dataclass(slots=True)
class Relations:
    """The rows of a file: their passages by index, entities and relations."""

    passages: dict[int, str] = field(default_factory=dict)
    entities: list[Mapping[str, Any]] = field(default_factory=list)
    relations: list[Mapping[str, Any]] = field(default_factory=list)


def parse_relations(path: Path, rows: Sequence[tuple[int, Mapping[str, Any]]]) -> Relations:
    """The rows by kind. Raises ReadingError with the line for a row that lacks what its kind has."""
    found = Relations()
    for number, row in rows:
        kind = row.get("kind")
        if not isinstance(kind, str) or kind not in _FIELDS:
            raise ReadingError(f"{path}, line {number}: `kind` is {kind!r}: use one of {', '.join(_FIELDS)}")
        for name, sort in _FIELDS[kind]:
            if not isinstance(row.get(name), sort):
                raise ReadingError(f"{path}, line {number}: `{name}` is {row.get(name)!r}: mend or leave out the row")
        if kind == "passage":
            found.passages[row["index"]] = row["text"]
        else:
            (found.entities if kind == "entity" else found.relations).append(row)
    return found


def assign_relations(read: Relations, store: SqliteStore) -> tuple[dict[int, Extraction], int]:
    """Extractions by passage key, of the passages that the file covers at least by half, and how many of the file's
    passages are in no document.

    An entity goes to the passages that overlap one of its own well and spell its name, else to the one that overlaps
    most; a relation likewise with both names.
    The file does not say which description is from which passage: each goes where most of its words are.
    """
    places = locate_texts(read.passages, store)
    texts = {key: normalise_name(passage.content) for key, passage in store.passages(sorted(places.covered)).items()}
    words = {index: frozenset(normalise_name(text).split()) for index, text in read.passages.items()}
    raw: dict[int, RelationsOut] = {key: RelationsOut() for key in texts}
    for row in read.entities:
        for index, said in _pair_descriptions(row, words):
            for key in _choose_passages(places, texts, index, row["name"]):
                raw[key].entities.append(TypedEntity(name=row["name"], type=row["type"], description=said))
    for row in read.relations:
        strength = _compute_strength(row)
        for index, said in _pair_descriptions(row, words):
            given = {"source": row["head"], "target": row["tail"], "description": said}
            relationship = Relationship(**given, keywords=_read_keywords(row), strength=strength)
            for key in _choose_passages(places, texts, index, row["head"], row["tail"]):
                raw[key].relationships.append(relationship)
    return {key: clean_relations(one) for key, one in raw.items()}, len(read.passages) - len(places.overlaps)


def _pair_descriptions(row: Mapping[str, Any], words: Mapping[int, frozenset[str]]) -> list[tuple[int, str]]:
    """Passages of a row with the descriptions that are from them: every description and every passage is used."""
    indices = [index for index in row["passages"] if isinstance(index, int) and index in words]
    said = [text for text in row["description"].split(_SEPARATOR) if text.strip()] or [""]
    if not indices:
        return []
    fits = {
        (at, index): _compute_overlap(frozenset(normalise_name(text).split()), words[index])
        for at, text in enumerate(said)
        for index in indices
    }
    pairs = {(max(indices, key=lambda index: (fits[at, index], -index)), text): None for at, text in enumerate(said)}
    used = {index for index, _ in pairs}
    for index in indices:
        if index not in used:
            best = max(range(len(said)), key=lambda at: (fits[at, index], -at))
            pairs[index, said[best]] = None
    return list(pairs)


def _compute_overlap(of: frozenset[str], there: frozenset[str]) -> float:
    return len(of & there) / len(of) if of else 0.0


def _choose_passages(places: TextPlaces, texts: Mapping[int, str], index: int, *names: str) -> list[int]:
    """Our passages for what one of theirs says of these names."""
    overlaps = {key: size for key, size in places.overlaps.get(index, {}).items() if key in texts}
    if not overlaps:
        return []
    spelled = {key: sum(f" {normalise_name(name)} " in f" {texts[key]} " for name in names) for key in overlaps}
    best = max(overlaps, key=lambda key: (spelled[key], overlaps[key], -key))
    if not spelled[best]:
        return [best]
    # A neighbour of which theirs holds but the rim has its own.
    return [key for key in overlaps if spelled[key] == spelled[best] and 2 * overlaps[key] >= overlaps[best]]


def _read_keywords(row: Mapping[str, Any]) -> list[str]:
    given = row.get("keywords")
    if isinstance(given, str):
        return _clean_words(given.replace(_SEPARATOR, ",").split(","))
    return _clean_words(given) if isinstance(given, list) else []


def _clean_words(given: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(word.strip() for word in given if isinstance(word, str) and word.strip()))


def _compute_strength(row: Mapping[str, Any]) -> float:
    """The strength of one passage: the file holds their sum."""
    weight = row.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        return 1.0
    return min(max(weight / max(1, len(row["passages"])), 0.0), 10.0)
