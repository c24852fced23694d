"""Find every place of documents that has words, a value, a name or a pattern: exactly, without a model."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias, get_args

from tomewise.errors import UsageError
from tomewise.reading.places import find_place
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
    """See `Tome.find`. Its coverage says what was read, and not what nobody read when it was added."""
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
    counts = _Counts()
    quotes: list[Quote] = []
    for record in records:
        text = store.document(record.id).text
        try:
            places = _find_all(finders, text, MOST - counts.total)
        except ValueError as error:
            raise UsageError(str(error)) from None
        if not places:
            continue
        located = list(_locate(store, record, text, places))
        counts.add(record, located)
        first, last = max(0, skip - counts.before), None if limit is None else max(0, skip + limit - counts.before)
        quotes += [_make_quote(record, text, *each) for each in located[first:last]]
    passages = sum(record.passages for record in records)
    return Hits(
        wanted=tuple(wanted),
        kind=kind,
        total=counts.total,
        counts={name: tuple(counter.most_common()) for name, counter in counts.by.items() if counter},
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


_Located: TypeAlias = tuple[Passage, Place, int, int]


def _locate(store: Texts, record: DocumentRecord, text: str, places: Sequence[finding.Place]) -> Iterator[_Located]:
    """Each place with the passage in which it begins, and what the source says of where that is."""
    passages = list(store.passages(documents=[record.id]).values())
    starts = [passage.start for passage in passages]
    for start, end in places:
        passage = passages[max(0, bisect_right(starts, start) - 1)]
        yield passage, find_place(passage, start - passage.start, end - passage.start), start, end


def _make_quote(record: DocumentRecord, text: str, passage: Passage, place: Place, start: int, end: int) -> Quote:
    begins = max(text.rfind("\n", 0, start) + 1, start - _AROUND)
    stops = text.find("\n", end)
    return Quote(
        document=record.id,
        passage=passage.id,
        position=passage.position,
        start=start,
        end=end,
        text=text[start:end],
        title=record.title,
        place=place,
        before=text[begins:start],
        after=text[end : min(len(text) if stops < 0 else stops, end + _AROUND)],
    )


@dataclass(slots=True)
class _Counts:
    """How many hits there are in all, before the last document, and by what the places say."""

    total: int = 0
    before: int = 0
    by: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter() for name in ("document", "chapter", "speaker", "time")}
    )

    def add(self, record: DocumentRecord, located: Sequence[_Located]) -> None:
        self.before = self.total
        self.total += len(located)
        self.by["document"][record.id] += len(located)
        for _, place, _, _ in located:
            for name, value in (
                ("chapter", " › ".join(place.chapter)),
                ("speaker", place.speaker),
                ("time", place.time),
            ):
                if value:
                    self.by[name][value] += 1


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
