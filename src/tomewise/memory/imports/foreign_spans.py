"""Find the places of texts that another program cut among the passages of a tome."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tomewise.types import Document, Passage

if TYPE_CHECKING:
    from tomewise.store.contract import Texts

_HALF = 0.5


@dataclass(frozen=True, slots=True)
class TextPlaces:
    """The places of texts among the passages.

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


def locate_texts(texts: Mapping[int, str], store: Texts) -> TextPlaces:
    """Find each text, first in the document of the text before it, then in all documents; texts may overlap."""
    documents = [_condense(store, record.id) for record in store.documents()]
    overlaps: dict[int, dict[int, int]] = {}
    spans: dict[int, list[tuple[int, int]]] = {}
    number, after = 0, 0  # the document and the place of the last text that was found
    for index, text in texts.items():
        wanted = _remove_spaces(text.strip("\ufeff\ufffd"))  # a token that was cut in half leaves such a character
        place = _find_text(wanted, documents, number, after) if wanted else None
        if place is None:
            continue
        number, after = place
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
    return TextPlaces(overlaps, covered)


def _condense(store: Texts, name: str) -> _CondensedDocument:
    document: Document = store.document(name)
    passages: dict[int, Passage] = store.passages_of([name])
    solid = [place for place, char in enumerate(document.text) if not char.isspace() and char not in "\ufeff\ufffd"]
    starts = tuple(bisect_left(solid, passage.start) for passage in passages.values())
    ends = tuple(bisect_left(solid, passage.end) for passage in passages.values())
    return _CondensedDocument("".join(document.text[place] for place in solid), tuple(passages), starts, ends)


def _remove_spaces(text: str) -> str:
    return "".join(text.split())


def _find_text(wanted: str, documents: list[_CondensedDocument], current: int, after: int) -> tuple[int, int] | None:
    """Find the document and the place of a text: first after the last find, then anywhere."""
    if documents and (place := documents[current].text.find(wanted, after)) >= 0:
        return current, place
    for number, document in enumerate(documents):
        if (place := document.text.find(wanted)) >= 0:
            return number, place
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
