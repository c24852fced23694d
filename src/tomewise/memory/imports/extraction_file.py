"""Read extractions from a file and assign them to the passages of a tome, to use published extractions."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from tomewise.errors import ReadingError
from tomewise.language.roles import TriplesOut
from tomewise.memory.graph.entity_names import normalise_name
from tomewise.memory.graph.extraction import Extraction, drop_repeats
from tomewise.memory.graph.graph_names import Style
from tomewise.memory.graph.triples import clean_triples
from tomewise.memory.imports.imported_relations import assign_relations, parse_relations
from tomewise.store.records import PASSAGES
from tomewise.types import LayerReport, Report

if TYPE_CHECKING:
    from tomewise.store.contract import Texts


Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Imported:
    """Extractions by passage key. `passages` counts the passages of the tome, to report coverage; `unmatched` counts
    documents (triples) or passages (relations) of the file that are not in the tome."""

    style: Style
    extractions: Mapping[int, Extraction]
    passages: int
    rows: int
    unmatched: int

    @property
    def coverage(self) -> str:
        """A phrase for people about what the file covers."""
        verb = "is" if self.unmatched == 1 else "are"
        missing = f"; {self.unmatched:,} of its texts {verb} not in this tome" if self.unmatched else ""
        return f"covers {len(self.extractions):,} of {self.passages:,} passages{missing}"


@runtime_checkable
class ImportsExtractions(Protocol):
    """A layer that imports extractions of the texts of `source`, a node layer, in one style."""

    @property
    def source(self) -> str: ...
    @property
    def style(self) -> Style: ...

    def check_import(self, imported: Imported) -> None:
        """Raise UsageError if the layer cannot import these extractions."""

    async def import_extractions(self, imported: Imported, report: Report) -> LayerReport:
        """Add the extractions; texts that were processed before do not change. Raises UsageError."""


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
    imported = _import_relations(path, rows, store) if "kind" in rows[0][1] else _import_triples(path, rows, store)
    if not imported.extractions:
        expected = "texts of its passages" if imported.style == "relations" else "ids in its rows"
        raise ReadingError(f"{path} is about no document of this tome: the {expected} match none of them")
    return imported


def _read_rows(path: Path) -> Iterator[tuple[int, Row]]:
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, _parse_row(path, number, line)
    except OSError as error:
        raise ReadingError(f"{path} cannot be read ({error.strerror}): give a file of extractions") from error


def _parse_row(path: Path, number: int, line: bytes) -> Row:
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ReadingError(f"{path}, line {number}: not JSON in UTF-8 ({error}): fix or remove the row") from None
    if not isinstance(row, dict):
        raise ReadingError(f"{path}, line {number}: {line[:40]!r} is not an object: write one JSON object per line")
    return row


def _import_relations(path: Path, rows: Sequence[tuple[int, Row]], store: Texts) -> Imported:
    extractions, unmatched = assign_relations(parse_relations(path, rows), store)
    return Imported("relations", extractions, len(store.node_keys(PASSAGES)), len(rows), unmatched)


def _import_triples(path: Path, rows: Sequence[tuple[int, Row]], store: Texts) -> Imported:
    by_document = _merge_rows(path, rows)
    texts: dict[str, dict[int, str]] = defaultdict(dict)
    for key, passage in store.passages(documents=by_document).items():
        texts[passage.document][key] = passage.content
    extractions: dict[int, Extraction] = {}
    for document, document_texts in texts.items():
        extractions |= _split_by_passage(clean_triples(by_document[document]), document_texts)
    unmatched = len(by_document) - len(texts)
    return Imported("triples", extractions, len(store.node_keys(PASSAGES)), len(rows), unmatched)


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
    for number, key in enumerate(texts):
        passage_facts = tuple(fact for fact in whole.facts if key in facts[fact.key])
        listed = [name for name, keys in names.items() if key in keys]
        listed += [end for fact in passage_facts for end in (fact.head, fact.tail)]
        found[key] = Extraction(drop_repeats(listed), passage_facts, faults=whole.faults if number == 0 else {})
    return found


def _find_passages_with(padded_texts: Mapping[int, str], names: Sequence[str]) -> list[int]:
    """Find the passages that contain all of the names."""
    return [key for key, text in padded_texts.items() if all(f" {name} " in text for name in names)]
