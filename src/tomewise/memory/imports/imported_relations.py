"""Assign relations from a file, whose passages were cut differently, to the passages of a tome."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tomewise.errors import ReadingError
from tomewise.language.roles import Relationship, RelationsOut, TypedEntity
from tomewise.memory.graph.entity_names import normalise_name
from tomewise.memory.graph.extraction import Extraction
from tomewise.memory.graph.relations import clean_relations
from tomewise.types import Document, Passage

if TYPE_CHECKING:
    from tomewise.store.contract import Texts

_SEPARATOR = "<SEP>"
_HALF = 0.5
_FIELDS: Mapping[str, tuple[tuple[str, type | tuple[type, ...]], ...]] = {
    "passage": (("index", int), ("text", str)),
    "entity": (("name", str), ("type", str), ("description", str), ("passages", list)),
    "relation": (("head", str), ("tail", str), ("description", str), ("passages", list)),
}


@dataclass(slots=True)
class Relations:
    """The rows of a file: passages by index, entities, and relations."""

    passages: dict[int, str] = field(default_factory=dict)
    entities: list[Mapping[str, Any]] = field(default_factory=list)
    relations: list[Mapping[str, Any]] = field(default_factory=list)


def parse_relations(path: Path, rows: Sequence[tuple[int, Mapping[str, Any]]]) -> Relations:
    """Sort rows by kind. Raises ReadingError with the line for a row that lacks a field of its kind."""
    found = Relations()
    for number, row in rows:
        kind = row.get("kind")
        if not isinstance(kind, str) or kind not in _FIELDS:
            raise ReadingError(f"{path}, line {number}: `kind` is {kind!r}: use one of {', '.join(_FIELDS)}")
        for name, expected in _FIELDS[kind]:
            if not isinstance(row.get(name), expected):
                raise ReadingError(f"{path}, line {number}: `{name}` is {row.get(name)!r}: fix or remove the row")
        if kind == "passage":
            found.passages[row["index"]] = row["text"]
        else:
            (found.entities if kind == "entity" else found.relations).append(row)
    return found


def assign_relations(relations: Relations, store: Texts) -> tuple[dict[int, Extraction], int]:
    """Assign relations to passages of the tome; also count the passages of the file that are not in any document.

    The result has an extraction for each passage that the file covers at least by half. An entity goes to the passages
    that overlap one of the entity's passages well and contain its name, else to the passage that overlaps most. A
    relation goes the same way, with both names. The file does not say which description is from which passage, so each
    description goes to the passage that shares most of its words.
    """
    located = locate_texts(relations.passages, store)
    texts = {key: normalise_name(passage.content) for key, passage in store.passages(sorted(located.covered)).items()}
    words = {index: frozenset(normalise_name(text).split()) for index, text in relations.passages.items()}
    raw: dict[int, RelationsOut] = {key: RelationsOut() for key in texts}
    for row in relations.entities:
        for index, description in _pair_descriptions(row, words):
            for key in _choose_passages(located, texts, index, row["name"]):
                raw[key].entities.append(TypedEntity(name=row["name"], type=row["type"], description=description))
    for row in relations.relations:
        strength = _compute_strength(row)
        for index, description in _pair_descriptions(row, words):
            fields = {"source": row["head"], "target": row["tail"], "description": description}
            relationship = Relationship(**fields, keywords=_read_keywords(row), strength=strength)
            for key in _choose_passages(located, texts, index, row["head"], row["tail"]):
                raw[key].relationships.append(relationship)
    return {key: clean_relations(reply) for key, reply in raw.items()}, len(relations.passages) - len(located.overlaps)


def _pair_descriptions(row: Mapping[str, Any], words: Mapping[int, frozenset[str]]) -> list[tuple[int, str]]:
    """Pair the passages of a row with its descriptions; each passage and each description is used at least once."""
    indices = [index for index in row["passages"] if isinstance(index, int) and index in words]
    descriptions = [text for text in row["description"].split(_SEPARATOR) if text.strip()] or [""]
    if not indices:
        return []
    fits = {
        (at, index): _compute_overlap(frozenset(normalise_name(text).split()), words[index])
        for at, text in enumerate(descriptions)
        for index in indices
    }
    pairs = {
        (max(indices, key=lambda index: (fits[at, index], -index)), text): None for at, text in enumerate(descriptions)
    }
    used = {index for index, _ in pairs}
    for index in indices:
        if index not in used:
            best = max(range(len(descriptions)), key=lambda at: (fits[at, index], -at))
            pairs[index, descriptions[best]] = None
    return list(pairs)


def _compute_overlap(words: frozenset[str], passage_words: frozenset[str]) -> float:
    return len(words & passage_words) / len(words) if words else 0.0


def _choose_passages(located: TextOverlaps, texts: Mapping[int, str], index: int, *names: str) -> list[int]:
    """Choose the passages of the tome for names in the passage `index` of the file."""
    overlaps = {key: size for key, size in located.overlaps.get(index, {}).items() if key in texts}
    if not overlaps:
        return []
    name_counts = {key: sum(f" {normalise_name(name)} " in f" {texts[key]} " for name in names) for key in overlaps}
    best = max(overlaps, key=lambda key: (name_counts[key], overlaps[key], -key))
    if not name_counts[best]:
        return [best]
    # A neighbour that the passage of the file only touches gets its entities from another passage of the file.
    return [key for key in overlaps if name_counts[key] == name_counts[best] and 2 * overlaps[key] >= overlaps[best]]


def _read_keywords(row: Mapping[str, Any]) -> list[str]:
    keywords = row.get("keywords")
    if isinstance(keywords, str):
        return _clean_words(keywords.replace(_SEPARATOR, ",").split(","))
    return _clean_words(keywords) if isinstance(keywords, list) else []


def _clean_words(words: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(word.strip() for word in words if isinstance(word, str) and word.strip()))


def _compute_strength(row: Mapping[str, Any]) -> float:
    """Compute the strength for one passage; the file has the sum over its passages."""
    weight = row.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        return 1.0
    return min(max(weight / max(1, len(row["passages"])), 0.0), 10.0)


@dataclass(frozen=True, slots=True)
class TextOverlaps:
    """Where texts are among the passages.

    `overlaps` has the passages that each text overlaps, by the index of the text, with the number of shared characters
    (without white space). `covered` are the passages that the texts cover at least by half.
    """

    overlaps: Mapping[int, Mapping[int, int]]
    covered: frozenset[int]


@dataclass(frozen=True, slots=True)
class _CondensedDocument:
    """A document without white space, so that line ends and indents do not matter.

    `keys`, `starts` and `ends` are those of its passages; starts and ends count in the text without white space.
    """

    text: str
    keys: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]


def locate_texts(texts: Mapping[int, str], store: Texts) -> TextOverlaps:
    """Find each text, first in the document of the text before it, then in all documents; texts may overlap."""
    documents = [_condense(store, record.id) for record in store.documents()]
    overlaps: dict[int, dict[int, int]] = {}
    spans: dict[int, list[tuple[int, int]]] = {}
    number, after = 0, 0  # the document and the offset of the text found last
    for index, text in texts.items():
        wanted = _remove_spaces(text.strip("\ufeff\ufffd"))  # a token that was cut in half leaves such a character
        found = _find_text(wanted, documents, number, after) if wanted else None
        if found is None:
            continue
        number, after = found
        overlaps[index] = {}
        for key, start, end in _find_overlaps(documents[number], after, after + len(wanted)):
            overlaps[index][key] = end - start
            spans.setdefault(key, []).append((start, end))
    lengths = {
        key: end - start
        for document in documents
        for key, start, end in zip(document.keys, document.starts, document.ends, strict=True)
    }
    covered = frozenset(key for key, parts in spans.items() if _measure_union(parts) >= _HALF * lengths[key])
    return TextOverlaps(overlaps, covered)


def _condense(store: Texts, name: str) -> _CondensedDocument:
    document: Document = store.document(name)
    passages: dict[int, Passage] = store.passages(documents=[name])
    solid = [offset for offset, char in enumerate(document.text) if not char.isspace() and char not in "\ufeff\ufffd"]
    starts = tuple(bisect_left(solid, passage.start) for passage in passages.values())
    ends = tuple(bisect_left(solid, passage.end) for passage in passages.values())
    return _CondensedDocument("".join(document.text[offset] for offset in solid), tuple(passages), starts, ends)


def _remove_spaces(text: str) -> str:
    return "".join(text.split())


def _find_text(wanted: str, documents: list[_CondensedDocument], current: int, after: int) -> tuple[int, int] | None:
    """Find the document and the offset of a text: first behind `after` in the document `current`, then anywhere."""
    if documents and (offset := documents[current].text.find(wanted, after)) >= 0:
        return current, offset
    for number, document in enumerate(documents):
        if (offset := document.text.find(wanted)) >= 0:
            return number, offset
    return None


def _find_overlaps(document: _CondensedDocument, start: int, end: int) -> list[tuple[int, int, int]]:
    return [
        (key, max(start, first), min(end, last))
        for key, first, last in zip(document.keys, document.starts, document.ends, strict=True)
        if max(start, first) < min(end, last)
    ]


def _measure_union(spans: list[tuple[int, int]]) -> int:
    total = reached = 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total
