"""Find every place of documents that has words, a value, a name or a pattern: exactly, without a model."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import get_args

from tomewise.errors import UsageError
from tomewise.reading.places import PlaceFinder, find_place
from tomewise.store.contract import Texts
from tomewise.store.records import DocumentRecord
from tomewise.text import finding
from tomewise.text.alignment import fold
from tomewise.text.finding import Finder, make_finder
from tomewise.text.stop_words import STOP
from tomewise.types import Coverage, FindKind, Hits, Passage, Place, Quote, Scope

MOST = 1_000_000  # hits that are counted
_AROUND = 100  # characters that are shown on either side of a hit, of its line
_NAME = r"[A-Z][\w.&'’-]*+(?: (?:of|the|de|von|van|[A-Z][\w.&'’-]*+)){0,5}"
_CALLED = r"(?:also )?(?:known as|called|alias|a\.k\.a\.|aka|nicknamed|hereinafter|formerly|short:?) "
_BEHIND = re.compile(
    rf"""\s?(?:\((?P<short>[A-Z][A-Z.&-]+)\)|(?:[(,] ?{_CALLED}(?:the |as )?["“]?|\( ?["“])(?P<name>{_NAME}))"""
)
_BEFORE_IT = 100  # characters in which another name stands before "(NAME)"
_BEFORE = re.compile(rf"(?<![\w.&'’-])(?P<name>{_NAME})\s?\((?:{_CALLED})?$")


def find_in_documents(
    store: Texts,
    within: Scope | None,
    wanted: Sequence[str],
    kind: FindKind,
    *,
    case: bool,
    limit: int | None,
    skip: int,
) -> Hits:
    """See `Tome.find`; a scope of entities holds the places that begin in its passages.

    Its coverage says what was read, and not what nobody read when it was added.
    """
    if kind not in get_args(FindKind):
        raise UsageError(f"kind must be one of {', '.join(get_args(FindKind))}, not {kind!r:.200}")
    if skip < 0 or (limit or 0) < 0:
        raise UsageError(f"cannot show {limit} places after {skip}: give numbers from 0 up")
    if not any(map(str.strip, wanted)):
        raise UsageError("nothing is named to find: give words, a value, a name or a pattern")
    records = [record for record in store.documents(within) if record.passages]
    try:
        if kind == "name":  # the capitals of an acronym tell it from a word
            wanted = _list_aliases(store, records, wanted)
            finders = [make_finder(each, case=case or each.isupper()) for each in wanted]
        else:
            finders = [make_finder(each, kind, case=case) for each in wanted]
    except ValueError as error:
        raise UsageError(str(error)) from None
    allowed = store.keys_within(within) if within and (within.entities is not None or within.without_entities) else None
    inside = None if allowed is None else frozenset(allowed.tolist())
    counts = {name: Counter[str]() for name in ("document", "chapter", "speaker", "time")}
    total = 0
    quotes: list[Quote] = []
    for record in records:
        text = store.document(record.id).text
        try:
            places = _find_all(finders, text, MOST - total)
        except ValueError as error:
            raise UsageError(str(error)) from None
        for passage, here in _divide(store, record, places, inside):
            find = PlaceFinder(passage.text, passage.marks).find if passage.marks else None
            counts["document"][record.id] += len(here)
            if find is None:
                _count(counts, passage.place, len(here))
            else:
                for start, end in here:
                    _count(counts, find(start - passage.start, end - passage.start), 1)
            first, last = max(0, skip - total), None if limit is None else max(0, skip + limit - total)
            quotes += [_make_quote(record, text, passage, *place) for place in here[first:last]]
            total += len(here)
    passages = sum(record.passages for record in records) if inside is None else len(inside)
    return Hits(
        wanted=tuple(wanted),
        kind=kind,
        total=total,
        counts={name: tuple(counter.most_common()) for name, counter in counts.items() if counter},
        quotes=tuple(quotes),
        coverage=Coverage(passages=passages, read=passages),
    )


def _find_all(finders: Iterable[Finder], text: str, most: int) -> list[finding.Place]:
    """The hits of all finders, in order; of two that overlap the first, of two that begin together the longer."""
    all_found = list(islice((place for find in finders for place in find(text)), most + 1))
    if len(all_found) > most:
        raise UsageError(f"more than {MOST:,} places have this: look for something that fewer have")
    found = sorted(set(all_found), key=lambda place: (place[0], -place[1]))
    apart: list[finding.Place] = []
    for place in found:
        if not apart or place[0] >= apart[-1][1]:
            apart.append(place)
    return apart


def _divide(
    store: Texts, record: DocumentRecord, places: Sequence[finding.Place], inside: Collection[int] | None
) -> Iterator[tuple[Passage, Sequence[finding.Place]]]:
    """The passages of a document in which places begin, of these keys if any are given, each with those places."""
    found = store.passages(documents=[record.id]) if places else {}
    begins = [start for start, _ in places]
    ends = [bisect_left(begins, passage.start) for passage in found.values()][1:]
    for (key, passage), first, last in zip(found.items(), [0, *ends], [*ends, len(begins)], strict=False):
        if first < last and (inside is None or key in inside):
            yield passage, places[first:last]


def _count(counts: Mapping[str, Counter[str]], place: Place, places: int) -> None:
    """Count so many places by what their source says of them."""
    for name, value in (("chapter", " › ".join(place.chapter)), ("speaker", place.speaker), ("time", place.time)):
        if value:
            counts[name][value] += places


def _make_quote(record: DocumentRecord, text: str, passage: Passage, start: int, end: int) -> Quote:
    around = max(0, start - _AROUND), min(len(text), end + _AROUND)  # to look further takes long in a long line
    begins = max(around[0], text.rfind("\n", around[0], start) + 1)
    stops = text.find("\n", end, around[1])
    return Quote(
        document=record.id,
        passage=passage.id,
        position=passage.position,
        start=start,
        end=end,
        text=text[start:end],
        title=record.title,
        place=find_place(passage, start - passage.start, end - passage.start),
        before=text[begins:start],
        after=text[end : around[1] if stops < 0 else stops],
    )


# ---------------------------------------------------------------- aliases


def _list_aliases(store: Texts, records: Iterable[DocumentRecord], names: Sequence[str]) -> list[str]:
    """The names, and those that the documents give as others for one of them: "World Health Organization (WHO)"."""
    found = dict.fromkeys(names)
    words = [make_finder(name) for name in names]
    for record in records:
        text = store.document(record.id).text
        for start, end in (place for find in words for place in find(text)):
            if behind := _BEHIND.match(text, end):
                short = behind["short"]
                called = short or behind["name"].rstrip(".,")
                if _spells(short, text[start:end]) if short else called.lower() not in STOP:
                    found.setdefault(called)
            if text.startswith(")", end) and (before := _BEFORE.search(text[max(0, start - _BEFORE_IT) : start])):
                found.setdefault(before["name"].removeprefix("The "))
    return list(found)


def _spells(short: str, name: str) -> bool:
    """Whether letters are the first ones of the words of a name, in their order."""
    initials = iter("".join(word[0] for word in fold(name).words))
    return all(letter in initials for letter in fold(short.replace(".", "")).line.replace(" ", ""))
