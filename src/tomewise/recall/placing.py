"""Place what a question names first, and then the passage that each of these speaks of. Ours; calls no model.

"Which film has the director who was born later, A or B?" names two films, whose passages hold the titles of their
directors' passages word for word. A ranking has these behind directors of other films, or not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tomewise.calls import CallCount, read_calls
from tomewise.memory.graph.entity_names import normalise_name, split_words
from tomewise.recall.mentions import LONGEST, select_named, strip_title
from tomewise.recall.ranking import as_evidence, drop_repeats, score_by_place
from tomewise.recall.rewriting import take_stems
from tomewise.store.contract import Readable
from tomewise.text.stop_words import STOP
from tomewise.text.words import stem
from tomewise.types import DocumentId, Evidence, Retriever, Scope

_DEPTH = 50  # first pieces that stand for their documents; of a document without one it is its first passage
_SURE = 3  # places before those of less likely bridges, at least
_SPACES = ("documents", "vectors/passages")  # change with the documents and their titles


@dataclass(eq=False)
class Placed:
    """The ranking of a retriever of passages with bridges placed; where that moves any, scores are 1 / place.

    The first stays first. Then come the documents that the question names by their titles (`mentions.select_named`),
    in the order of the ranking, each with its best passage, and then the bridge of each: another document whose title
    stands in that passage (`find_links`). A bridge that is one word, and the second bridge of a passage, come only
    after these and after the first three. All else follows as it was. A title counts whole, and without the parenthesis
    at its end; of documents with equal ones the best of the ranking counts, else the first by id.

    Titles are kept in memory, and read again when documents change.
    """

    store: Readable
    retriever: Retriever
    _kept: tuple[Mapping[str, int], Mapping[str, DocumentId]] = field(default=({}, {}), init=False, repr=False)

    @property
    def calls(self) -> CallCount:
        return read_calls(self.retriever)

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The `limit` best passages."""
        found = await self.retriever.retrieve(query, max(limit, _DEPTH) if limit else 0, within=within)
        placed = await asyncio.to_thread(self._place, query, found, within)
        return found[:limit] if placed[:limit] == found[:limit] else score_by_place(placed, limit)

    def _place(self, question: str, ranking: Sequence[Evidence], within: Scope | None) -> list[Evidence]:
        titles = self._read_titles()
        best = {name: piece for piece in reversed(ranking[:_DEPTH]) for name in _list_names(piece.title)}
        names = select_named(question, titles)
        if not names:
            return list(ranking)
        places = {piece.id: place for place, piece in enumerate(ranking)}
        found = self._find(names, titles, best, within)
        named = sorted(found.values(), key=lambda piece: places.get(piece.id, len(places)))
        near, late, stems = list[Evidence](), list[Evidence](), take_stems(question)
        for piece in named:
            links = self._find(find_links(piece.text, titles, stems), titles, best, within)
            bridges = [(name, linked) for name, linked in links.items() if name not in names and linked not in named]
            for place, (name, linked) in enumerate(bridges[:2]):
                (late if place or " " not in name else near).append(linked)
        likely = drop_repeats([*ranking[:1], *named, *near])
        first = drop_repeats([*likely, *ranking])
        return drop_repeats([*first[: max(_SURE, len(likely))], *late, *first])

    def _find(
        self, names: Iterable[str], titles: Mapping[str, DocumentId], best: Mapping[str, Evidence], within: Scope | None
    ) -> dict[str, Evidence]:
        """The piece that stands for each of these titles, in their order, if it is within the scope."""
        missing = {titles[name] for name in names if name not in best}
        among = self.store.keys_within(within) if missing else None
        read = self.store.passages(documents=missing, between=(0, 1)) if missing else {}
        known = {
            passage.document: as_evidence(passage, 0.0)
            for key, passage in read.items()
            if among is None or key in among
        }
        found = {name: best.get(name) or known.get(titles[name]) for name in names}
        return {name: piece for name, piece in found.items() if piece}

    def _read_titles(self) -> Mapping[str, DocumentId]:
        """The documents by the names that they have from their titles."""
        versions = self.store.versions(_SPACES)
        if self._kept[0] != versions:
            records = reversed(self.store.documents())
            self._kept = versions, {name: record.id for record in records for name in _list_names(record.title)}
        return self._kept[1]


def _list_names(title: str) -> set[str]:
    """A title and what it is without the parenthesis at its end, normalised."""
    return {normalise_name(title), normalise_name(strip_title(title))} - {""}


def find_links(text: str, titles: Collection[str], stems: frozenset[str]) -> list[str]:
    """The normalised titles that stand in a text, the likeliest bridge of a question with these stems first.

    A title begins and ends with a word that has no small initial in the text, the longest at a place counts, and it
    says more than the question. A lone stop word ("The") does not count. A title of several words comes before a single
    word, then that nearest to a word of the question, then that which stands first.
    """
    words = split_words(text)
    plain = list(map(normalise_name, words))
    cues = [place for place, word in enumerate(plain) if stem(word) in stems]
    links = []
    start = 0
    while start < len(words):
        end = _find_end(words, plain, start, titles)
        is_stop = end == start + 1 and plain[start] in STOP
        if end > start and not is_stop and not stems.issuperset(map(stem, plain[start:end])):
            distance = min((max(start - cue, cue - end + 2) for cue in cues), default=0)
            links.append((end == start + 1, distance, start, " ".join(plain[start:end])))
        start = max(end, start + 1)
    return list(dict.fromkeys(name for *_, name in sorted(links)))


def _find_end(words: Sequence[str], plain: Sequence[str], start: int, titles: Collection[str]) -> int:
    """Where the longest title ends that begins at this word, or `start`."""
    if words[start][0].islower():
        return start
    ends = range(min(len(words), start + LONGEST), start, -1)
    return next(
        (end for end in ends if not words[end - 1][0].islower() and " ".join(plain[start:end]) in titles), start
    )
