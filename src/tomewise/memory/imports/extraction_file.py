"""Read extractions from a file and assign them to the passages of a tome, to use published extractions."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from tomewise.errors import ReadingError
from tomewise.language.roles import Relationship, RelationsOut, TriplesOut, TypedEntity
from tomewise.memory.graph.entity_names import normalise_name
from tomewise.memory.graph.extraction import Extraction, clean_relations, clean_triples, gather_extraction
from tomewise.memory.graph.graph_names import Style
from tomewise.store.contract import Texts
from tomewise.store.records import PASSAGES

Row = Mapping[str, Any]
_SEPARATOR = "<SEP>"
_HALF = 0.5
_FIELDS: Mapping[str, Mapping[str, type]] = {
    "passage": {"index": int, "text": str},
    "entity": {"name": str, "type": str, "description": str, "passages": list},
    "relation": {"head": str, "tail": str, "description": str, "passages": list},
}


@dataclass(frozen=True)
class Imported:
    """Extractions by passage key. `passages` counts the passages of the tome, to report coverage; `unmatched` counts
    documents (triples) or passages (relations) of the file that are not in the tome."""

    style: Style
    extractions: Mapping[int, Extraction]
    passages: int
    unmatched: int

    @property
    def coverage(self) -> str:
        """A phrase for people about what the file covers."""
        verb = "is" if self.unmatched == 1 else "are"
        missing = f"; {self.unmatched:,} of its texts {verb} not in this tome" if self.unmatched else ""
        return f"covers {len(self.extractions):,} of {self.passages:,} passages{missing}"


def read_extractions(path: Path, store: Texts) -> Imported:
    """Read a file of JSON lines in one of two formats; the first row decides which.

    Triples: `{id, entities, triples}`, where `id` is the id of a document. Relations: rows of `kind` "passage"
    (`index`, `text`), "entity" (`name`, `type`, `description`, `passages`) and "relation" (`head`, `tail`,
    `description`, `keywords`, `weight`, `passages`), with `<SEP>` between descriptions. Raises ReadingError with the
    line for a row in neither format, and for a file without any document of this tome. Unusable items in the lists of a
    row are cleaned and counted like those in a model's reply.
    """
    rows = list(_read_rows(path))
    if not rows:
        raise ReadingError(f"{path} holds no extractions: give JSON lines with `triples` or `kind`")
    style: Style = "relations" if "kind" in rows[0][1] else "triples"
    if style == "relations":
        extractions, unmatched = _assign_relations(_sort_rows(path, rows), store)
    else:
        extractions, unmatched = _assign_triples(_merge_rows(path, rows), store)
    if not extractions:
        expected = "texts of its passages" if style == "relations" else "ids in its rows"
        raise ReadingError(f"{path} is about no document of this tome: the {expected} match none of them")
    return Imported(style, extractions, len(store.node_keys(PASSAGES)), unmatched)


def _read_rows(path: Path) -> Iterator[tuple[int, Row]]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise ReadingError(f"{path} cannot be read ({error.strerror}): give a file of extractions") from error
    with file:
        yield from _read_lines(path, file)


def _read_lines(path: Path, lines: Iterable[bytes]) -> Iterator[tuple[int, Row]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise ReadingError(f"{path}, line {number}: not JSON in UTF-8 ({error}): fix or remove the row") from None
        if not isinstance(row, dict):
            raise ReadingError(f"{path}, line {number}: {line[:40]!r} is not an object: write one JSON object per line")
        yield number, row


def _assign_triples(by_document: Mapping[str, TriplesOut], store: Texts) -> tuple[dict[int, Extraction], int]:
    """Assign triples to passages of the tome; also count the documents of the file that are not in it."""
    texts: dict[str, dict[int, str]] = defaultdict(dict)
    for key, passage in store.passages(documents=by_document).items():
        texts[passage.document][key] = passage.content
    extractions: dict[int, Extraction] = {}
    for document, document_texts in texts.items():
        extractions |= _split_by_passage(clean_triples(by_document[document]), document_texts)
    return extractions, len(by_document) - len(texts)


def _merge_rows(path: Path, rows: Sequence[tuple[int, Row]]) -> dict[str, TriplesOut]:
    """Merge the rows of each document."""
    found: dict[str, TriplesOut] = {}
    for number, row in rows:
        row_id, entities, triples = row.get("id"), row.get("entities", []), row.get("triples")
        if isinstance(row_id, bool) or not isinstance(row_id, str | int):
            raise ReadingError(f"{path}, line {number}: `id` is {row_id!r}: make it the id of a document")
        if not isinstance(triples, list) or not isinstance(entities, list):
            raise ReadingError(f"{path}, line {number}: `entities` or `triples` is not a list: give both as lists")
        merged = found.setdefault(str(row_id), TriplesOut())
        merged.entities += entities
        merged.triples += triples
    return found


def _split_by_passage(whole: Extraction, texts: Mapping[int, str]) -> dict[int, Extraction]:
    """Split the extraction of a document: names and facts go to the passages that contain them, else to the first."""
    if len(texts) == 1:
        return dict.fromkeys(texts, whole)
    padded_texts = {key: f" {normalise_name(text)} " for key, text in texts.items()}
    first = list(padded_texts)[:1]
    facts = {
        fact.key: _find_passages_with(padded_texts, (fact.head, fact.tail))
        or _find_passages_with(padded_texts, (fact.head,))
        or first
        for fact in whole.facts
    }
    ends = {end for fact in whole.facts for end in (fact.head, fact.tail)}
    # An end that no passage contains goes where its fact goes.
    names = {
        name: _find_passages_with(padded_texts, (name,)) or ([] if name in ends else first) for name in whole.entities
    }
    found = {}
    for key in texts:
        passage_facts = [fact for fact in whole.facts if key in facts[fact.key]]
        listed = [name for name, keys in names.items() if key in keys]
        found[key] = gather_extraction(listed, passage_facts, (), whole.faults if key in first else {})
    return found


def _find_passages_with(padded_texts: Mapping[int, str], names: Sequence[str]) -> list[int]:
    """Find the passages that contain all of the names."""
    return [key for key, text in padded_texts.items() if all(f" {name} " in text for name in names)]


def _sort_rows(path: Path, rows: Sequence[tuple[int, Row]]) -> dict[str, list[Row]]:
    """Sort rows by kind. Raises ReadingError with the line for a row that lacks a field of its kind."""
    found: dict[str, list[Row]] = {kind: [] for kind in _FIELDS}
    for number, row in rows:
        kind = row.get("kind")
        if not isinstance(kind, str) or kind not in _FIELDS:
            raise ReadingError(f"{path}, line {number}: `kind` is {kind!r}: use one of {', '.join(_FIELDS)}")
        for name, expected in _FIELDS[kind].items():
            if not isinstance(row.get(name), expected):
                raise ReadingError(f"{path}, line {number}: `{name}` is {row.get(name)!r}: fix or remove the row")
        found[kind].append(row)
    return found


def _assign_relations(rows: Mapping[str, Sequence[Row]], store: Texts) -> tuple[dict[int, Extraction], int]:
    """Assign relations to passages of the tome; also count the passages of the file that are not in any document.

    The result has an extraction for each passage that the file covers at least by half. An entity goes to the passages
    that overlap one of the entity's passages well and contain its name, else to the passage that overlaps most. A
    relation goes the same way, with both names. The file does not say which description is from which passage, so each
    description goes to the passage that shares most of its words.
    """
    given = {row["index"]: row["text"] for row in rows["passage"]}
    overlaps = _locate_texts(given, store)
    covered = sorted({key for sizes in overlaps.values() for key in sizes})
    texts = {key: normalise_name(passage.content) for key, passage in store.passages(covered).items()}
    words = {index: frozenset(normalise_name(text).split()) for index, text in given.items()}
    raw: dict[int, RelationsOut] = {key: RelationsOut() for key in texts}
    for row in rows["entity"]:
        for index, description in _pair_descriptions(row, words):
            for key in _choose_passages(overlaps.get(index, {}), texts, row["name"]):
                raw[key].entities.append(TypedEntity(name=row["name"], type=row["type"], description=description))
    for row in rows["relation"]:
        strength = _compute_strength(row)
        for index, description in _pair_descriptions(row, words):
            fields = {"source": row["head"], "target": row["tail"], "description": description}
            relationship = Relationship(**fields, keywords=_read_keywords(row), strength=strength)
            for key in _choose_passages(overlaps.get(index, {}), texts, row["head"], row["tail"]):
                raw[key].relationships.append(relationship)
    return {key: clean_relations(reply) for key, reply in raw.items()}, len(given) - len(overlaps)


def _pair_descriptions(row: Row, words: Mapping[int, frozenset[str]]) -> list[tuple[int, str]]:
    """Pair the passages of a row with its descriptions; each passage and each description is used at least once."""
    indices = [index for index in row["passages"] if isinstance(index, int) and index in words]
    descriptions = [text for text in row["description"].split(_SEPARATOR) if text.strip()] or [""]
    if not indices:
        return []
    own = {text: frozenset(normalise_name(text).split()) for text in descriptions}

    def rate(text: str, index: int) -> float:
        """The share of the words of a description that a passage has."""
        return len(own[text] & words[index]) / max(1, len(own[text]))

    pairs = {(max(indices, key=lambda index: (rate(text, index), -index)), text): None for text in descriptions}
    used = {index for index, _ in pairs}
    for index in indices:
        if index not in used:
            pairs[index, max(descriptions, key=lambda text: rate(text, index))] = None
    return list(pairs)


def _choose_passages(overlaps: Mapping[int, int], texts: Mapping[int, str], *names: str) -> list[int]:
    """Choose the passages of the tome for names in a passage of the file that has these overlaps."""
    if not overlaps:
        return []
    name_counts = {key: sum(f" {normalise_name(name)} " in f" {texts[key]} " for name in names) for key in overlaps}
    best = max(overlaps, key=lambda key: (name_counts[key], overlaps[key], -key))
    if not name_counts[best]:
        return [best]
    # A neighbour that the passage of the file only touches gets its entities from another passage of the file.
    return [key for key in overlaps if name_counts[key] == name_counts[best] and 2 * overlaps[key] >= overlaps[best]]


def _read_keywords(row: Row) -> list[str]:
    keywords = row.get("keywords")
    if isinstance(keywords, str):
        keywords = keywords.replace(_SEPARATOR, ",").split(",")
    words = keywords if isinstance(keywords, list) else []
    return list(dict.fromkeys(word.strip() for word in words if isinstance(word, str) and word.strip()))


def _compute_strength(row: Row) -> float:
    """Compute the strength for one passage; the file has the sum over its passages."""
    weight = row.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        return 1.0
    return min(max(weight / max(1, len(row["passages"])), 0.0), 10.0)


def _locate_texts(texts: Mapping[int, str], store: Texts) -> dict[int, dict[int, int]]:
    """Where texts are among the passages: for each, by its index, the passages that it overlaps.

    Each passage comes with the number of shared characters. Those that the texts do not cover at least by half are left
    out. White space does not count, so that line ends and indents do not matter. A text is looked for first in the
    document of the text before it, behind that, then in all documents; texts may overlap.
    """
    documents = [_condense(store, record.id) for record in store.documents()]
    whole = " ".join(text for text, _ in documents)
    ends = list(accumulate(len(text) + 1 for text, _ in documents))
    overlaps: dict[int, dict[int, int]] = {}
    parts: dict[int, list[tuple[int, int]]] = {}
    after, number = 0, 0  # the offset of the text found last, and its document
    for index, text in texts.items():
        wanted = "".join(text.strip("\ufeff\ufffd").split())  # a token that was cut in half leaves such a character
        at = whole.find(wanted, after, ends[number]) if wanted and documents else -1
        if at < 0 and (not wanted or (at := whole.find(wanted)) < 0):
            continue
        after, number = at, bisect_right(ends, at)
        condensed, spans = documents[number]
        at -= ends[number] - 1 - len(condensed)
        overlaps[index] = {}
        for key, (first, last) in spans.items():
            start, end = max(at, first), min(at + len(wanted), last)
            if start < end:
                overlaps[index][key] = end - start
                parts.setdefault(key, []).append((start, end))
    lengths = {key: end - start for _, spans in documents for key, (start, end) in spans.items()}
    covered = {key for key, found in parts.items() if _measure_union(found) >= _HALF * lengths[key]}
    return {index: {key: sizes[key] for key in sizes if key in covered} for index, sizes in overlaps.items()}


def _condense(store: Texts, name: str) -> tuple[str, dict[int, tuple[int, int]]]:
    """A document without white space, and where its passages start and end in that, by key."""
    document, passages = store.document(name), store.passages(documents=[name])
    solid = [offset for offset, char in enumerate(document.text) if not char.isspace() and char not in "\ufeff\ufffd"]
    spans = {key: (bisect_left(solid, each.start), bisect_left(solid, each.end)) for key, each in passages.items()}
    return "".join(document.text[offset] for offset in solid), spans


def _measure_union(spans: list[tuple[int, int]]) -> int:
    total = reached = 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total
