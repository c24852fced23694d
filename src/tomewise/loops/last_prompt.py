"""The rule for the last prompt: one ranking of what several searches found, what of it fits, and how it is shown. Ours.

Every search counts by rank, so a passage that several searches find comes before one that a single search finds; so do
the passages before and after a hit, which often hold the rest of it. The optimum is flat: a damping of 2 to 10 and
other weights change little (`bench/last_prompt.py`).

Evidence is taken in the order of its ranking until nothing more fits. Of a layer beside the passages its best pieces
are shown, or none: no shorter one takes their place. Passages that follow one another are shown as one piece, under
one header; all is shown in the order of the text. A note is left out where it says nothing of its own (`drop_said`);
notes have at most a sixth of the budget, and of a small one up to a third.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from tomewise.loops.evidence import (
    FENCE,
    Count,
    describe_piece,
    drop_near_repeats,
    drop_said,
    join_texts,
    load_passages,
    measure_texts,
)
from tomewise.recall.ranking import as_evidence, drop_repeats, rank_evidence
from tomewise.store.nearest import DECIMALS
from tomewise.store.records import PASSAGES
from tomewise.text.sentences import split_sentences
from tomewise.types import Evidence, NodeId, Passage, Scope

if TYPE_CHECKING:
    from tomewise.store.contract import Texts

DEPTH = 60  # pieces of evidence that each search gives, whatever the loop itself reads of them
_DAMPING = 2
_BESIDE = 0.5
_QUERIES = 3  # the queries of a loop together count at most as much as so many questions
_NOTES, _MOST_NOTES = 6, 3  # notes take at most one part in so many of the budget: a sixth, of a small one a third
_NEAR = 0.8  # a text is cut between words only if this share of it is left; else it has no spaces to cut at
_LEAST = 100  # tokens: if there are too many texts, none is cut shorter than this
_FEW = 400  # tokens: the notes of a model that infers do not fit into less


@dataclass(frozen=True, slots=True)
class Searched:
    """What one search of a question found, best first. A search with the question itself has the weight 1.

    The passages before and after a hit get the share `beside` of its score.
    """

    found: Sequence[Evidence]
    weight: float = 1.0
    beside: float = _BESIDE


def weigh_queries(found: Sequence[Sequence[Evidence]]) -> list[Searched]:
    """What searches with the queries of a loop found; together they count at most as three questions."""
    return [Searched(ranking, min(1.0, _QUERIES / len(found))) for ranking in found]


def fuse(store: Texts, searches: Sequence[Searched], within: Scope | None) -> list[Evidence]:
    """All evidence of the searches, and neighbours of passages, best first; ties by id. Scores are the fused ones.

    Each passage gets what the passages before and after it have for those `beside` them; some of these are new. A scope
    of entities admits no neighbours, since these need not see the entities.
    """
    pieces: dict[NodeId, Evidence] = {}
    scores: dict[NodeId, float] = defaultdict(float)
    beside: dict[NodeId, float] = defaultdict(float)
    for search in searches:
        for rank, piece in enumerate(search.found):
            pieces.setdefault(piece.id, piece)
            score = search.weight / (_DAMPING + rank)
            scores[piece.id] += score
            beside[piece.id] += search.beside * score
    if not (within and (within.entities is not None or within.without_entities)):
        found = store.find(node for node in pieces if pieces[node].layer == PASSAGES)
        nodes = {each.key: node for node, each in found.items()}
        around = store.find_neighbours(nodes, 1)
        new = store.passages({key for keys in around.values() for key in keys if key not in nodes})
        for key, passage in new.items():
            nodes[key] = passage.id
            pieces[passage.id] = as_evidence(passage, 0.0)
        for hit, keys in around.items():
            for key in keys:
                if key in nodes:
                    scores[nodes[key]] += beside[nodes[hit]]
    return rank_evidence(replace(piece, score=round(scores[node], DECIMALS)) for node, piece in pieces.items())


@dataclass(frozen=True, slots=True)
class Note:
    """What a loop wrote down. `grounds` are the nodes that it rests on.

    A note without any rests on other notes, and is never left out for what is shown.
    """

    text: str
    grounds: Collection[NodeId] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """What the answering role gets to see, and how many pieces of evidence and notes had no room.

    `passages` are those among the evidence that may be joined.
    """

    evidence: tuple[Evidence, ...]
    passages: Mapping[NodeId, Passage]
    notes: tuple[str, ...] = ()
    cut: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """Evidence of a layer beside the passages, best first, and the tokens that are kept for it.

    If its best piece needs more, it may borrow as much again from the passages; else they have its tokens.
    """

    ranked: Sequence[Evidence]
    tokens: int


class _Size(NamedTuple):
    """The tokens of a piece and of its header; of a passage that may be joined, its document and its position."""

    tokens: int
    header: int
    place: tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class Layout:
    """Fills budgets with evidence and notes; `count` gives the tokens of texts.

    Without `joins`, passages are shown one by one.
    """

    store: Texts
    count: Count
    joins: bool = True

    def lay_out(
        self, ranked: Sequence[Evidence], budget: int, notes: Sequence[Note] = (), beside: Sequence[Share] = ()
    ) -> Context:
        """The best evidence and the notes that have room together, evidence in the order of its ranking.

        Layers `beside` have their share first, and what is left over at last.
        """
        ranked = drop_near_repeats(ranked)
        pieces = drop_repeats([*ranked, *(piece for share in beside for piece in share.ranked)])
        passages = self.find_passages(pieces)
        sizes = self._measure(pieces, passages)
        derived: list[Evidence] = []
        for share in beside:
            own = self.pack(share.ranked, share.tokens, sizes)
            derived += drop_near_repeats(own or self.pack(share.ranked[:1], 2 * share.tokens, sizes))
        room = min(budget // _MOST_NOTES, max(budget // _NOTES, _FEW)) if notes else 0
        shown = self.pack([*derived, *ranked], budget - room, sizes)
        texts, chosen = list[str](), list[str]()
        for _ in range(2):  # what comes in at last may say a note as well, or what a layer says
            of_passages = [piece for piece in shown if piece not in derived]
            repeats = {piece.id for piece in shown} - {
                piece.id for piece in drop_near_repeats([*of_passages, *derived])
            }
            shown = [piece for piece in shown if piece.id not in repeats]
            chosen = _choose_notes(notes, shown)
            texts = self.fit_texts(chosen, room)
            room = sum(measure_texts(texts, self.count))
            shown = self.pack([*shown, *(piece for piece in pieces if piece.id not in repeats)], budget - room, sizes)
        cut = len(pieces) - len(shown) + len(chosen) - len(texts)
        return Context(tuple(shown), passages, tuple(texts), cut)

    def pack(
        self,
        ranked: Sequence[Evidence],
        budget: int,
        sizes: Mapping[NodeId, _Size] | None = None,
        *,
        stops: bool = False,
    ) -> list[Evidence]:
        """The first pieces that fit; a passage that is too long for what is left is passed over, not cut.

        Of any other layer nothing is taken behind a piece that is too long, and of none if it `stops`. A passage beside
        one that is taken needs no header, and one between two joins them. A piece that comes twice counts once.
        """
        if sizes is None:
            sizes = self._measure(ranked, self.find_passages(ranked))
        chosen: list[Evidence] = []
        positions: set[tuple[str, int]] = set()
        closed: set[str] = set()  # layers
        for piece in drop_repeats(ranked):
            tokens, header, place = sizes[piece.id]
            joined = sum((place[0], beside) in positions for beside in (place[1] - 1, place[1] + 1)) if place else 0
            size = tokens + (header + FENCE) * (1 - joined)
            if size <= budget and piece.layer not in closed:
                chosen.append(piece)
                budget -= size
                if place:
                    positions.add(place)
            elif stops:
                break
            elif piece.layer != PASSAGES:
                closed.add(piece.layer)
        return chosen

    def _measure(self, evidence: Sequence[Evidence], passages: Mapping[NodeId, Passage]) -> dict[NodeId, _Size]:
        pieces = drop_repeats(evidence)
        places = {node: (passage.document, passage.position) for node, passage in passages.items()}
        counts = iter(self.count([text for piece in pieces for text in (piece.text, describe_piece(piece))]))
        sizes = zip(pieces, counts, counts, strict=True)
        return {piece.id: _Size(tokens, header, places.get(piece.id)) for piece, tokens, header in sizes}

    def find_passages(self, evidence: Sequence[Evidence]) -> Mapping[NodeId, Passage]:
        """The passages among the evidence that may be joined: shown as they are, without a gist."""
        texts = {piece.id: piece.text for piece in evidence if self.joins and piece.layer == PASSAGES}
        passages = load_passages(self.store, texts) if texts else {}
        return {id: passage for id, passage in passages.items() if passage.text == texts[id]}

    def shorten(self, text: str, most: int) -> str:
        """A text cut to `most` tokens: its last sentence, which concludes, and before it as many of the first as fit.

        If the last sentence alone does not fit, it is cut between words.
        """
        text = text.strip()
        if most <= 0 or self.count([text])[0] <= most:
            return text if most > 0 else ""
        *others, last = split_sentences(text, limit=len(text), longest=len(text))
        cuts = [f"{text[:end]} … {last.text}".strip() for end in (0, *(each.end for each in others[:-1]))]
        fitting = bisect_right(cuts, most, key=lambda cut: self.count([cut])[0])
        return cuts[fitting - 1] if fitting else self._cut_between_words(last.text, most)

    def fit_texts(self, texts: Sequence[str], room: int) -> list[str]:
        """Texts that fit into `room` tokens: the longest are cut; if all would get too short, the last are left out."""
        if not texts:
            return []
        sizes = self.count(texts)
        needs = accumulate(min(size, _LEAST) + FENCE for size in sizes)
        count = max(1, sum(need <= room for need in needs))
        left, most = room - FENCE * count, 0
        for index, size in enumerate(sorted(sizes[:count])):
            most = left // (count - index)
            if size > most:
                break
            left, most = left - size, size
        return [short for text in texts[:count] if (short := self.shorten(text, most))]

    def _cut_between_words(self, text: str, most: int) -> str:
        """The beginning of a text, up to `most` tokens, between two words where one is near."""
        beginning, length = text, len(text)
        while (size := self.count([beginning])[0]) > most:
            length = int(0.95 * length * most / size)  # a little less, so that few rounds do
            begun = text[:length].strip()
            if not begun:
                return ""
            words = begun.rsplit(maxsplit=1)[0]
            beginning = f"{words if len(words) > _NEAR * len(begun) else begun} …"
        return beginning


def join(evidence: Sequence[Evidence], passages: Mapping[NodeId, Passage]) -> list[Evidence]:
    """The evidence with each run of these passages that follow one another as one piece, which rests on all of them."""
    runs: list[list[Evidence]] = []
    for piece in evidence:
        passage, last = passages.get(piece.id), passages.get(runs[-1][-1].id) if runs else None
        if passage and last and (passage.document, passage.position) == (last.document, last.position + 1):
            runs[-1].append(piece)
        else:
            runs.append([piece])
    return [_join_run(run, passages) if run[1:] else run[0] for run in runs]


def _choose_notes(notes: Sequence[Note], shown: Sequence[Evidence]) -> list[str]:
    """The texts of the notes that say something which is not shown, each once."""
    texts = {note.text.strip(): bool(note.grounds) for note in notes}
    own = [text for text, may_leave in texts.items() if text and not may_leave]
    kept = drop_said([text for text in texts if text not in own], [*(piece.text for piece in shown), *own])
    return [text for text in texts if text in kept or text in own]


def _join_run(run: Sequence[Evidence], passages: Mapping[NodeId, Passage]) -> Evidence:
    text, _ = join_texts([passages[piece.id] for piece in run])
    return replace(run[0], text=text, sources=tuple(piece.id for piece in run))
