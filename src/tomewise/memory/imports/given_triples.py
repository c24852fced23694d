"""Extractions made elsewhere, laid to the passages of a tome, so that published ones can be used."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tomewise.errors import ReadingError
from tomewise.language.roles import TriplesOut
from tomewise.memory.graph.entities import normalise_name
from tomewise.memory.graph.extraction import Extraction, drop_repeats
from tomewise.memory.graph.graph_names import Style
from tomewise.memory.graph.triples import clean_triples
from tomewise.memory.imports.given_relations import assign_relations, parse_relations
from tomewise.store.sqlite.write import PASSAGES

if TYPE_CHECKING:
    from tomewise.store.sqlite.store import SqliteStore

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Imported:
    """Extractions by passage key. `passages` is how many the tome holds, so that coverage can be told; `unmatched`
    counts rows of documents, or passages, that are not in the tome."""

    style: Style
    extractions: Mapping[int, Extraction]
    passages: int
    rows: int
    unmatched: int

    @property
    def coverage(self) -> str:
        """For a person: what the file covers."""
        are = "is" if self.unmatched == 1 else "are"
        missed = f"; {self.unmatched:,} of its texts {are} not in this tome" if self.unmatched else ""
        return f"covers {len(self.extractions):,} of {self.passages:,} passages{missed}"


def read_extractions(path: Path, store: SqliteStore) -> Imported:
    """A file of JSON lines in either of two formats, told apart by the first row.

    Triples: `{id, entities, triples}`, `id` being that of a document. Relations: rows of `kind` "passage" (`index`,
    `text`), "entity" (`name`, `type`, `description`, `passages`) and "relation" (`head`, `tail`, `description`,
    `keywords`, `weight`, `passages`), several descriptions parted by `<SEP>`. Raises ReadingError with the line for
    a row that is neither, and for a file that is about none of the documents here; what is odd inside the lists of a
    row is cleaned and counted as a model's reply is.
    """
    rows = list(_read_rows(path))
    if not rows:
        raise ReadingError(f"{path} holds no extractions: give JSON lines with `triples` or `kind`")
    found = _import_relations(path, rows, store) if "kind" in rows[0][1] else _import_triples(path, rows, store)
    if not found.extractions:
        wanted = "texts of its passages" if found.style == "relations" else "ids in its rows"
        raise ReadingError(f"{path} is about no document of this tome: the {wanted} match none of them")
    return found


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
        raise ReadingError(f"{path}, line {number}: not JSON in UTF-8 ({error}): mend or leave out the row") from None
    if not isinstance(row, dict):
        raise ReadingError(f"{path}, line {number}: {line[:40]!r} is no object: write one JSON object per line")
    return row


def _import_relations(path: Path, rows: Sequence[tuple[int, Row]], store: SqliteStore) -> Imported:
    extractions, unmatched = assign_relations(parse_relations(path, rows), store)
    return Imported("relations", extractions, len(store.node_keys(PASSAGES)), len(rows), unmatched)


def _import_triples(path: Path, rows: Sequence[tuple[int, Row]], store: SqliteStore) -> Imported:
    by_document = _merge_rows(path, rows)
    texts: dict[str, dict[int, str]] = defaultdict(dict)
    for key, passage in store.passages_of(by_document).items():
        texts[passage.document][key] = passage.content
    extractions: dict[int, Extraction] = {}
    for document, some in texts.items():
        extractions |= _split_by_passage(clean_triples(by_document[document]), some)
    unmatched = len(by_document) - len(texts)
    return Imported("triples", extractions, len(store.node_keys(PASSAGES)), len(rows), unmatched)


def _merge_rows(path: Path, rows: Sequence[tuple[int, Row]]) -> dict[str, TriplesOut]:
    """What the rows say by document; several rows of one document are one."""
    found: dict[str, TriplesOut] = {}
    for number, row in rows:
        given, entities, triples = row.get("id"), row.get("entities", []), row.get("triples")
        if isinstance(given, bool) or not isinstance(given, str | int):
            raise ReadingError(f"{path}, line {number}: `id` is {given!r}: make it the id of a document")
        if not isinstance(triples, list) or not isinstance(entities, list):
            raise ReadingError(f"{path}, line {number}: `entities` or `triples` is no list: give both as lists")
        into = found.setdefault(str(given), TriplesOut())
        into.entities += entities
        into.triples += triples
    return found


def _split_by_passage(whole: Extraction, texts: Mapping[int, str]) -> dict[int, Extraction]:
    """A document's extraction by passage: names and facts go to the passages that say them, else to the first."""
    if len(texts) == 1:
        return dict.fromkeys(texts, whole)
    said = {key: f" {normalise_name(text)} " for key, text in texts.items()}
    first = list(said)[:1]
    facts = {
        fact.key: _find_passages_with(said, (fact.head, fact.tail)) or _find_passages_with(said, (fact.head,)) or first
        for fact in whole.facts
    }
    ends = {end for fact in whole.facts for end in (fact.head, fact.tail)}
    # An end that no passage spells is seen where its fact is.
    names = {name: _find_passages_with(said, (name,)) or ([] if name in ends else first) for name in whole.entities}
    found = {}
    for place, key in enumerate(texts):
        mine = tuple(fact for fact in whole.facts if key in facts[fact.key])
        listed = [name for name, keys in names.items() if key in keys]
        listed += [end for fact in mine for end in (fact.head, fact.tail)]
        found[key] = Extraction(drop_repeats(listed), mine, dirt=whole.dirt if place == 0 else {})
    return found


def _find_passages_with(said: Mapping[int, str], names: Sequence[str]) -> list[int]:
    """The passages that say all of the names."""
    return [key for key, text in said.items() if all(f" {name} " in text for name in names)]
