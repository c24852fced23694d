"""What loops with a working memory show: evidence and cues of several layers within one budget of tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar

from tomewise.events import Attempted
from tomewise.language.sentences import split_sentences
from tomewise.loops.desk import Attempt, Desk
from tomewise.loops.evidence import FENCE, describe_source, share_budget
from tomewise.loops.repeats import drop_near_repeats
from tomewise.types import Evidence
from tomewise.working.pool import Unit

Kind = TypeVar("Kind", bound=Attempted)
HISTORY = "history"
_NOTES = 3  # notes take at most one part in so many of the context, beside the share of history
_KNOWN = 8  # earlier cues take at most one part in so many, beside the evidence that is encoded
_NEAR = 0.8  # a text is cut between words only if this share of it is left; else it has no spaces to cut at
_LEAST = 100  # tokens: if there are too many cues, none is cut shorter than this


@dataclass(frozen=True, slots=True)
class Context:
    """What the answering role gets to see, and how many pieces of evidence had no room."""

    evidence: tuple[Evidence, ...]
    notes: tuple[str, ...]
    cut: int


class Contexts:
    """Fits evidence and cues into `budget` tokens. `shares` are those of the layers, in their order, and of `HISTORY`.

    Rank decides what gets in, document order how it is shown. Notes take at most a quarter of the context and the
    share of history; evidence has the rest. Cues that are too long lose whole sentences, evidence is left out. Tokens
    of a text are counted once.
    """

    def __init__(self, desk: Desk, budget: int, shares: Mapping[str, int]) -> None:
        self._desk = desk
        self._count = desk.count
        self._budget = budget
        self._shares = shares
        self._known: dict[str, int] = {}

    def select_evidence(self, unit: Unit) -> tuple[Evidence, ...]:
        """The evidence of one unit that fits into its layer's share, best first: one piece at least."""
        texts = [_write_text(piece) for piece in unit.evidence]
        fitting = share_budget(
            self._measure_room(unit.layer), {unit.layer: 1}, {unit.layer: texts}, self._count_tokens
        )[unit.layer]
        return tuple(unit.evidence[index] for index in fitting) or unit.evidence[:1]

    def shorten(self, text: str, most: int) -> str:
        """A text cut to `most` tokens: its last sentence, which concludes it, and as many of the first ones as fit.

        If not even one sentence fits, the text is cut between words.
        """
        text = text.strip()
        if most <= 0 or self._count([text])[0] <= most:
            return text if most > 0 else ""
        *others, last = split_sentences(text, limit=len(text), longest=len(text))
        conclusion = last.text if self._count([last.text])[0] <= most else ""
        ends = [sentence.end for sentence in (others[:-1] if conclusion else others)]
        cuts = [f"{text[:end]} … {conclusion}".strip() for end in ends]
        fitting = bisect_right(cuts, most, key=lambda cut: self._count([cut])[0])
        return cuts[fitting - 1] if fitting else conclusion or self._cut_between_words(text, most)

    def fit_cues(self, cues: Sequence[str]) -> list[str]:
        """Cues for a role that is shown nothing else."""
        return self._fit_texts(cues, self._budget)

    def fit_known(self, cues: Sequence[str]) -> list[str]:
        """Earlier cues for the encoding role, which also sees new evidence: the first ones that have room."""
        return self._fit_texts(cues, self._budget // _KNOWN)

    def make_context(self, ranked: Mapping[str, Sequence[Evidence]], cued: Sequence[Unit], fused: str) -> Context:
        """What the answering role sees: by layer the first pieces of `ranked`, the cues of units, as many as have room.

        `fused` is what the cues of the past say together.
        """
        ranked = _drop_repeats(ranked)
        notes = self._select_notes(cued, fused)
        left = self._budget - sum(size + FENCE for size in self._count_tokens(notes))
        shares = {layer: self._shares[layer] for layer in ranked}
        texts = {layer: [_write_text(piece) for piece in pieces] for layer, pieces in ranked.items()}
        fitting = share_budget(left, shares, texts, self._count_tokens)
        evidence = [ranked[layer][index] for layer, indices in fitting.items() for index in indices]
        cut = sum(map(len, ranked.values())) - len(evidence)
        return Context(tuple(self._desk.put_in_order(evidence)), tuple(notes), cut)

    def _select_notes(self, cued: Sequence[Unit], fused: str) -> list[str]:
        """What is fused and the cues that have room, in the order given; shown layer by layer, each text once."""
        layers = list(self._shares)
        of_layer = {fused: -1} if fused.strip() else {}
        for unit in cued:
            if unit.cue.strip():
                of_layer.setdefault(unit.cue, layers.index(unit.layer))
        history = self._measure_room(HISTORY)
        short = self._shorten_texts(list(of_layer), (self._budget - history) // _NOTES + history) if of_layer else []
        placed = sorted(zip(of_layer.values(), short, strict=False), key=lambda pair: pair[0])
        return [text for _, text in placed if text]

    def _measure_room(self, layer: str) -> int:
        return self._budget * self._shares.get(layer, 0) // sum(self._shares.values())

    def _fit_texts(self, texts: Sequence[str], room: int) -> list[str]:
        return [short for short in self._shorten_texts(texts, room) if short]

    def _shorten_texts(self, texts: Sequence[str], room: int) -> list[str]:
        """Texts that fit into `room` tokens: the longest are cut; if all would get too short, the last are left out."""
        sizes = self._count_tokens(texts)
        needs = accumulate(min(size, _LEAST) + FENCE for size in sizes)
        count = max(1, sum(need <= room for need in needs))
        left, most = room - FENCE * count, 0
        for index, size in enumerate(sorted(sizes[:count])):
            most = left // (count - index)
            if size > most:
                break
            left, most = left - size, size
        return [self.shorten(text, most) for text in texts[:count]]

    def _cut_between_words(self, text: str, most: int) -> str:
        """The beginning of a text, up to `most` tokens, between two words where one is near."""
        beginning, length = text, len(text)
        while (size := self._count([beginning])[0]) > most:
            length = int(0.95 * length * most / size)  # a little less, so that few rounds do
            begun = text[:length].strip()
            if not begun:
                return ""
            words = begun.rsplit(maxsplit=1)[0]
            beginning = f"{words if len(words) > _NEAR * len(begun) else begun} …"
        return beginning

    def _count_tokens(self, texts: Sequence[str]) -> list[int]:
        fresh = list(dict.fromkeys(text for text in texts if text not in self._known))
        self._known.update(zip(fresh, self._count(fresh) if fresh else (), strict=True))
        return [self._known[text] for text in texts]


def make_attempt_event(kind: type[Kind], step: int, context: Context, attempt: Attempt, **more: Any) -> Kind:
    """What an attempt to answer was shown, and what came of it; `more` are further fields of this kind of event."""
    return kind(
        step=step,
        answer=attempt.reply.answer,
        choice=attempt.reply.choice,
        failed=not attempt.answer.resolved,
        missing=attempt.reply.missing,
        shown=[piece.node for piece in context.evidence],
        cut=context.cut,
        notes=context.notes,
        **more,
    )


def _drop_repeats(ranked: Mapping[str, Sequence[Evidence]]) -> dict[str, list[Evidence]]:
    """The evidence of each layer without near-repeats, also of other layers."""
    kept = {id(piece) for piece in drop_near_repeats([piece for pieces in ranked.values() for piece in pieces])}
    return {layer: [piece for piece in pieces if id(piece) in kept] for layer, pieces in ranked.items()}


def _write_text(piece: Evidence) -> str:
    source = describe_source(piece)
    return f"{source}\n{piece.text}" if source else piece.text
